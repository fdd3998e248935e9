// ERNIE 4.5's thinking models, whose calls are Hermes', and Granite 3.3: the answer stands between
// tags too.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ReasoningDialect& reasoning_dialect<"ernie45">() {
  static constexpr ReasoningDialect kThis{
      .name = "ernie45",
      .begin = "<think>",
      .end = "</think>",
      .dropped = {"<response>\n", "\n</response>", "<response>", "</response>"},
      .speaks =
          [](const ChatTemplate& chat_template) {
            // MiniMax has these tags around what tools said.
            return shows(chat_template, "<think>") && shows(chat_template, "<response>") &&
                   (shows(chat_template, "global_setting>") ||
                    shows(chat_template, "between <response></response>"));
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
