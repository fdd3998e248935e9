#include "cmd/http/tools_body.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace tgi::http {
namespace {

template <typename... Args>
[[noreturn]] void tool_error(fmt::format_string<Args...> format, Args&&... args) {
  throw ApiError(422, "tool_error",
                 "Tool error: " + fmt::format(format, std::forward<Args>(args)...));
}

// {"type": "function", "function": {"name": ...}}, and OpenAI's newer {"type": "function", "name"}.
std::string name_of_function(const OrderedJson& json, const std::string& path) {
  if (!json.is_object()) fail_body_type(path, "an object that names a function", json);
  const auto type = json.find("type");
  if (type != json.end() && !type->is_null() && *type != OrderedJson("function")) {
    fail_body(path + ".type", "only functions can be chosen, expected \"function\"");
  }
  const auto function = json.find("function");
  const bool is_nested = function != json.end() && function->is_object();
  const OrderedJson& named = is_nested ? *function : json;
  const auto name = named.find("name");
  const std::string at = path + (is_nested ? ".function.name" : ".name");
  if (name == named.end()) fail_body(at, "missing field");
  std::string out;
  read_body_value(*name, at, out);
  return out;
}

ipc::ToolChoice one_function(std::string name) {
  ipc::ToolChoice out;
  out.mode = "required";
  out.names.push_back(std::move(name));
  return out;
}

ipc::ToolChoice allowed_tools(const OrderedJson& json, const std::string& path) {
  if (!json.is_object()) fail_body_type(path, "an object with mode and tools", json);
  ipc::ToolChoice out;
  if (const auto mode = json.find("mode"); mode != json.end() && !mode->is_null()) {
    read_body_value(*mode, path + ".mode", out.mode);
    if (out.mode != "auto" && out.mode != "required") {
      fail_body(path + ".mode", "expected auto or required");
    }
  }
  const auto tools = json.find("tools");
  if (tools == json.end() || !tools->is_array() || tools->empty()) {
    fail_body(path + ".tools", "expected a list of at least one function");
  }
  for (size_t i = 0; i < tools->size(); ++i) {
    out.names.push_back(name_of_function((*tools)[i], fmt::format("{}.tools[{}]", path, i)));
  }
  return out;
}

ipc::ToolChoice choice_of(const OrderedJson& json) {
  if (json.is_string()) {
    ipc::ToolChoice out;
    out.mode = json.get<std::string>();
    if (out.mode == "auto" || out.mode == "none" || out.mode == "required") return out;
    return one_function(out.mode);  // as in TGI
  }
  if (!json.is_object()) fail_body_type("tool_choice", "a text or an object", json);
  if (json.value("type", OrderedJson()) == OrderedJson("allowed_tools")) {
    const auto nested = json.find("allowed_tools");
    return nested == json.end() ? allowed_tools(json, "tool_choice")
                                : allowed_tools(*nested, "tool_choice.allowed_tools");
  }
  return one_function(name_of_function(json, "tool_choice"));
}

// The name of a tool in the list; what is wrong with the list itself the daemon says.
bool has_tool(const OrderedJson& tools, const std::string& name) {
  return std::any_of(tools.begin(), tools.end(), [&](const OrderedJson& tool) {
    if (!tool.is_object() || !tool.contains("function")) return false;
    const OrderedJson& function = tool["function"];
    return function.is_object() && function.value("name", OrderedJson()) == OrderedJson(name);
  });
}

void check_effort(const std::string& effort, std::string_view path) {
  constexpr std::array<std::string_view, 7> kEfforts = {"none", "minimal", "low", "medium",
                                                        "high", "xhigh",   "max"};
  if (std::find(kEfforts.begin(), kEfforts.end(), effort) != kEfforts.end()) return;
  fail_body(std::string(path), fmt::format("unknown effort `{}`, expected one of {}",
                                           effort.substr(0, 100), fmt::join(kEfforts, ", ")));
}

}  // namespace

ToolsAsked tools_of(const ToolFields& fields, bool supports_grammars) {
  ToolsAsked out;
  out.parallel = fields.parallel_tool_calls.value_or(true);
  if (fields.tool_choice) out.choice = choice_of(*fields.tool_choice);
  const bool has_tools = fields.tools && !(fields.tools->is_array() && fields.tools->empty());
  if (has_tools && !fields.tools->is_array()) {
    fail_body_type("tools", "an array of objects", *fields.tools);
  }
  // Mistral's word, where no tool is called so.
  if (fields.tool_choice && *fields.tool_choice == OrderedJson("any") &&
      !(has_tools && has_tool(*fields.tools, "any"))) {
    out.choice->mode = "required";
    out.choice->names.clear();
  }
  if (out.choice && out.choice->mode == "none") return out;  // as if there were none
  if (out.choice) {
    for (const std::string& name : out.choice->names) {
      if (has_tools && has_tool(*fields.tools, name)) continue;
      tool_error("Tool with name {} not found", name.substr(0, 100));
    }
    if (out.choice->mode == "required" && !has_tools) {
      tool_error("a call is required, and there are no tools");
    }
    // huggingface_hub names a function without a type.
    const bool is_one =
        fields.tool_choice->is_string() ||
        fields.tool_choice->value("type", OrderedJson()) != OrderedJson("allowed_tools");
    if (is_one && !out.choice->names.empty()) out.parallel = false;
  }
  if (!has_tools) {
    out.choice.reset();
    return out;
  }
  require(supports_grammars,
          "`tools`: calls are made with grammars, which this server does not support");
  out.tools = fields.tools;
  out.tool_prompt = fields.tool_prompt;
  if (out.tool_prompt && out.tool_prompt->empty()) out.tool_prompt.reset();
  return out;
}

ReasoningAsked reasoning_of(const ReasoningFields& fields) {
  ReasoningAsked out;
  out.effort = fields.reasoning_effort;
  constexpr int64_t kUnlimited = -1;  // as vLLM
  if (fields.thinking_token_budget != kUnlimited) out.max_tokens = fields.thinking_token_budget;
  out.is_told = fields.include_reasoning.value_or(true);
  if (out.effort) check_effort(*out.effort, "reasoning_effort");
  if (fields.reasoning) {
    const OrderedJson& json = *fields.reasoning;
    if (!json.is_object()) fail_body_type("reasoning", "an object", json);
    for (const auto& item : json.items()) {
      const std::string path = "reasoning." + item.key().substr(0, 100);
      if (item.value().is_null()) continue;
      if (item.key() == "effort") {
        read_body_value(item.value(), path, out.effort.emplace());
        check_effort(*out.effort, path);
      } else if (item.key() == "max_tokens") {
        read_body_value(item.value(), path, out.max_tokens.emplace());
      } else if (item.key() == "exclude") {
        bool is_excluded = false;
        read_body_value(item.value(), path, is_excluded);
        out.is_told = !is_excluded;
      } else if (item.key() == "enabled") {
        bool is_enabled = true;
        read_body_value(item.value(), path, is_enabled);
        if (!is_enabled) out.effort = "none";
      } else if (item.key() != "summary") {  // the reasoning itself is told
        fail_body(path, "unknown field, expected one of effort, max_tokens, exclude, enabled");
      }
    }
  }
  require(!out.max_tokens || *out.max_tokens >= 0,
          "the tokens of the reasoning must be at least 0. Given: {}", out.max_tokens.value_or(0));
  return out;
}

}  // namespace tgi::http
