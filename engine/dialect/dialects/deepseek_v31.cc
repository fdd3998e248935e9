// DeepSeek V3.1.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"deepseek_v31">() {
  static constexpr ToolDialect kThis{
      .name = "deepseek_v31",
      .syntax = {.begin = {mark("<｜tool▁calls▁begin｜>")},
                 .call = {mark("<｜tool▁call▁begin｜>"), name(), mark("<｜tool▁sep｜>"),
                          arguments(), mark("<｜tool▁call▁end｜>")},
                 .end = {mark("<｜tool▁calls▁end｜>")}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<｜tool▁calls▁begin｜>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
