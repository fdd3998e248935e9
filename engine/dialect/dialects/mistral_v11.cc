// Mistral from its tokenizer v11 on: the name, and the arguments behind a mark.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

namespace {

constexpr CallSyntax kBare[] = {{
    .call = {mark("[TOOL_CALLS]"), name(), arguments()},
}};

}  // namespace

template <>
const ToolDialect& tool_dialect<"mistral_v11">() {
  static constexpr ToolDialect kThis{
      .name = "mistral_v11",
      .syntax = {.call = {mark("[TOOL_CALLS]"), name(), id("[CALL_ID]"), mark("[ARGS]"),
                          arguments()}},
      .also = kBare,
      .ids = CallIds::kNine,
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "[TOOL_CALLS]") && shows(chat_template, "[ARGS]");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
