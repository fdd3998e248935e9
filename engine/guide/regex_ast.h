// A regular expression as it is written, between its parser and the languages made of it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/guide/code_points.h"
#include "engine/guide/regex.h"

namespace tgi::guide {

struct RegexAst {
  enum class Kind : uint8_t {
    kCharacter,   // one of `characters`
    kSequence,    // parts, in order
    kEither,      // parts
    kRepeat,      // parts[0], min, max
    kTextStart,   // ^
    kTextEnd,     // $
    kLineStart,   // ^ with the flag m
    kLineEnd,     // $ with the flag m
    kWordBorder,  // \b
    kNoWordBorder,
    kAhead,     // (?=...): parts[0]
    kNotAhead,  // (?!...): parts[0]
  };
  struct Node {
    Kind kind = Kind::kSequence;
    bool has_assertion = false;  // somewhere inside
    int32_t min = 0;
    int32_t max = 0;
    size_t place = 0;  // of what is written, in bytes
    CodePoints characters{};
    std::vector<int32_t> parts{};
  };
  std::vector<Node> nodes;
  int32_t root = -1;
  CodePoints line_ends{};  // what . does not match, and what ends a line with the flag m

  const Node& node(int32_t id) const { return nodes[static_cast<size_t>(id)]; }
};

// Throws kInvalidArgument and kUnsupported with the place.
RegexAst parse_regex_syntax(std::string_view pattern, RegexSyntax syntax);

// The error of a pattern: what is wrong, where, and what is there.
[[noreturn]] void refuse_regex(std::string_view pattern,
                               size_t place,
                               std::string_view what,
                               bool unsupported);

}  // namespace tgi::guide
