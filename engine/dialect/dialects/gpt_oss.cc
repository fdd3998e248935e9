// gpt-oss: messages in channels. A call ends the answer with a token of its own. What is said of
// calls before them stands in a channel that is told as text.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

namespace {

// Who is spoken to stands with the role or with the channel; calls in the channel of thoughts are
// calls as well.
constexpr CallSyntax kGptOssOthers[] = {
    {.call = {mark(" to=functions.", {"<|start|>assistant to=functions.", "to=functions."}), name(),
              mark("<|channel|>commentary", {"<|channel|>analysis"}), maybe(" "),
              maybe("<|constrain|>"), maybe("json"), mark("<|message|>"), arguments()},
     .place = CallPlace::kInsteadOfText,
     .several = false,
     .is_taken = true},
    {.call = {mark("<|channel|>analysis to=functions."), name(), maybe(" "), maybe("<|constrain|>"),
              maybe("json"), mark("<|message|>"), arguments()},
     .place = CallPlace::kInsteadOfText,
     .several = false,
     .is_taken = true}};

}  // namespace

template <>
const ToolDialect& tool_dialect<"gpt_oss">() {
  static constexpr ToolDialect kThis{
      .name = "gpt_oss",
      .syntax = {.call = {mark("<|channel|>commentary to=functions."), name(), maybe(" "),
                          maybe("<|constrain|>"), maybe("json"), mark("<|message|>"), arguments()},
                 .place = CallPlace::kInsteadOfText,
                 .several = false},
      .also = kGptOssOthers,
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "<|channel|>"); },
  };
  return kThis;
}

template <>
const ReasoningDialect& reasoning_dialect<"gpt_oss">() {
  static constexpr ReasoningDialect kThis{
      .name = "gpt_oss",
      .begin = "<|channel|>analysis<|message|>",
      .end = "<|end|>",
      .after = "<|start|>assistant",
      .before_text = "<|channel|>final<|message|>",
      .before_preamble = "<|channel|>commentary<|message|>",
      .dropped = {"<|start|>assistant", "<|channel|>final<|message|>",
                  "<|channel|>commentary<|message|>",
                  "<|channel|>final <|constrain|>json<|message|>", "<|end|>",
                  "<|channel|>commentary <|message|>"},
      .is_anywhere = true,
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<|channel|>analysis<|message|>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
