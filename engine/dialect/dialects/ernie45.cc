// ERNIE 4.5's thinking models: the answer stands between tags too. Their calls are Hermes'.
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
            return shows(chat_template, "<response>") && shows(chat_template, "<think>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
