// IQuest Q1: as GLM 4.5 with another tag around a call.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"iquest_q1">() {
  static constexpr ToolDialect kThis{
      .name = "iquest_q1",
      .syntax = {.call = {mark("<iquest_tool_call>"), name(), gap(),
                          parameters_with_value("<arg_key>", "</arg_key>", "<arg_value>",
                                                "</arg_value>"),
                          mark("</iquest_tool_call>")},
                 .separator = {gap()}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<iquest_tool_call>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
