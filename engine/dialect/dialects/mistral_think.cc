// Reasoning of Magistral and Ministral.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ReasoningDialect& reasoning_dialect<"mistral">() {
  static constexpr ReasoningDialect kThis{
      .name = "mistral",
      .begin = "[THINK]",
      .end = "[/THINK]",
      .speaks = [](const ChatTemplate& chat_template) { return shows(chat_template, "[THINK]"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
