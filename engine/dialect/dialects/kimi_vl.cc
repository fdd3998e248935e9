// Kimi VL Thinking.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ReasoningDialect& reasoning_dialect<"kimi_vl">() {
  static constexpr ReasoningDialect kThis{
      .name = "kimi_vl",
      .begin = "◁think▷",
      .end = "◁/think▷",
      .speaks = [](const ChatTemplate& chat_template) { return shows(chat_template, "◁/think▷"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
