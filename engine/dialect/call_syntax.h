// How a family of models writes calls of tools, as data: a list of parts from which both the
// grammar that guides an answer and the reader that takes it apart are made, so that the two cannot
// differ.
//
// A mark names special tokens by their spelling ("<|tool_call|>"): where the vocabulary has such a
// token, only the token is meant, never the same letters written out.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tgi::dialect {

struct CallPart {
  enum class Kind : uint8_t {
    kNone,
    kMark,        // this text
    kGap,         // white space, or none
    kName,        // of the tool
    kNumber,      // of the call, in digits
    kArguments,   // a JSON object
    kObject,      // a JSON object whose members are the name and the arguments
    kParameters,  // each argument between marks, as text
    kKeywords,    // name=value, ..., in Python's notation
  };
  Kind kind = Kind::kNone;
  std::string_view text{};                   // kMark
  std::array<std::string_view, 4> others{};  // kMark: read in its place, never asked for
  std::string_view name_key{};               // kObject
  std::string_view arguments_key{};
  std::string_view id_key{};  // (optional) before the two: a text of digits
  std::string_view open{};    // kParameters: before the name
  std::string_view middle{};  // between name and value
  std::string_view close{};   // behind the value
  bool on_lines = false;      // the value has lines of its own: one line end on each side
};

constexpr CallPart mark(std::string_view text, std::array<std::string_view, 4> others = {}) {
  return {.kind = CallPart::Kind::kMark, .text = text, .others = others};
}
constexpr CallPart gap() {
  return {.kind = CallPart::Kind::kGap};
}
constexpr CallPart name() {
  return {.kind = CallPart::Kind::kName};
}
constexpr CallPart number() {
  return {.kind = CallPart::Kind::kNumber};
}
constexpr CallPart arguments() {
  return {.kind = CallPart::Kind::kArguments};
}
constexpr CallPart object(std::string_view name_key,
                          std::string_view arguments_key,
                          std::string_view id_key = {}) {
  return {.kind = CallPart::Kind::kObject,
          .name_key = name_key,
          .arguments_key = arguments_key,
          .id_key = id_key};
}
constexpr CallPart parameters(std::string_view open,
                              std::string_view middle,
                              std::string_view close,
                              bool on_lines) {
  return {.kind = CallPart::Kind::kParameters,
          .open = open,
          .middle = middle,
          .close = close,
          .on_lines = on_lines};
}
constexpr CallPart keywords() {
  return {.kind = CallPart::Kind::kKeywords};
}

using CallParts = std::array<CallPart, 12>;  // those behind the last are kNone

// begin call (separator call)* end
struct CallSyntax {
  CallParts begin{};
  CallParts call{};
  CallParts separator{};
  CallParts end{};
  // Calls are the whole answer, or there are none: nothing marks where they would begin in a text.
  bool is_whole_answer = false;
  bool several = true;  // calls in one answer
};

}  // namespace tgi::dialect
