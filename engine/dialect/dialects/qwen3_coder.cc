// Qwen3-Coder, Qwen 3.5, Nemotron 3: each argument between tags, without quotes.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

namespace {

// Its models leave out the first tag at times.
constexpr CallSyntax kQwen3CoderOthers[] = {{
    .call = {mark("<function="), name(), mark(">"),
             parameters("<parameter=", ">", "</parameter>", /*on_lines=*/true), mark("</function>"),
             gap(), maybe("</tool_call>")},
    .separator = {gap()},
    .is_taken = true,
}};

}  // namespace

template <>
const ToolDialect& tool_dialect<"qwen3_coder">() {
  static constexpr ToolDialect kThis{
      .name = "qwen3_coder",
      .syntax = {.call = {mark("<tool_call>"), gap(), mark("<function="), name(), mark(">"),
                          parameters("<parameter=", ">", "</parameter>", /*on_lines=*/true),
                          mark("</function>"), gap(), mark("</tool_call>")},
                 .separator = {gap()}},
      .also = kQwen3CoderOthers,
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<function=") && shows(chat_template, "<parameter=");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
