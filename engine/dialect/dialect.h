// The dialects of models: how they write calls of tools, and how reasoning.
//
// A model has one of each at most. They are found by its chat template, which shows the model what
// it was trained to write, or named by whoever loads it (--tool-parser, --reasoning-parser). To add
// one: a file in engine/dialect/dialects, and its name in a list of base/known_names.h.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/literal.h"
#include "engine/dialect/call_syntax.h"
#include "engine/text/chat_template.h"

namespace tgi::dialect {

// What the ids of calls look like. Templates show them to the model; some insist on a form.
enum class CallIds : uint8_t {
  kRandom,    // "call_" and 24 letters or digits
  kNine,      // nine letters or digits
  kFunction,  // "functions.NAME:NUMBER", the number being the call's
};

struct ToolDialect {
  std::string_view name;
  CallSyntax syntax;
  // (optional) Other ways of writing that are understood as well: older, or looser.
  std::span<const CallSyntax> also{};
  // As a reasoning dialect's: of models that have none, or that are not asked to reason.
  std::string_view before_text{};
  std::array<std::string_view, 6> dropped{};
  CallIds ids = CallIds::kRandom;
  // Its models begin calls within their reasoning, too, which a call then ends. Only where a
  // special token begins it: words of the reasoning never do.
  bool ends_reasoning = false;
  // Whether a template shows this dialect to the model. Asked in the order of the list.
  bool (*speaks)(const ChatTemplate& chat_template) = nullptr;
};

struct ReasoningDialect {
  std::string_view name;
  std::string_view begin;  // "<think>"
  std::string_view end;    // "</think>"
  // (optional) Others in their place, where its templates say with them how long to reason.
  std::array<std::string_view, 2> other_begins{};
  std::array<std::string_view, 2> other_ends{};
  // What comes between the end and the answer, and before the answer's text: "" mostly.
  std::string_view after{};
  std::string_view before_text{};
  // (optional) Before a text that other messages follow, which `end` and `after` end.
  std::string_view before_preamble{};
  // Marks that are left out of the text wherever they stand.
  std::array<std::string_view, 6> dropped{};
  // Reasoning may begin anywhere, and several times; else at the start of an answer.
  bool is_anywhere = false;
  // (optional) The variable of its templates that says whether to reason, where that is neither
  // enable_thinking nor thinking, and what it is set to.
  struct Mode {
    std::string_view variable{};
    std::string_view on{};
    std::string_view off{};
  };
  Mode mode{};
  bool (*speaks)(const ChatTemplate& chat_template) = nullptr;

  std::vector<std::string_view> begins() const;
  std::vector<std::string_view> ends() const;
};

// The dialect of that name: a specialisation in its own file, for each name of kToolDialectNames
// and kReasoningDialectNames. A name that no file has a dialect for does not link.
template <Literal kName>
const ToolDialect& tool_dialect();
template <Literal kName>
const ReasoningDialect& reasoning_dialect();

std::span<const ToolDialect* const> tool_dialects();
std::span<const ReasoningDialect* const> reasoning_dialects();

// Of templates that tell the model nothing of tools: a JSON object that the prompt asks for.
const ToolDialect& generic_tool_dialect();

// What a model speaks. `tool_parser` and `reasoning_parser`: "auto", "none" or a name of the lists,
// else kInvalidArgument with the names. Null where there is none: no template, "none" or no
// reasoning.
struct Dialects {
  const ToolDialect* tools = nullptr;
  const ReasoningDialect* reasoning = nullptr;
  std::string_view why_no_tools{};  // where there are none, for people

  std::string_view before_text() const;
  std::vector<std::string_view> dropped() const;
};
Dialects choose_dialects(const ChatTemplate* chat_template,
                         std::string_view tool_parser,
                         std::string_view reasoning_parser);

}  // namespace tgi::dialect
