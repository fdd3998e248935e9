// DeepSeek V4.1: as V4 with a space before each word.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"deepseek_v41">() {
  static constexpr ToolDialect kThis{
      .name = "deepseek_v41",
      .syntax = {.begin = {mark("<｜DSML｜ calls>"), gap()},
                 .call = {mark("<｜DSML｜ invoke name=\""), name(), mark("\">"),
                          typed_parameters("<｜DSML｜ parameter name=\"", "\" string=\"true\">",
                                           "\" string=\"false\">", "</｜DSML｜ parameter>"),
                          mark("</｜DSML｜ invoke>")},
                 .separator = {gap()},
                 .end = {gap(), mark("</｜DSML｜ calls>")}},
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "｜DSML｜ calls>"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
