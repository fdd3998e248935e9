// K2 Horizon: as GLM 4.5 with tags of its own, in the first of the three ways to write a call that
// its template knows, which is the one it asks for where nobody says otherwise. How long it reasons
// is said by the tags around the reasoning.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"k2_horizon">() {
  static constexpr ToolDialect kThis{
      .name = "k2_horizon",
      .syntax = {.begin = {mark("<ifm|tool_calls>"), gap()},
                 .call = {mark("<ifm|tool_call>"), name(), gap(),
                          parameters_with_value("<ifm|arg_key>", "</ifm|arg_key>",
                                                "<ifm|arg_value>", "</ifm|arg_value>"),
                          mark("</ifm|tool_call>")},
                 .separator = {gap()},
                 .end = {gap(), mark("</ifm|tool_calls>")}},
      .ends_reasoning = true,
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "<ifm|tool_call>"); },
  };
  return kThis;
}

template <>
const ReasoningDialect& reasoning_dialect<"k2_horizon">() {
  static constexpr ReasoningDialect kThis{
      .name = "k2_horizon",
      .begin = "<ifm|think>",
      .end = "</ifm|think>",
      .other_begins = {"<ifm|think_fast>", "<ifm|think_faster>"},
      .other_ends = {"</ifm|think_fast>", "</ifm|think_faster>"},
      .speaks = [](const ChatTemplate& chat_template) { return shows(chat_template, "ifm|think"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
