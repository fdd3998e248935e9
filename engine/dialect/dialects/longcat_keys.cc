// LongCat Flash since its thinking models: as GLM 4.5 with other tags.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"longcat_keys">() {
  static constexpr ToolDialect kThis{
      .name = "longcat_keys",
      .syntax = {.call = {mark("<longcat_tool_call>"), name(), gap(),
                          parameters_with_value("<longcat_arg_key>", "</longcat_arg_key>",
                                                "<longcat_arg_value>", "</longcat_arg_value>"),
                          mark("</longcat_tool_call>")},
                 .separator = {gap()}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<longcat_arg_key>");
          },
  };
  return kThis;
}

template <>
const ReasoningDialect& reasoning_dialect<"longcat">() {
  static constexpr ReasoningDialect kThis{
      .name = "longcat",
      .begin = "<longcat_think>",
      .end = "</longcat_think>",
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "</longcat_think>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
