// Inkling: messages of thoughts, of text and of calls, each of a kind that a token names. The
// prompt has begun the first. A call's name stands before it and in it.
#include <array>
#include <string_view>

#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

namespace {

constexpr std::string_view kInklingMessage = "<|message_model|>";
constexpr std::string_view kInklingBeforeText = "<|content_text|>";
constexpr std::array<std::string_view, 6> kInklingAroundText = {
    kInklingMessage, kInklingBeforeText, "<|end_message|>", "<|content_model_end_sampling|>"};

bool shows_inkling(const ChatTemplate& chat_template) {
  return shows(chat_template, "<|content_invoke_tool_json|>");
}

}  // namespace

template <>
const ToolDialect& tool_dialect<"inkling">() {
  static constexpr ToolDialect kThis{
      .name = "inkling",
      .syntax = {.call = {name(), gap(), mark("<|content_invoke_tool_json|>"), gap(),
                          mark("{\"name\":\"", {"{\"name\": \""}), name(),
                          mark("\",\"args\":", {"\", \"args\":"}), arguments(), gap(), mark("}"),
                          gap(), mark("<|end_message|>")},
                 .separator = {maybe("<|end_message|>"), gap(), mark(kInklingMessage)},
                 .place = CallPlace::kMessages},
      .before_text = kInklingBeforeText,
      .dropped = kInklingAroundText,
      .speaks = shows_inkling,
  };
  return kThis;
}

template <>
const ReasoningDialect& reasoning_dialect<"inkling">() {
  static constexpr ReasoningDialect kThis{
      .name = "inkling",
      .begin = "<|content_thinking|>",
      .end = "<|end_message|>",
      .after = kInklingMessage,
      .before_text = kInklingBeforeText,
      .dropped = kInklingAroundText,
      .is_anywhere = true,
      .speaks = shows_inkling,
  };
  return kThis;
}

}  // namespace tgi::dialect
