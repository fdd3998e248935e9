// Mistral up to its tokenizer v7: a list of calls.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"mistral">() {
  static constexpr ToolDialect kThis{
      .name = "mistral",
      .syntax = {.begin = {mark("[TOOL_CALLS]"), gap(), mark("["), gap()},
                 .call = {object("name", "arguments")},
                 .separator = {gap(), mark(","), gap()},
                 .end = {gap(), mark("]")}},
      .ids = CallIds::kNine,
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "[TOOL_CALLS]"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
