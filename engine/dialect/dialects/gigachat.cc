// GigaChat 3: one call behind a token.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"gigachat">() {
  static constexpr ToolDialect kThis{
      .name = "gigachat",
      .syntax = {.call = {mark("<|function_call|>", {"function call<|role_sep|>\n"}), gap(),
                          object("name", "arguments")},
                 .several = false},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<|function_call|>") ||
                   shows(chat_template, "<|role_sep|>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
