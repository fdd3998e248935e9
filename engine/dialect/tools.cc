#include "engine/dialect/tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "engine/guide/json/uri.h"

namespace tgi::dialect {
namespace {

template <typename... Args>
[[noreturn]] void refuse_tools(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Code::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

struct TypeName {
  std::string_view name;
  uint8_t bits;
};
constexpr std::array<TypeName, 7> kTypeNames = {{
    {"string", kStringBit},
    {"number", kNumberBit},
    {"integer", kNumberBit},
    {"boolean", kBooleanBit},
    {"null", kNullBit},
    {"object", kObjectBit},
    {"array", kArrayBit},
}};

uint8_t bits_of_name(const OrderedJson& name) {
  for (const TypeName& type : kTypeNames) {
    if (name == OrderedJson(type.name)) return type.bits;
  }
  return kAllBits;
}

uint8_t bits_of_values(const OrderedJson& values) {
  uint8_t bits = 0;
  for (const OrderedJson& value : values) bits |= type_bit(value);
  return bits;
}

const OrderedJson* member(const OrderedJson& json, std::string_view name) {
  const auto it = json.find(std::string(name));
  return it == json.end() || it->is_null() ? nullptr : &*it;
}

// Names end in marks and quotes of many dialects, so they keep to what all of them can write.
bool is_tool_name(std::string_view name) {
  constexpr std::string_view kAlso = "_-./:";
  return !name.empty() && name.size() <= 256 && std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kAlso.find(c) != std::string_view::npos;
  });
}

OrderedJson checked_function(const OrderedJson& given, const std::string& path) {
  if (!given.is_object()) refuse_tools("{}: expected an object, got {}", path, given.type_name());
  OrderedJson out = given;
  const OrderedJson* const name = member(given, "name");
  if (name == nullptr || !name->is_string())
    refuse_tools("{}.name: expected the tool's name", path);
  if (!is_tool_name(name->get_ref<const std::string&>())) {
    refuse_tools("{}.name: expected up to 256 letters, digits, and any of _ - . / :, got \"{}\"",
                 path, name->get_ref<const std::string&>().substr(0, 100));
  }
  constexpr std::array<std::string_view, 5> kKnown = {"name", "description", "parameters",
                                                      "arguments", "strict"};
  for (const auto& item : given.items()) {
    if (std::find(kKnown.begin(), kKnown.end(), item.key()) != kKnown.end()) continue;
    if (item.value().is_null()) {  // as if it were not there
      out.erase(item.key());
      continue;
    }
    refuse_tools("{}.{}: unknown field, expected one of {}", path, item.key().substr(0, 100),
                 fmt::join(kKnown, ", "));
  }
  const OrderedJson* const strict = member(given, "strict");
  if (strict != nullptr && !strict->is_boolean())
    refuse_tools("{}.strict: expected a boolean", path);
  if (out.contains("arguments")) {
    if (member(out, "parameters") != nullptr) {
      refuse_tools("{}: `arguments` is another name of `parameters`: give one of them", path);
    }
    out["parameters"] = out["arguments"];
    out.erase("arguments");
  }
  if (member(out, "parameters") == nullptr) out["parameters"] = OrderedJson::object();
  OrderedJson& schema = out["parameters"];
  if (!schema.is_object()) {
    refuse_tools("{}.parameters: expected a JSON schema, got {}", path, schema.type_name());
  }
  if (schema.empty()) schema["type"] = "object";
  // Templates go through the properties without looking whether there are any.
  if (schema.value("type", OrderedJson()) == OrderedJson("object") &&
      member(schema, "properties") == nullptr) {
    schema["properties"] = OrderedJson::object();
  }
  if (member(out, "description") == nullptr) out["description"] = "";
  return out;
}

}  // namespace

OrderedJson checked_tools(const OrderedJson& tools) {
  if (!tools.is_array()) refuse_tools("tools: expected a list, got {}", tools.type_name());
  if (tools.size() > kMaxTools) {
    refuse_tools("tools: expected at most {}, got {}", kMaxTools, tools.size());
  }
  OrderedJson out = OrderedJson::array();
  std::vector<std::string> names;
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string path = fmt::format("tools[{}]", i);
    if (!tools[i].is_object()) refuse_tools("{}: expected an object", path);
    const OrderedJson* const type = member(tools[i], "type");
    if (type != nullptr && *type != OrderedJson("function")) {
      refuse_tools(
          "{}.type: only functions can be called by this server, got {}", path,
          type->dump(-1, ' ', false, OrderedJson::error_handler_t::replace).substr(0, 100));
    }
    const OrderedJson* const function = member(tools[i], "function");
    if (function == nullptr) refuse_tools("{}.function: missing", path);
    for (const auto& item : tools[i].items()) {
      if (item.key() == "type" || item.key() == "function" || item.value().is_null()) continue;
      refuse_tools("{}.{}: unknown field, expected type or function", path,
                   item.key().substr(0, 100));
    }
    OrderedJson checked = checked_function(*function, path + ".function");
    const auto& name = checked["name"].get_ref<const std::string&>();
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      refuse_tools("{}.function.name: another tool is called {} as well", path, name);
    }
    names.push_back(name);
    out.push_back({{"type", "function"}, {"function", std::move(checked)}});
  }
  return out;
}

