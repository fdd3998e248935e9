#include "engine/dialect/dialect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/known_names.h"

namespace tgi::dialect {

namespace {

template <size_t... kIndex>
auto all_tool_dialects(std::index_sequence<kIndex...>) {
  return std::array{&tool_dialect<Literal(kToolDialectNames[kIndex])>()...};
}

template <size_t... kIndex>
auto all_reasoning_dialects(std::index_sequence<kIndex...>) {
  return std::array{&reasoning_dialect<Literal(kReasoningDialectNames[kIndex])>()...};
}

template <typename Dialect>
const Dialect* choose(std::span<const Dialect* const> list,
                      const ChatTemplate& chat_template,
                      std::string_view asked,
                      std::string_view setting) {
  if (asked == "none") return nullptr;
  std::string names = "auto, none";
  for (const Dialect* const dialect : list) {
    const bool is_meant = asked == "auto"
                              ? dialect->speaks != nullptr && dialect->speaks(chat_template)
                              : dialect->name == asked;
    if (is_meant) return dialect;
    names += fmt::format(", {}", dialect->name);
  }
  if (asked == "auto") return nullptr;
  throw Error(Code::kInvalidArgument,
              fmt::format("--{}: expected one of {}, got {}", setting, names, asked));
}

}  // namespace

std::span<const ToolDialect* const> tool_dialects() {
  static const auto kAll = all_tool_dialects(std::make_index_sequence<kToolDialectNames.size()>());
  return kAll;
}

std::span<const ReasoningDialect* const> reasoning_dialects() {
  static const auto kAll =
      all_reasoning_dialects(std::make_index_sequence<kReasoningDialectNames.size()>());
  return kAll;
}

namespace {

std::vector<std::string_view> with_others(std::string_view mark,
                                          std::span<const std::string_view> others) {
  std::vector<std::string_view> out = {mark};
  std::copy_if(others.begin(), others.end(), std::back_inserter(out),
               [](std::string_view other) { return !other.empty(); });
  return out;
}

}  // namespace

std::vector<std::string_view> ReasoningDialect::begins() const {
  return with_others(begin, other_begins);
}

std::vector<std::string_view> ReasoningDialect::ends() const {
  return with_others(end, other_ends);
}

std::string_view Dialects::before_text() const {
  if (reasoning != nullptr && !reasoning->before_text.empty()) return reasoning->before_text;
  return tools == nullptr ? std::string_view() : tools->before_text;
}

std::vector<std::string_view> Dialects::dropped() const {
  std::vector<std::string_view> out;
  const auto add = [&](std::span<const std::string_view> marks) {
    std::copy_if(marks.begin(), marks.end(), std::back_inserter(out),
                 [](std::string_view mark) { return !mark.empty(); });
  };
  if (reasoning != nullptr) add(reasoning->dropped);
  if (tools != nullptr) add(tools->dropped);
  return out;
}

const ToolDialect& generic_tool_dialect() {
  return tool_dialect<"generic">();
}

Dialects choose_dialects(const ChatTemplate* chat_template,
                         std::string_view tool_parser,
                         std::string_view reasoning_parser) {
  Dialects out;
  if (chat_template == nullptr) return out;
  out.tools = choose(tool_dialects(), *chat_template, tool_parser, "tool-parser");
  if (out.tools == nullptr && tool_parser == "auto") out.tools = &generic_tool_dialect();
  if (out.tools == nullptr) {
    out.why_no_tools = "this model was loaded with --tool-parser none";
  }
  out.reasoning =
      choose(reasoning_dialects(), *chat_template, reasoning_parser, "reasoning-parser");
  return out;
}

}  // namespace tgi::dialect
