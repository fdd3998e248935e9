#include "cmd/chat_tools.h"

#include <fmt/format.h>

#include "base/bounded_json.h"
#include "base/error.h"
#include "cmd/output.h"

namespace tgi {

using ipc::OrderedJson;

OrderedJson read_tools(const std::string& path) {
  const std::string text = read_document(path);
  OrderedJson json;
  try {
    json = ipc::parse_json(text);
  } catch (const Error& error) {
    throw error.in(path);
  }
  if (json.is_object() && json.contains("tools")) json = OrderedJson(json["tools"]);
  if (!json.is_array() || json.empty()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected a JSON list of tools: [{{\"type\": \"function\", "
                            "\"function\": {{\"name\": ..., \"parameters\": ...}}}}]",
                            path));
  }
  for (OrderedJson& tool : json) {
    if (!tool.is_object() || tool.contains("function")) continue;
    tool = {{"type", "function"}, {"function", OrderedJson(tool)}};
  }
  return json;
}

OrderedJson message_with_calls(const std::string& text, const std::vector<ipc::ToolCall>& calls) {
  OrderedJson list = OrderedJson::array();
  for (const ipc::ToolCall& call : calls) {
    list.push_back({{"id", call.id},
                    {"type", "function"},
                    {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return {{"role", "assistant"}, {"content", text}, {"tool_calls", std::move(list)}};
}

OrderedJson message_of_result(const ipc::ToolCall& call, const std::string& result) {
  return {{"role", "tool"}, {"tool_call_id", call.id}, {"name", call.name}, {"content", result}};
}

std::string call_line(const ipc::ToolCall& call) {
  const OrderedJson json = {
      {"id", call.id}, {"name", call.name}, {"arguments", json_or_discarded(call.arguments)}};
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace tgi