ToolUse tool_use(const OrderedJson& tools,
                 const std::optional<ipc::ToolChoice>& choice,
                 bool parallel) {
  ToolUse out;
  out.several = parallel;
  if (choice && choice->mode == "none") return out;
  out.must_call = choice && choice->mode == "required";
  const std::vector<std::string> asked = choice ? choice->names : std::vector<std::string>{};
  for (const OrderedJson& entry : tools) {
    const OrderedJson& function = entry["function"];
    Tool tool{.name = function["name"].get<std::string>(),
              .parameters = function["parameters"],
              .strict = function.value("strict", OrderedJson()) == OrderedJson(true)};
    if (!asked.empty() && std::find(asked.begin(), asked.end(), tool.name) == asked.end()) continue;
    out.tools.push_back(std::move(tool));
  }
  for (const std::string& name : asked) {
    const auto is_it = [&](const Tool& tool) { return tool.name == name; };
    if (std::any_of(out.tools.begin(), out.tools.end(), is_it)) continue;
    refuse_tools("Tool with name {} not found", name.substr(0, 100));
  }
  if (out.must_call && out.tools.empty()) {
    refuse_tools("tool_choice: a call is required, and there are no tools");
  }
  return out;
}

uint8_t type_bit(const OrderedJson& value) {
  switch (value.type()) {
    case OrderedJson::value_t::string:
      return kStringBit;
    case OrderedJson::value_t::boolean:
      return kBooleanBit;
    case OrderedJson::value_t::null:
      return kNullBit;
    case OrderedJson::value_t::object:
      return kObjectBit;
    case OrderedJson::value_t::array:
      return kArrayBit;
    default:
      return kNumberBit;
  }
}

const OrderedJson* resolve_local(const OrderedJson& root, std::string_view reference) {
  if (!reference.starts_with('#')) return nullptr;
  try {
    const OrderedJson::json_pointer place{guide::percent_decoded(reference.substr(1))};
    return root.contains(place) ? &root.at(place) : nullptr;
  } catch (const OrderedJson::exception&) {
    return nullptr;
  }
}

const OrderedJson* behind_references(const OrderedJson& schema, const OrderedJson& root) {
  constexpr int kMaxDepth = 16;
  const OrderedJson* out = &schema;
  for (int depth = 0; out != nullptr && out->is_object() && out->contains("$ref"); ++depth) {
    const OrderedJson& reference = (*out)["$ref"];
    if (depth == kMaxDepth || !reference.is_string()) return nullptr;
    out = resolve_local(root, reference.get_ref<const std::string&>());
  }
  return out;
}

uint8_t types_of(const OrderedJson& schema, const OrderedJson& root, int depth) {
  constexpr int kMaxDepth = 16;
  if (!schema.is_object() || depth > kMaxDepth) return kAllBits;
  uint8_t bits = kAllBits;
  if (const OrderedJson* const type = member(schema, "type")) {
    uint8_t own = 0;
    if (type->is_array()) {
      for (const OrderedJson& each : *type) own |= bits_of_name(each);
    } else {
      own = bits_of_name(*type);
    }
    if (schema.value("nullable", OrderedJson()) == OrderedJson(true)) own |= kNullBit;
    bits &= own;
  }
  if (const OrderedJson* const values = member(schema, "enum");
      values != nullptr && values->is_array())
    bits &= bits_of_values(*values);
  if (const auto value = schema.find("const"); value != schema.end()) bits &= type_bit(*value);
  if (const OrderedJson* const reference = member(schema, "$ref");
      reference != nullptr && reference->is_string()) {
    if (const auto* const target = resolve_local(root, reference->get_ref<const std::string&>()))
      bits &= types_of(*target, root, depth + 1);
  }
  for (const std::string_view word : {"anyOf", "oneOf"}) {
    const OrderedJson* const branches = member(schema, word);
    if (branches == nullptr || !branches->is_array()) continue;
    uint8_t any = 0;
    for (const OrderedJson& branch : *branches) any |= types_of(branch, root, depth + 1);
    bits &= any;
  }
  if (const OrderedJson* const all = member(schema, "allOf"); all != nullptr && all->is_array()) {
    for (const OrderedJson& branch : *all) bits &= types_of(branch, root, depth + 1);
  }
  return bits;
}

}  // namespace tgi::dialect
