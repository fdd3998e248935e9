// InternLM 2 and 2.5: an object between tokens.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"internlm2">() {
  static constexpr ToolDialect kThis{
      .name = "internlm2",
      .syntax = {.call = {mark("<|action_start|><|plugin|>"), gap(), object("name", "parameters"),
                          gap(), mark("<|action_end|>")},
                 .separator = {gap()}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<|action_start|>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
