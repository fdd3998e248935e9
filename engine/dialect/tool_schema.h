// What a tool's schema says of its arguments, for the grammars of notations that write them one by
// one. What can't be enforced is refused of a strict tool, with its place; of others it is left
// open.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/dialect/tools.h"
#include "engine/guide/grammar.h"
#include "engine/guide/json_schema.h"

namespace tgi::dialect {

// One argument.
struct ToolProperty {
  std::string name{};
  const OrderedJson* schema = nullptr;  // in the tool's
  bool is_required = false;
};
// Those of `properties`, then those that only `required` names.
std::vector<ToolProperty> listed_properties(const OrderedJson& schema);
// The same; what a list of properties can't say is refused of a strict tool.
std::vector<ToolProperty> properties_of(const Tool& tool);

// The names in the schema's `required`.
std::vector<std::string> required_names(const OrderedJson& schema);
// What members have to satisfy that `properties` does not list: a part of the schema, or any value.
const OrderedJson& schema_of_unlisted(const OrderedJson& schema);

// What arguments under other names have to satisfy; null: there are none.
const OrderedJson* schema_of_others(const Tool& tool);

// Whether the schema, an object, has no other words.
bool has_only(const OrderedJson& schema, std::span<const std::string_view> words);
// One step of a JSON pointer in a reference (RFC 6901, section 6), with its slash.
std::string pointer_step(std::string_view name);
// Where a part of the tool's schema is, for people: "#/properties/NAME".
std::string place_in(const Tool& tool, const OrderedJson& part);
// A part of the tool's schema as one of its own, in which references still lead somewhere.
OrderedJson whole_schema(const Tool& tool, const OrderedJson& part);
// Of such a schema the values that have one of these types (TypeBits).
OrderedJson with_types(OrderedJson schema, uint8_t types);

// An argument whose name the notation can't write, strict or not: without it calls would not be
// what the schema says. Throws kUnsupported.
[[noreturn]] void refuse_name(const Tool& tool, const std::string& place);

// As tools' JSON is written.
guide::JsonSchemaOptions json_options(bool python);

// Whether the schema can be enforced; throws why not when the tool is strict.
bool is_enforceable(const Tool& tool,
                    const OrderedJson& schema,
                    const guide::JsonSchemaOptions& options);

// Its values, of an enforceable schema; the same.
std::optional<guide::SchemaValues> enforceable_values(guide::Grammar& grammar,
                                                      const Tool& tool,
                                                      const OrderedJson& schema);

// What satisfies the schema; any JSON (`only_object`: an object) where it can't be enforced.
guide::Expr json_of(guide::Grammar& grammar,
                    const Tool& tool,
                    const OrderedJson& schema,
                    bool only_object,
                    const guide::JsonSchemaOptions& options);

}  // namespace tgi::dialect
