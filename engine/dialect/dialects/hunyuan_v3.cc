// Hunyuan 3: each argument between tags, which may carry a suffix.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"hunyuan_v3">() {
  static constexpr ToolDialect kThis{
      .name = "hunyuan_v3",
      .syntax = {.begin = {mark("<tool_calls:opensource>"), gap()},
                 .call = {mark("<tool_call:opensource>"), name(), gap(),
                          mark("<tool_sep:opensource>"), gap(),
                          parameters_with_value("<arg_key:opensource>", "</arg_key:opensource>",
                                                "<arg_value:opensource>",
                                                "</arg_value:opensource>"),
                          mark("</tool_call:opensource>")},
                 .separator = {gap()},
                 .end = {gap(), mark("</tool_calls:opensource>")}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "tool_calls{}") && shows(chat_template, ":opensource");
          },
  };
  return kThis;
}

template <>
const ReasoningDialect& reasoning_dialect<"hunyuan_v3">() {
  static constexpr ReasoningDialect kThis{
      .name = "hunyuan_v3",
      .begin = "<think:opensource>",
      .end = "</think:opensource>",
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "tool_calls{}") && shows(chat_template, ":opensource");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
