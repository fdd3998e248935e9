// How the reader of JSON Schema says no: always with the place in the schema, as a JSON pointer.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/nlohmann_json.h"

namespace tgi::guide {

using OrderedJson = nlohmann::ordered_json;

// What a grammar can't enforce. `at`: "#/properties/age/not".
[[noreturn]] void refuse_schema(std::string_view at, const std::string& why);

// What is no schema, or can't be satisfied.
[[noreturn]] void reject_schema(std::string_view at, const std::string& why);

// What has too many combinations of its parts: what and how many, and what to do about it.
[[noreturn]] void reject_combinations(std::string_view at, const std::string& what);

// The same error with the place in the schema, if it does not say it yet.
Error with_place(const Error& error, std::string_view at);

// "an object", "the number 3", for messages.
std::string described_json(const OrderedJson& value);

// `path` with one more step, escaped as RFC 6901 has it.
std::string path_step(std::string_view path, std::string_view step);

// Letters and digits alone, small: "additional_properties:" is additionalProperties to who wrote
// it.
std::string bare_name(std::string_view name);

}  // namespace tgi::guide
