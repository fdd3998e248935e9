// DeepSeek V3.2: tags that say which arguments are texts.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"deepseek_v32">() {
  static constexpr ToolDialect kThis{
      .name = "deepseek_v32",
      .syntax = {.begin = {mark("<｜DSML｜function_calls>"), gap()},
                 .call = {mark("<｜DSML｜invoke name=\""), name(), mark("\">"),
                          typed_parameters("<｜DSML｜parameter name=\"", "\" string=\"true\">",
                                           "\" string=\"false\">", "</｜DSML｜parameter>"),
                          mark("</｜DSML｜invoke>")},
                 .separator = {gap()},
                 .end = {gap(), mark("</｜DSML｜function_calls>")}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "｜DSML｜") && shows(chat_template, "function_calls>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
