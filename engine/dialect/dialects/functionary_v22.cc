// Functionary 2: messages to the user and to tools, each with its recipient.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"functionary_v22">() {
  static constexpr ToolDialect kThis{
      .name = "functionary_v22",
      .syntax = {.call = {name(), gap(), mark("<|content|>"), arguments()},
                 .separator = {gap(), mark("<|from|>assistant"), gap(), mark("<|recipient|>")},
                 .place = CallPlace::kMessages},
      .before_text = "all\n<|content|>",
      .dropped = {"<|from|>assistant\n<|recipient|>all\n<|content|>"},
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "<|recipient|>"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
