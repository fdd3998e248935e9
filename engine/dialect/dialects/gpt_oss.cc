// gpt-oss: messages in channels. A call ends the answer with a token of its own.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"gpt_oss">() {
  static constexpr ToolDialect kThis{
      .name = "gpt_oss",
      .syntax = {.call = {mark("<|channel|>commentary to=functions.",
                               {"<|start|>assistant to=functions.", "to=functions."}),
                          name(),
                          mark(" <|constrain|>json<|message|>",
                               {"<|message|>", "<|constrain|>json<|message|>", " json<|message|>",
                                "<|channel|>commentary json<|message|>"}),
                          arguments()},
                 .place = CallPlace::kInsteadOfText,
                 .several = false},
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
