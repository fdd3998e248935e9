// Phi 4 mini: a list between two tokens.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

namespace {

// Its templates show calls without marks in earlier turns, and some ask for a word before them.
constexpr CallSyntax kPhi4Others[] = {
    {.begin = {mark("functools["), gap()},
     .call = {object("name", "arguments")},
     .separator = {gap(), mark(","), gap()},
     .end = {gap(), mark("]")}},
    {.call = {object("name", "arguments")},
     .separator = {gap(), maybe(","), gap()},
     .place = CallPlace::kWholeAnswer},
};

}  // namespace

template <>
const ToolDialect& tool_dialect<"phi4_mini">() {
  static constexpr ToolDialect kThis{
      .name = "phi4_mini",
      .syntax = {.begin = {mark("<|tool_call|>"), gap(), mark("["), gap()},
                 .call = {object("name", "arguments")},
                 .separator = {gap(), mark(","), gap()},
                 .end = {gap(), mark("]"), gap(), mark("<|/tool_call|>")}},
      .also = kPhi4Others,
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<|tool|>") ||
                   (shows(chat_template, "functools[") && shows(chat_template, "<|end|>"));
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
