// DeepSeek V3 and R1: the arguments in a block of code.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"deepseek_v3">() {
  static constexpr ToolDialect kThis{
      .name = "deepseek_v3",
      .syntax = {.begin = {mark("<｜tool▁calls▁begin｜>")},
                 .call = {mark("<｜tool▁call▁begin｜>"), mark("function"), mark("<｜tool▁sep｜>"),
                          name(), mark("\n```json\n"), arguments(), gap(),
                          mark("```<｜tool▁call▁end｜>")},
                 .separator = {gap()},
                 .end = {gap(), mark("<｜tool▁calls▁end｜>")}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<｜tool▁calls▁begin｜>") &&
                   shows(chat_template, "```json");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
