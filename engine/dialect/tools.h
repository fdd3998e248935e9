// The tools of a request, in OpenAI's shape, and which of them an answer may call.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/nlohmann_json.h"
#include "ipc/protocol.h"

namespace tgi::dialect {

using OrderedJson = nlohmann::ordered_json;

struct Tool {
  std::string name;
  OrderedJson parameters;  // the schema of its arguments, an object
  bool strict = false;     // refused when the schema can't be enforced
};

struct ToolUse {
  std::vector<Tool> tools;  // that may be called; empty: none
  bool must_call = false;
  bool several = true;  // calls in one answer
};

constexpr size_t kMaxTools = 1024;

// [{type: "function", function: {name, description, parameters, strict}}] with what templates rely
// on filled in: `parameters` everywhere (TGI's `arguments` is read for it). Throws kInvalidArgument
// with the place.
OrderedJson checked_tools(const OrderedJson& tools);

// Of checked tools those that `choice` allows. Throws kInvalidArgument for a name that is none.
ToolUse tool_use(const OrderedJson& tools,
                 const std::optional<ipc::ToolChoice>& choice,
                 bool parallel);

// The types that a value of this schema may have, as bits; all where the schema does not tell.
enum TypeBits : uint8_t {
  kStringBit = 1,
  kNumberBit = 2,
  kBooleanBit = 4,
  kNullBit = 8,
  kObjectBit = 16,
  kArrayBit = 32,
  kAllBits = 63,
};
uint8_t types_of(const OrderedJson& schema, const OrderedJson& root, int depth = 0);
uint8_t type_bit(const OrderedJson& value);

// The six types by name, as Kimi K3 writes them before values.
struct TypeWord {
  std::string_view word;
  TypeBits bit;
};
inline constexpr std::array<TypeWord, 6> kTypeWords = {{{"string", kStringBit},
                                                        {"number", kNumberBit},
                                                        {"boolean", kBooleanBit},
                                                        {"null", kNullBit},
                                                        {"object", kObjectBit},
                                                        {"array", kArrayBit}}};

// "#/$defs/x" within the root; null when there is no such place.
const OrderedJson* resolve_local(const OrderedJson& root, std::string_view reference);

// The schema behind "$ref", however often it is referred to again; null where that leads nowhere.
const OrderedJson* behind_references(const OrderedJson& schema, const OrderedJson& root);

}  // namespace tgi::dialect
