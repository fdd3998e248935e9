// Command R and R+: a block of JSON behind a word.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"command_r_plus">() {
  static constexpr ToolDialect kThis{
      .name = "command_r_plus",
      .syntax = {.begin = {mark("Action:"), gap(), mark("```json"), gap(), mark("["), gap()},
                 .call = {object("tool_name", "parameters")},
                 .separator = {gap(), mark(","), gap()},
                 .end = {gap(), mark("]"), gap(), mark("```")}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "Action:") && shows(chat_template, "```json");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
