// Llama 3.1 to 3.3: the call is the whole answer.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

namespace {

// Some name the tag before the call; Llama 4 writes texts between two tokens.
constexpr CallSyntax kLlama3Others[] = {{
    .begin = {mark("<|python_tag|>", {"<|python_end|>"}), gap()},
    .call = {object("name", "parameters")},
    .separator = {gap(), maybe(";"), gap()},
}};

}  // namespace

template <>
const ToolDialect& tool_dialect<"llama3_json">() {
  static constexpr ToolDialect kThis{
      .name = "llama3_json",
      .syntax = {.begin = {maybe("<|python_tag|>")},
                 .call = {object("name", "parameters")},
                 .separator = {gap(), maybe(";"), gap()},
                 .place = CallPlace::kWholeAnswer,
                 .several = false},
      .also = kLlama3Others,
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "\"parameters\": ");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
