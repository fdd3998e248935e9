// Granite 20B for function calling: a tag and an object for each call.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"granite_20b_fc">() {
  static constexpr ToolDialect kThis{
      .name = "granite_20b_fc",
      .syntax = {.call = {mark("<function_call>"), gap(), object("name", "arguments")},
                 .separator = {gap()}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<function_call>") && shows(chat_template, "no_function");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
