// DeepSeek V4: as V3.2 with another tag.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"deepseek_v4">() {
  static constexpr ToolDialect kThis{
      .name = "deepseek_v4",
      .syntax = {.begin = {mark("<｜DSML｜tool_calls>"), gap()},
                 .call = {mark("<｜DSML｜invoke name=\""), name(), mark("\">"),
                          typed_parameters("<｜DSML｜parameter name=\"", "\" string=\"true\">",
                                           "\" string=\"false\">", "</｜DSML｜parameter>"),
                          mark("</｜DSML｜invoke>")},
                 .separator = {gap()},
                 .end = {gap(), mark("</｜DSML｜tool_calls>")}},
      .speaks = [](const ChatTemplate& chat_template) { return shows(chat_template, "｜DSML｜"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
