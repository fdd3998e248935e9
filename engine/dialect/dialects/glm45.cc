// GLM 4.5 to 4.7: each argument between tags, its name too.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"glm45">() {
  static constexpr ToolDialect kThis{
      .name = "glm45",
      .syntax = {.call = {mark("<tool_call>"), name(), gap(),
                          parameters_with_value("<arg_key>", "</arg_key>", "<arg_value>",
                                                "</arg_value>"),
                          mark("</tool_call>")},
                 .separator = {gap()}},
      .speaks = [](const ChatTemplate& chat_template) { return shows(chat_template, "<arg_key>"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
