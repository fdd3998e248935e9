// Reasoning between <think> tags: DeepSeek R1, Qwen 3, GLM 4.5 and most others.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ReasoningDialect& reasoning_dialect<"think">() {
  static constexpr ReasoningDialect kThis{
      .name = "think",
      .begin = "<think>",
      .end = "</think>",
      .speaks = [](const ChatTemplate& chat_template) { return shows(chat_template, "</think>"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
