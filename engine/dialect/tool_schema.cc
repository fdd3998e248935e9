#include "engine/dialect/tool_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/error.h"
#include "engine/guide/compiled_grammar.h"

namespace tgi::dialect {
namespace {

using guide::Expr;
using guide::Grammar;
using guide::JsonSchemaOptions;

constexpr std::string_view kRootId = "tool:/parameters";
constexpr std::string_view kRootPlace = "#/$defs/parameters";

struct Step {
  std::string key;
  bool in_array = false;
};

// The way from the root to this very value, which is one of its parts.
bool find_part(const OrderedJson& part, const OrderedJson& root, std::vector<Step>& way) {
  if (&part == &root) return true;
  if (!root.is_structured()) return false;
  for (const auto& item : root.items()) {
    way.push_back({item.key(), root.is_array()});
    if (find_part(part, item.value(), way)) return true;
    way.pop_back();
  }
  return false;
}

std::string pointer_of(const std::vector<Step>& way) {
  std::string out;
  for (const Step& step : way) out += pointer_step(step.key);
  return out;
}

// The part alone, at its place.
OrderedJson alone(const OrderedJson& part, const std::vector<Step>& way) {
  OrderedJson out = part;
  for (auto step = way.rbegin(); step != way.rend(); ++step) {
    OrderedJson around =
        step->in_array ? OrderedJson(std::stoul(step->key), true) : OrderedJson::object();
    if (step->in_array) {
      around.push_back(std::move(out));
    } else {
      around[step->key] = std::move(out);
    }
    out = std::move(around);
  }
  return out;
}

// Whether each reference is of the kind.
template <typename IsOfKind>
bool all_references(const OrderedJson& json, const IsOfKind& is_of_kind) {
  if (!json.is_structured()) return true;
  return std::all_of(json.items().begin(), json.items().end(), [&](const auto& item) {
    const bool is_reference = item.key() == "$ref" || item.key() == "$dynamicRef" ||
                              item.key() == "$recursiveRef" || item.key() == "$id";
    if (is_reference && !is_of_kind(item.value())) return false;
    return all_references(item.value(), is_of_kind);
  });
}

// What the part needs of the whole: a large schema would else be read once for each property.
OrderedJson needed_for(const OrderedJson& part,
                       const std::vector<Step>& way,
                       const OrderedJson& root) {
  constexpr std::array<const char*, 2> kDefinitions = {"$defs", "definitions"};
  if (all_references(part, [](const OrderedJson&) { return false; })) return alone(part, way);
  const auto is_definition = [&](const OrderedJson& reference) {
    return reference.is_string() &&
           std::any_of(kDefinitions.begin(), kDefinitions.end(), [&](const std::string& list) {
             return reference.get_ref<const std::string&>().starts_with("#/" + list + "/");
           });
  };
  if (!all_references(root, is_definition)) return root;
  OrderedJson out = alone(part, way);
  for (const char* const list : kDefinitions) {
    if (root.contains(list)) out[list] = root[list];
  }
  return out;
}

// Places of a whole_schema() as whoever wrote the tool counts: from its own root.
Error told_of(const Tool& tool, const OrderedJson& schema, const Error& error) {
  const OrderedJson::json_pointer id("/$defs/parameters/$id");
  const bool is_part = schema.contains(id) && schema[id] == OrderedJson(kRootId);
  std::string what = error.what();
  for (size_t at = 0; is_part && (at = what.find(kRootPlace, at)) != std::string::npos; ++at) {
    what.replace(at, kRootPlace.size(), "#");
  }
  return Error(error.code(), fmt::format("tool {}: {}", tool.name, what));
}

}  // namespace

std::string pointer_step(std::string_view name) {
  std::string out = "/";
  for (const char c : name) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' || c == '$';
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else if (is_plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::vector<std::string> required_names(const OrderedJson& schema) {
  std::vector<std::string> out;
  const auto required = schema.find("required");
  if (required == schema.end() || !required->is_array()) return out;
  for (const OrderedJson& name : *required) {
    if (name.is_string()) out.push_back(name.get<std::string>());
  }
  return out;
}

const OrderedJson& schema_of_unlisted(const OrderedJson& schema) {
  static const OrderedJson kAnyValue = true;
  const auto others = schema.find("additionalProperties");
  return others == schema.end() ? kAnyValue : *others;
}

std::vector<ToolProperty> properties_of(const Tool& tool) {
  constexpr std::array<std::string_view, 12> kKnown = {
      "type",    "properties",  "required",    "additionalProperties",
      "$defs",   "definitions", "description", "title",
      "$schema", "$id",         "$comment",    "strict"};
  if (tool.strict) {
    for (const auto& item : tool.parameters.items()) {
      if (std::find(kKnown.begin(), kKnown.end(), item.key()) != kKnown.end()) continue;
      throw Error(Code::kUnsupported,
                  fmt::format("tool {}: #/{}: this model writes arguments one by one; what is said "
                              "of all of them together can't be enforced",
                              tool.name, item.key()));
    }
  }
  return listed_properties(tool.parameters);
}

std::vector<ToolProperty> listed_properties(const OrderedJson& schema) {
  std::vector<ToolProperty> out;
  const std::vector<std::string> required = required_names(schema);
  const auto properties = schema.find("properties");
  if (properties != schema.end() && properties->is_object()) {
    for (const auto& item : properties->items()) {
      const bool is_required =
          std::find(required.begin(), required.end(), item.key()) != required.end();
      out.push_back({.name = item.key(), .schema = &item.value(), .is_required = is_required});
    }
  }
  for (const std::string& name : required) {
    const auto is_it = [&](const ToolProperty& each) { return each.name == name; };
    if (std::any_of(out.begin(), out.end(), is_it)) continue;
    out.push_back({.name = name, .schema = &schema_of_unlisted(schema), .is_required = true});
  }
  return out;
}

const OrderedJson* schema_of_others(const Tool& tool) {
  const auto others = tool.parameters.find("additionalProperties");
  if (others == tool.parameters.end()) return nullptr;
  return others->is_object() || *others == OrderedJson(true) ? &*others : nullptr;
}

bool has_only(const OrderedJson& schema, std::span<const std::string_view> words) {
  return std::all_of(schema.items().begin(), schema.items().end(), [&](const auto& item) {
    return std::find(words.begin(), words.end(), item.key()) != words.end();
  });
}

std::string place_in(const Tool& tool, const OrderedJson& part) {
  std::vector<Step> way;
  (void)find_part(part, tool.parameters, way);
  return "#" + pointer_of(way);
}

OrderedJson whole_schema(const Tool& tool, const OrderedJson& part) {
  const OrderedJson& root = tool.parameters;
  OrderedJson out = OrderedJson::object();
  if (root.contains("$schema")) out["$schema"] = root["$schema"];
  std::vector<Step> way;
  if (!find_part(part, root, way)) {
    out["allOf"] = {part};
    return out;
  }
  OrderedJson read = needed_for(part, way, root);
  read.erase("$schema");
  read["$id"] = kRootId;
  out["$defs"] = {{"parameters", std::move(read)}};
  out["allOf"] = {{{"$ref", fmt::format("{}#{}", kRootId, pointer_of(way))}}};
  return out;
}

OrderedJson with_types(OrderedJson schema, uint8_t types) {
  if (types == kAllBits) return schema;
  OrderedJson words = OrderedJson::array();
  for (const TypeWord& type : kTypeWords) {
    if ((types & type.bit) != 0) words.push_back(type.word);
  }
  schema["allOf"].push_back({{"type", std::move(words)}});
  return schema;
}

void refuse_name(const Tool& tool, const std::string& place) {
  throw Error(Code::kUnsupported,
              fmt::format("tool {}: {}: the notation of this model can't write an argument of this "
                          "name",
                          tool.name, place));
}

JsonSchemaOptions json_options(bool python) {
  JsonSchemaOptions out{.closes_objects = true};
  out.whitespace = JsonSchemaOptions::Whitespace::kSpaced;
  out.python_words = python;
  return out;
}

// Tried in a grammar of its own, as one that was begun can't be taken back.
bool is_enforceable(const Tool& tool, const OrderedJson& schema, const JsonSchemaOptions& options) {
  try {
    Grammar trial;
    trial.set_start(add_json_schema(trial, schema, options));
    (void)compile_grammar(trial);
    return true;
  } catch (const Error& error) {
    if (tool.strict || error.code() == Code::kInternal) throw told_of(tool, schema, error);
    return false;
  }
}

std::optional<guide::SchemaValues> enforceable_values(Grammar& grammar,
                                                      const Tool& tool,
                                                      const OrderedJson& schema) {
  if (!is_enforceable(tool, schema, json_options(false))) return std::nullopt;
  try {
    return guide::schema_values(grammar.regex(), schema);
  } catch (const Error& error) {
    if (tool.strict || error.code() == Code::kInternal) throw told_of(tool, schema, error);
    return std::nullopt;
  }
}

Expr json_of(Grammar& grammar,
             const Tool& tool,
             const OrderedJson& schema,
             bool only_object,
             const JsonSchemaOptions& options) {
  return grammar.call(is_enforceable(tool, schema, options)
                          ? add_json_schema(grammar, schema, options)
                          : add_any_json(grammar, only_object, options));
}

}  // namespace tgi::dialect
