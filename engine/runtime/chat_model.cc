#include "engine/runtime/chat_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "engine/dialect/marked_text.h"
#include "engine/dialect/reasoning_effort.h"

namespace tgi {
namespace {

template <typename... Args>
[[noreturn]] void refuse_chat(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Code::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

// A template may write a mark for an image, but nothing would show the image to the model.
void check_parts(const ipc::OrderedJson& messages) {
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto content = messages[i].find("content");
    if (content == messages[i].end() || !content->is_array()) continue;
    for (size_t k = 0; k < content->size(); ++k) {
      const ipc::OrderedJson& part = (*content)[k];
      const bool is_text = part.is_object() && part.contains("type") && part["type"] == "text" &&
                           part.contains("text") && part["text"].is_string();
      if (is_text) continue;
      refuse_chat(
          "messages[{}].content[{}]: expected {{\"type\": \"text\", \"text\": ...}}, got {}", i, k,
          part.is_object() && part.contains("type") && part["type"].is_string()
              ? fmt::format("a part of type {}", part["type"].get<std::string>())
              : "something else");
    }
  }
}

}  // namespace

ChatModel::ChatModel(const ChatTemplate& chat_template,
                     const Tokenizer& tokenizer,
                     const dialect::Dialects& dialects)
    : chat_template_(chat_template),
      dialects_(std::make_shared<const dialect::ReadDialects>(
          dialects, dialect::special_tokens_of(tokenizer))),
      why_no_tools_(dialects.why_no_tools),
      facts_(dialect::template_facts(chat_template)) {}

template <typename Asked>
ChatModel::Prompt ChatModel::shown(const Asked& asked, bool parallel_tool_calls) const {
  const ipc::OrderedJson& messages = *asked.messages;
  if (!messages.is_array() || messages.empty())
    refuse_chat("messages must be a list of at least one message");
  check_parts(messages);
  Prompt out;
  ipc::OrderedJson tools;
  const bool shows_tools = asked.tools && !asked.tools->empty() &&
                           !(asked.tool_choice && asked.tool_choice->mode == "none");
  if (shows_tools) {
    if (dialects_->tools == nullptr) {
      throw Error(Code::kUnsupported, fmt::format("tools: {}", why_no_tools_));
    }
    tools = dialect::checked_tools(*asked.tools);
    out.tools = dialect::tool_use(tools, asked.tool_choice, parallel_tool_calls);
  } else if (asked.tool_choice && asked.tool_choice->mode == "required") {
    refuse_chat("tool_choice: a call is required, and there are no tools");
  }
  const dialect::ToolPrompt prompt{.tools = shows_tools ? &tools : nullptr,
                                   .tool_prompt = asked.tool_prompt ? &*asked.tool_prompt : nullptr,
                                   .must_call = out.tools.must_call};
  const dialect::ShownChat chat = dialect::shown_chat(messages, prompt, facts_, dialects_->tools);
  RenderOptions options;
  options.add_generation_prompt = !asked.continue_final_message;
  options.continue_final_message = asked.continue_final_message;
  options.tools = chat.tools;
  if (asked.chat_template_kwargs) options.extra = *asked.chat_template_kwargs;
  if (asked.reasoning_effort) {
    dialect::add_reasoning_effort(dialects_->reasoning, *asked.reasoning_effort, options.extra);
  }
  try {
    out.text = chat_template_.render(chat.messages, options);
  } catch (const Error& error) {
    const std::string said = error.what();
    if (chat.tools == nullptr) throw Error(Code::kTemplate, said);
    const ipc::OrderedJson more = dialect::described(*chat.tools);
    options.tools = &more;
    try {
      out.text = chat_template_.render(chat.messages, options);
    } catch (const Error&) {
      throw Error(Code::kTemplate, said);
    }
  }
  return out;
}

// Templates of models that always reason begin it themselves; others close it at once where it is
// not wanted, or begin the text.
void ChatModel::note_begin(Prompt& prompt) const {
  const std::string_view end =
      std::string_view(prompt.text).substr(0, prompt.text.find_last_not_of(" \n\r\t") + 1);
  const std::string before_text = dialect::unmarked(dialects_->before_text);
  const bool has_begun = !before_text.empty() && end.ends_with(before_text);
  prompt.has_marks = !before_text.empty() || !dialects_->dropped.empty();
  prompt.marks_text = !before_text.empty() && !has_begun;
  const dialect::ReasoningDialect* const how = dialects_->reasoning;
  const auto ends_with = [&](std::string_view mark) { return end.ends_with(mark); };
  if (how == nullptr || has_begun || std::ranges::any_of(how->ends(), ends_with)) return;
  const bool begins = std::ranges::any_of(how->begins(), ends_with);
  prompt.reasoning = begins ? Reasoning::kBegun : Reasoning::kPossible;
}

ChatModel::Prompt ChatModel::render(const ipc::GenerateRequest& asked) const {
  Prompt out = shown(asked, asked.parallel_tool_calls.value_or(true));
  const bool reads_answer = asked.parse_answer.value_or(false) || !out.tools.tools.empty();
  if (reads_answer && !asked.continue_final_message) note_begin(out);
  return out;
}

std::string ChatModel::render(const ipc::TokenizeParams& asked) const {
  return shown(asked, true).text;
}

std::shared_ptr<const dialect::AnswerReading> ChatModel::reading(const Prompt& prompt) const {
  const bool reads_text_alone =
      prompt.tools.tools.empty() && prompt.reasoning == Reasoning::kNone && !prompt.has_marks;
  if (reads_text_alone) return nullptr;
  auto out = std::make_shared<dialect::AnswerReading>();
  out->dialects = dialects_;
  out->tools = dialect::known_tools(prompt.tools.tools);
  out->starts_in_reasoning = prompt.reasoning == Reasoning::kBegun;
  return out;
}

}  // namespace tgi
