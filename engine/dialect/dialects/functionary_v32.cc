// Functionary 3.2: who is spoken to on a line of its own, behind a mark that the prompt ends with.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"functionary_v32">() {
  static constexpr ToolDialect kThis{
      .name = "functionary_v32",
      .syntax = {.call = {name(), mark("\n"), arguments()},
                 .separator = {mark(">>>")},
                 .place = CallPlace::kMessages},
      .before_text = "all\n",
      .dropped = {">>>all\n"},
      .speaks = [](const ChatTemplate& chat_template) { return shows(chat_template, ">>>all"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
