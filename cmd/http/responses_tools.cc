#include "cmd/http/responses_tools.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace tgi::http {
namespace {

constexpr std::array kToolExtras = {
    ExtraField{"async", "[false]", "calls are answered before the model goes on"},
    ExtraField{"defer_loading", "[false]", "every tool is shown to the model"},
    ExtraField{"output_schema", kAnything, "outputs are texts to the model"},
    ExtraField{"allowed_callers", R"([["direct"]])", "calls are made by the model alone"},
};

std::string type_of_tool(const OrderedJson& tool, const std::string& path) {
  if (!tool.is_object()) fail_body_type(path, "an object", tool);
  const auto type = tool.find("type");
  if (type == tool.end() || !type->is_string()) {
    fail_body(path + ".type", "missing field, expected \"function\"");
  }
  return type->get<std::string>();
}

[[noreturn]] void refuse_tool(const std::string& type, const std::string& path) {
  throw ApiError(422, "validation",
                 fmt::format("Input validation error: `{}`: tools of type {} are not supported, "
                             "this server has functions alone",
                             path, type.substr(0, 100)),
                 "unsupported_feature", path + ".type");
}

// OpenAI's flat function as the nested one of chats.
OrderedJson nested_function(const OrderedJson& tool, const std::string& path) {
  static constexpr std::array<std::string_view, 5> kKnown = {"type", "name", "description",
                                                             "parameters", "strict"};
  OrderedJson function = OrderedJson::object();
  for (const auto& item : tool.items()) {
    if (item.key() == "type" || item.value().is_null()) continue;
    if (std::ranges::find(kKnown, item.key()) == kKnown.end()) {
      check_extra_field(path + "." + item.key(), item.key(), item.value(), kToolExtras, kKnown);
      continue;
    }
    function[item.key()] = item.value();
  }
  return {{"type", "function"}, {"function", std::move(function)}};
}

// Its description is told with each of its functions, since chat templates know no namespaces.
void add_namespace(const OrderedJson& space,
                   const std::string& path,
                   ToolNames& names,
                   OrderedJson& out) {
  static constexpr std::array<std::string_view, 4> kKnown = {"type", "name", "description",
                                                             "tools"};
  for (const auto& item : space.items()) {
    if (std::ranges::find(kKnown, item.key()) != kKnown.end()) continue;
    check_extra_field(path + "." + item.key(), item.key(), item.value(), {}, kKnown);
  }
  const std::string space_name = text_member(space, "name", path);
  const bool is_described = member_of(space, "description") != nullptr;
  const std::string about = is_described ? text_member(space, "description", path) : "";
  const auto tools = space.find("tools");
  if (tools == space.end() || !tools->is_array()) {
    fail_body(path + ".tools", "expected an array of functions");
  }
  for (size_t i = 0; i < tools->size(); ++i) {
    const std::string at = fmt::format("{}.tools[{}]", path, i);
    const OrderedJson& tool = (*tools)[i];
    if (const std::string type = type_of_tool(tool, at); type != "function") refuse_tool(type, at);
    OrderedJson nested = nested_function(tool, at);
    OrderedJson& function = nested["function"];
    const std::string name = text_member(tool, "name", at);
    const std::string shown = shown_tool_name(space_name, name);
    function["name"] = shown;
    if (!about.empty()) {
      const bool has_own = function.contains("description");
      const std::string own = has_own ? text_member(function, "description", at) : "";
      function["description"] = own.empty() ? about : about + "\n" + own;
    }
    names[shown] = {.space = space_name, .name = name};
    out.push_back(std::move(nested));
  }
}

// One that may look at nothing but what its provider keeps, which is nothing here.
bool is_search_without_web(const OrderedJson& tool, const std::string& type) {
  return type == "web_search" &&
         tool.value("external_web_access", OrderedJson()) == OrderedJson(false);
}

void show_choice(OrderedJson& choice) {
  if (!choice.is_object()) return;
  const auto space = choice.find("namespace");
  const auto name = choice.find("name");
  if (space != choice.end() && space->is_string() && name != choice.end() && name->is_string()) {
    choice["name"] = shown_tool_name(space->get<std::string>(), name->get<std::string>());
  }
}

}  // namespace

const OrderedJson* member_of(const OrderedJson& item, const char* name) {
  const auto it = item.find(name);
  return it == item.end() || it->is_null() ? nullptr : &*it;
}

std::string text_member(const OrderedJson& item, const char* name, const std::string& path) {
  const OrderedJson* const found = member_of(item, name);
  const std::string where = path + "." + name;
  if (found == nullptr) fail_body(where, "missing field");
  std::string out;
  read_body_value(*found, where, out);
  return out;
}

std::string shown_tool_name(const std::string& space, const std::string& name) {
  return space + "__" + name;
}

NamespacedTool told_tool(const ToolNames& names, const std::string& shown) {
  const auto found = names.find(shown);
  return found == names.end() ? NamespacedTool{.space = {}, .name = shown} : found->second;
}

std::optional<OrderedJson> nested_tools(const std::optional<OrderedJson>& tools, ToolNames& names) {
  if (!tools) return std::nullopt;
  if (!tools->is_array()) fail_body_type("tools", "an array of objects", *tools);
  OrderedJson out = OrderedJson::array();
  for (size_t i = 0; i < tools->size(); ++i) {
    const std::string path = fmt::format("tools[{}]", i);
    const OrderedJson& tool = (*tools)[i];
    const std::string type = type_of_tool(tool, path);
    if (type == "function") {
      out.push_back(nested_function(tool, path));
    } else if (type == "namespace") {
      add_namespace(tool, path, names, out);
    } else if (!is_search_without_web(tool, type)) {
      refuse_tool(type, path);
    }
  }
  return out;
}

std::optional<OrderedJson> shown_tool_choice(const std::optional<OrderedJson>& choice) {
  if (!choice || !choice->is_object()) return choice;
  OrderedJson out = *choice;
  show_choice(out);
  if (const auto tools = out.find("tools"); tools != out.end() && tools->is_array()) {
    for (OrderedJson& tool : *tools) show_choice(tool);
  }
  return out;
}

}  // namespace tgi::http
