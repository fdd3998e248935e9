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
    kGap,         // white space, or none; `text`: asked for in its place
    kName,        // of the tool
    kNumber,      // of the call, in digits
    kId,          // of the call, letters and digits; left out where the mark before it is
    kArguments,   // a JSON object
    kObject,      // a JSON object whose members are the name and the arguments
    kParameters,  // each argument between marks, as text
    kKeywords,    // name=value, ..., in Python's notation or with JSON's words
    kEntries,     // name:value,..., in Gemma's notation (entry_scanner.h), up to a "}"
    kElements,    // <name>value</name>, in MiniMax's notation (element_values.h)
  };
  Kind kind = Kind::kNone;
  // kMark; kId: (optional) the mark before it; kGap: (optional)
  std::string_view text{};
  std::array<std::string_view, 6> others{};  // kMark: read in its place, never asked for
  bool may_miss = false;                     // kMark: or nothing in its place
  std::string_view name_key{};               // kObject
  std::string_view arguments_key{};
  std::string_view id_key{};          // (optional) before the two: a text of digits
  std::string_view open{};            // kParameters: before the name; kElements: before each tag
  std::string_view middle{};          // between name and value
  std::string_view middle_of_json{};  // (optional) in its place where the value is no text
  std::string_view value_open{};      // (optional) behind it and a gap, before the value
  std::string_view close{};           // behind the value; kEntries: around texts
  bool on_lines = false;              // the value has lines of its own: one line end on each side
  // (optional) kParameters: behind `middle` stands the type of the value in a word, and this.
  std::string_view type_close{};
  // (optional) kParameters: what stands around texts that have "<", "&" or a line end.
  std::string_view section_open{};
  std::string_view section_close{};
  int32_t first = 0;             // kNumber: of the first call
  bool has_python_words = true;  // kKeywords: True, False and None; or JSON's
};

constexpr CallPart mark(std::string_view text, std::array<std::string_view, 6> others = {}) {
  return {.kind = CallPart::Kind::kMark, .text = text, .others = others};
}
// A mark that may be left out.
constexpr CallPart maybe(std::string_view text) {
  return {.kind = CallPart::Kind::kMark, .text = text, .may_miss = true};
}
constexpr CallPart gap() {
  return {.kind = CallPart::Kind::kGap};
}
// White space is read, a line end asked for.
constexpr CallPart line_end() {
  return {.kind = CallPart::Kind::kGap, .text = "\n"};
}
constexpr CallPart name() {
  return {.kind = CallPart::Kind::kName};
}
constexpr CallPart number(int32_t first = 0) {
  return {.kind = CallPart::Kind::kNumber, .first = first};
}
constexpr CallPart id(std::string_view mark = {}) {
  return {.kind = CallPart::Kind::kId, .text = mark};
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
// The value has a mark of its own.
constexpr CallPart parameters_with_value(std::string_view open,
                                         std::string_view middle,
                                         std::string_view value_open,
                                         std::string_view close) {
  CallPart out = parameters(open, middle, close, /*on_lines=*/false);
  out.value_open = value_open;
  return out;
}
// What stands between name and value tells texts from JSON.
constexpr CallPart typed_parameters(std::string_view open,
                                    std::string_view middle,
                                    std::string_view middle_of_json,
                                    std::string_view close) {
  CallPart out = parameters(open, middle, close, /*on_lines=*/false);
  out.middle_of_json = middle_of_json;
  return out;
}
// The value's type is told by a word, JSON's: "string", "number", ...
constexpr CallPart parameters_with_types(std::string_view open,
                                         std::string_view middle,
                                         std::string_view type_close,
                                         std::string_view close) {
  CallPart out = parameters(open, middle, close, /*on_lines=*/false);
  out.type_close = type_close;
  return out;
}
// Some texts are in a section of their own.
constexpr CallPart parameters_with_sections(std::string_view open,
                                            std::string_view middle,
                                            std::string_view close,
                                            std::string_view section_open,
                                            std::string_view section_close) {
  CallPart out = parameters(open, middle, close, /*on_lines=*/false);
  out.section_open = section_open;
  out.section_close = section_close;
  return out;
}
constexpr CallPart keywords() {
  return {.kind = CallPart::Kind::kKeywords};
}
// The values are JSON. Those in Python's notation are read too.
constexpr CallPart keywords_with_json() {
  return {.kind = CallPart::Kind::kKeywords, .has_python_words = false};
}

constexpr CallPart entries(std::string_view quote) {
  return {.kind = CallPart::Kind::kEntries, .close = quote};
}

constexpr CallPart elements(std::string_view mark) {
  return {.kind = CallPart::Kind::kElements, .open = mark};
}

using CallParts = std::array<CallPart, 12>;  // those behind the last are kNone

// Where calls stand in an answer.
enum class CallPlace : uint8_t {
  kBehindText,     // or where a text would begin: a mark begins them
  kInsteadOfText,  // a mark begins them, and they are written in the place of a text
  kWholeAnswer,    // calls are all of it: nothing marks where they would begin in a text
  kMessages,       // the first begins as the answer does, without a mark; behind a text the
                   // separator is written before it
};
// Nothing marks the first call: it is known by its own words.
constexpr bool is_unmarked(CallPlace place) {
  return place == CallPlace::kWholeAnswer || place == CallPlace::kMessages;
}

// begin call (separator call)* end
struct CallSyntax {
  CallParts begin{};
  CallParts call{};
  CallParts separator{};
  CallParts end{};
  CallPlace place = CallPlace::kBehindText;
  bool several = true;  // calls in one answer
  // Of a dialect's other ways, whose calls a mark begins: the grammar takes it as well.
  bool is_taken = false;
};

}  // namespace tgi::dialect
