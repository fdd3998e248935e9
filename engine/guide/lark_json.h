// The JSON inside of a Lark grammar: schemas after %json, options after %llguidance. Used by the
// readers of Lark only.
#pragma once

#include <string_view>

#include "base/nlohmann_json.h"
#include "engine/guide/source_text.h"

namespace tgi::guide {

// Takes the object, array, true or false that the source is at. Throws kInvalidArgument with the
// place when there is none, when it has no end, or is nested deeper than kMaxLarkJsonNesting.
std::string_view take_json(SourceText& source);
inline constexpr int32_t kMaxLarkJsonNesting = 400;

// Throws kInvalidArgument with the place for a text that is no JSON.
nlohmann::ordered_json parse_json_at(const SourceText& source, std::string_view text);

struct LlguidanceOptions {
  bool allow_initial_skip = false;  // what %ignore names may stand before the first terminal too
  bool skips_once = false;          // ... and only once at a place
};

// Takes the options of %llguidance, which may stand there several times. Those that are not known
// are refused by name.
void take_llguidance_options(SourceText& source, LlguidanceOptions& options);

}  // namespace tgi::guide
