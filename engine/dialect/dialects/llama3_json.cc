// Llama 3.1 to 3.3: the call is the whole answer.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

namespace {

constexpr CallSyntax kAfterTag = {
    .call = {mark("<|python_tag|>"), gap(), object("name", "parameters")},
    .separator = {gap(), mark(";"), gap()},
};

}  // namespace

template <>
const ToolDialect& tool_dialect<"llama3_json">() {
  static constexpr ToolDialect kThis{
      .name = "llama3_json",
      .syntax = {.call = {object("name", "parameters")},
                 .separator = {gap(), mark(";"), gap()},
                 .is_whole_answer = true,
                 .several = false},
      .also = &kAfterTag,
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "\"parameters\"") && shows(chat_template, "ipython");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
