// Kimi K3: each argument with its type between tokens, and the text too.
#include <array>
#include <string_view>

#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

namespace {

constexpr std::string_view kKimiBeforeText = "<|open|>response<|sep|>";
constexpr std::array<std::string_view, 6> kKimiAroundText = {
    kKimiBeforeText, "<|close|>response<|sep|>", "<|close|>message<|sep|>"};

}  // namespace

template <>
const ToolDialect& tool_dialect<"kimi_k3">() {
  static constexpr ToolDialect kThis{
      .name = "kimi_k3",
      .syntax = {.begin = {maybe(kKimiBeforeText), maybe("<|close|>response<|sep|>"),
                           mark("<|open|>tools<|sep|>")},
                 .call = {mark("<|open|>call tool=\""), name(), mark("\" index=\""), number(1),
                          mark("\"<|sep|>"),
                          parameters_with_types("<|open|>argument key=\"", "\" type=\"",
                                                "\"<|sep|>", "<|close|>argument<|sep|>"),
                          mark("<|close|>call<|sep|>")},
                 .end = {mark("<|close|>tools<|sep|>"), maybe("<|close|>message<|sep|>")}},
      .before_text = kKimiBeforeText,
      .dropped = kKimiAroundText,
      .ends_reasoning = true,
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<|open|>") && shows(chat_template, "<|sep|>");
          },
  };
  return kThis;
}

template <>
const ReasoningDialect& reasoning_dialect<"kimi_k3">() {
  static constexpr ReasoningDialect kThis{
      .name = "kimi_k3",
      .begin = "<|open|>think<|sep|>",
      .end = "<|close|>think<|sep|>",
      .before_text = kKimiBeforeText,
      .dropped = kKimiAroundText,
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<|open|>") && shows(chat_template, "<|sep|>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
