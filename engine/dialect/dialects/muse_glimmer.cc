// Muse Glimmer: messages to oneself, to the user and to tools, each with its recipient.
#include <array>
#include <string_view>

#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

namespace {

constexpr std::string_view kMuseToUser = " to=user<|message|>";
constexpr std::array<std::string_view, 6> kMuseAroundText = {
    "<|start|>assistant to=user<|message|>", "<|start|>assistant", "<|eom|>"};

}  // namespace

template <>
const ToolDialect& tool_dialect<"muse_glimmer">() {
  static constexpr ToolDialect kThis{
      .name = "muse_glimmer",
      .syntax = {.call = {mark(" to=", {"to="}), name(), mark("<|message|>"),
                          mark("<atem:function_calls>"), gap(), mark("<atem:invoke name=\""),
                          name(), mark("\">"),
                          parameters("<atem:parameter name=\"", "\">", "</atem:parameter>",
                                     /*on_lines=*/false),
                          mark("</atem:invoke>"), gap(), mark("</atem:function_calls>")},
                 .separator = {maybe("<|eom|>"), mark("<|start|>assistant")},
                 .place = CallPlace::kMessages},
      .before_text = kMuseToUser,
      .dropped = kMuseAroundText,
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "atem:function_calls");
          },
  };
  return kThis;
}

template <>
const ReasoningDialect& reasoning_dialect<"muse_glimmer">() {
  static constexpr ReasoningDialect kThis{
      .name = "muse_glimmer",
      .begin = " to=self<|message|>",
      .end = "<|eom|>",
      .after = "<|start|>assistant",
      .before_text = kMuseToUser,
      .dropped = kMuseAroundText,
      .is_anywhere = true,
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "atem:function_calls");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
