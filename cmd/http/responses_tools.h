// The tools of /v1/responses as functions of chats, and the names that these have there: a function
// of a namespace is shown to the model by both names in one, and told to the client by each.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "cmd/http/body_table.h"

namespace tgi::http {

// A member of an object that a client gave; null: it is not there, or null.
const OrderedJson* member_of(const OrderedJson& item, const char* name);
// A text that has to be there. `path`: of the object, for who hears that it is not.
std::string text_member(const OrderedJson& item, const char* name, const std::string& path);

// How a function is told.
struct NamespacedTool {
  std::optional<std::string> space;  // nothing: it is in no namespace
  std::string name;
};
// By the names that models are shown; functions without a namespace are not in it.
using ToolNames = std::map<std::string, NamespacedTool, std::less<>>;

// The name that models are shown.
std::string shown_tool_name(const std::string& space, const std::string& name);
// What a client knows a function by that models are shown so.
NamespacedTool told_tool(const ToolNames& names, const std::string& shown);

// As chats have them. Throws for what is neither a function nor a namespace of functions; a search
// that may not go out to the web is left out, for there is nothing that it could find.
std::optional<OrderedJson> nested_tools(const std::optional<OrderedJson>& tools, ToolNames& names);

// A choice of functions by the names that models are shown.
std::optional<OrderedJson> shown_tool_choice(const std::optional<OrderedJson>& choice);

}  // namespace tgi::http
