#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/guide/regex_ast.h"
#include "engine/guide/regex_class.h"
#include "engine/guide/regex_escape.h"
#include "engine/guide/regex_sets.h"

namespace tgi::guide {
namespace {

using Ast = RegexAst;

constexpr int32_t kMaxNesting = 100;
constexpr int32_t kMaxCount = 1'000'000;

class RegexParser {
 public:
  RegexParser(std::string_view pattern, RegexSyntax syntax) : text_{pattern, 0}, syntax_(syntax) {
    ast_.line_ends = syntax == RegexSyntax::kRust ? CodePoints{{'\n', '\n'}} : line_ends();
  }

  RegexAst parse() {
    ast_.root = parse_alternatives();
    if (!text_.at_end()) text_.refuse("\")\" without \"(\" before it");
    return std::move(ast_);
  }

 private:
  struct Flags {
    bool ignore_case = false;
    bool dot_all = false;
    bool multi_line = false;
    bool verbose = false;
  };

  int32_t add(Ast::Node node) {
    for (const int32_t part : node.parts) node.has_assertion |= ast_.node(part).has_assertion;
    if (ast_.nodes.size() > 200'000) text_.refuse("the pattern is too large");
    ast_.nodes.push_back(std::move(node));
    return static_cast<int32_t>(ast_.nodes.size()) - 1;
  }
  int32_t add_assertion(Ast::Kind kind, size_t place, std::vector<int32_t> parts = {}) {
    return add({.kind = kind,
                .has_assertion = true,
                .place = place,
                .characters = {},
                .parts = std::move(parts)});
  }
  int32_t add_characters(CodePoints set, size_t place) {
    if (flags_.ignore_case) set = fold_case(set);
    return add(
        {.kind = Ast::Kind::kCharacter, .place = place, .characters = std::move(set), .parts = {}});
  }

  int32_t parse_alternatives() {
    const size_t place = text_.at;
    std::vector<int32_t> alternatives{parse_sequence()};
    while (text_.take('|')) alternatives.push_back(parse_sequence());
    if (alternatives.size() == 1) return alternatives[0];
    return add({.kind = Ast::Kind::kEither,
                .place = place,
                .characters = {},
                .parts = std::move(alternatives)});
  }

  void skip_verbose() {
    while (flags_.verbose && !text_.at_end()) {
      if (text_.peek() == '#') {
        while (!text_.at_end() && text_.peek() != '\n') ++text_.at;
      } else if (std::string_view(" \t\n\r\v\f").find(text_.peek()) != std::string_view::npos) {
        ++text_.at;
      } else {
        return;
      }
    }
  }

  int32_t parse_sequence() {
    const size_t place = text_.at;
    std::vector<int32_t> parts;
    for (skip_verbose(); !text_.at_end() && text_.peek() != '|' && text_.peek() != ')';
         skip_verbose()) {
      const size_t begin = text_.at;
      const std::optional<int32_t> atom = parse_atom();
      if (!atom) continue;
      skip_verbose();
      parts.push_back(parse_quantifiers(*atom, begin));
    }
    if (parts.size() == 1) return parts[0];
    return add({.kind = Ast::Kind::kSequence,
                .place = place,
                .characters = {},
                .parts = std::move(parts)});
  }

  // {n}, {n,}, {n,m}, and {,m} as Python has it; else nothing is taken and { stands for itself.
  std::optional<std::pair<int32_t, int32_t>> parse_braces() {
    const size_t begin = text_.at;
    ++text_.at;
    const std::optional<int32_t> min = parse_count();
    std::optional<int32_t> max = min;
    const bool has_comma = text_.take(',');
    if (has_comma) max = parse_count();
    if ((!min && !max) || !text_.take('}')) {
      text_.at = begin;
      return std::nullopt;
    }
    const int32_t low = min.value_or(0);
    const int32_t high = max.value_or(kUnbounded);
    if (high != kUnbounded && high < low) {
      text_.at = begin;
      text_.refuse("a repetition whose largest number is less than its smallest");
    }
    return std::pair{low, high};
  }

  std::optional<int32_t> parse_count() {
    if (text_.at_end() || text_.peek() < '0' || text_.peek() > '9') return std::nullopt;
    const size_t begin = text_.at;
    int64_t value = 0;
    for (; !text_.at_end() && text_.peek() >= '0' && text_.peek() <= '9'; ++text_.at)
      value = std::min<int64_t>(value * 10 + (text_.peek() - '0'), kMaxCount + 1);
    if (value > kMaxCount) {
      text_.at = begin;
      text_.refuse("a repetition of more than " + std::to_string(kMaxCount) + " times");
    }
    return static_cast<int32_t>(value);
  }

  int32_t parse_quantifiers(int32_t atom, size_t begin) {
    bool quantified = false;
    while (!text_.at_end()) {
      std::pair<int32_t, int32_t> range;
      const size_t place = text_.at;
      const char c = text_.peek();
      if (c == '*') {
        range = {0, kUnbounded};
      } else if (c == '+') {
        range = {1, kUnbounded};
      } else if (c == '?') {
        range = {0, 1};
      } else if (c == '{') {
        const auto braces = parse_braces();
        if (!braces) return atom;
        range = *braces;
        --text_.at;
      } else {
        return atom;
      }
      if (quantified) text_.refuse("a quantifier after a quantifier");
      ++text_.at;
      if (!text_.at_end() && text_.peek() == '+') {
        text_.at = place;
        text_.refuse_unsupported("a possessive quantifier, which isn't regular");
      }
      text_.take('?');  // lazy: the same texts
      quantified = true;
      atom = add({.kind = Ast::Kind::kRepeat,
                  .min = range.first,
                  .max = range.second,
                  .place = begin,
                  .characters = {},
                  .parts = {atom}});
      skip_verbose();
    }
    return atom;
  }

  // None: only flags were set.
  std::optional<int32_t> parse_atom() {
    const size_t place = text_.at;
    const char c = text_.peek();
    switch (c) {
      case '(':
        return parse_group();
      case '[':
        return add_characters(parse_regex_class(text_, syntax_, flags_.ignore_case), place);
      case '.':
        ++text_.at;
        return add_characters(flags_.dot_all ? CodePoints{{0, 0xD7FF}, {0xE000, 0x10FFFF}}
                                             : negate_code_points(ast_.line_ends),
                              place);
      case '^':
        ++text_.at;
        return add_assertion(flags_.multi_line ? Ast::Kind::kLineStart : Ast::Kind::kTextStart,
                             place);
      case '$':
        ++text_.at;
        return add_assertion(flags_.multi_line ? Ast::Kind::kLineEnd : Ast::Kind::kTextEnd, place);
      case '*':
      case '+':
      case '?':
        text_.refuse("a quantifier with nothing before it");
      case '\\':
        return parse_escape();
      default: {
        const char32_t character = text_.take_character();
        return add_characters({{character, character}}, place);
      }
    }
  }

  int32_t parse_escape() {
    const size_t place = text_.at;
    const char kind = text_.at + 1 < text_.pattern.size() ? text_.pattern[text_.at + 1] : '\0';
    const auto assertion = [&](Ast::Kind what) {
      text_.at += 2;
      return add_assertion(what, place);
    };
    switch (kind) {
      case 'A':
        return assertion(Ast::Kind::kTextStart);
      case 'z':
      case 'Z':
        return assertion(Ast::Kind::kTextEnd);
      case 'b':
        return assertion(Ast::Kind::kWordBorder);
      case 'B':
        return assertion(Ast::Kind::kNoWordBorder);
      default:
        return add_characters(parse_regex_escape(text_, false), place);
    }
  }

  int32_t close_group(int32_t inner, size_t begin, const Flags& outer) {
    if (!text_.take(')')) {
      text_.at = begin;
      text_.refuse("\"(\" without \")\"");
    }
    flags_ = outer;
    --nesting_;
    return inner;
  }

  std::optional<int32_t> parse_group() {
    const size_t begin = text_.at;
    if (++nesting_ > kMaxNesting)
      text_.refuse("more than " + std::to_string(kMaxNesting) + " groups inside one another");
    const Flags outer = flags_;
    ++text_.at;
    if (!text_.take('?')) return close_group(parse_alternatives(), begin, outer);
    if (text_.take(':')) return close_group(parse_alternatives(), begin, outer);
    const auto look_ahead = [&](Ast::Kind kind) {
      const int32_t inner = close_group(parse_alternatives(), begin, outer);
      return add_assertion(kind, begin, {inner});
    };
    if (text_.take('=')) return look_ahead(Ast::Kind::kAhead);
    if (text_.take('!')) return look_ahead(Ast::Kind::kNotAhead);
    const std::string_view rest = text_.pattern.substr(text_.at);
    if (rest.starts_with("<=") || rest.starts_with("<!")) text_.refuse_unsupported("a look-behind");
    if (rest.starts_with('>')) text_.refuse_unsupported("an atomic group, which isn't regular");
    if (rest.starts_with("P=")) text_.refuse_unsupported("a back reference");
    if (rest.starts_with("#")) return skip_comment(begin, outer);
    if (rest.starts_with("P<") || rest.starts_with('<')) {
      skip_name(begin);
      return close_group(parse_alternatives(), begin, outer);
    }
    return parse_flags(begin, outer);
  }

  std::optional<int32_t> skip_comment(size_t begin, const Flags& outer) {
    const size_t end = text_.pattern.find(')', text_.at);
    text_.at = std::min(end, text_.pattern.size());
    close_group(0, begin, outer);
    return std::nullopt;
  }

  void skip_name(size_t begin) {
    const size_t from = text_.pattern.find('<', text_.at) + 1;
    const size_t end = text_.pattern.find('>', from);
    if (end == std::string_view::npos || end == from) {
      text_.at = begin;
      text_.refuse("a group whose name has no end");
    }
    text_.at = end + 1;
  }

  std::optional<int32_t> parse_flags(size_t begin, const Flags& outer) {
    bool on = true;
    while (true) {
      if (text_.at_end()) {
        text_.at = begin;
        text_.refuse("\"(\" without \")\"");
      }
      const char c = text_.peek();
      if (c == ')' || c == ':') break;
      if (c == '-' && on) {
        on = false;
      } else if (c == 'i') {
        flags_.ignore_case = on;
      } else if (c == 's') {
        flags_.dot_all = on;
      } else if (c == 'm') {
        flags_.multi_line = on;
      } else if (c == 'x') {
        flags_.verbose = on;
      } else if (c != 'u') {  // u: always on
        text_.refuse("a flag that is none of i, m, s, u, x");
      }
      ++text_.at;
    }
    if (text_.take(':')) return close_group(parse_alternatives(), begin, outer);
    // Flags hold to the end of the group around them.
    ++text_.at;
    --nesting_;
    return std::nullopt;
  }

  RegexText text_;
  RegexSyntax syntax_;
  RegexAst ast_;
  Flags flags_;
  int32_t nesting_ = 0;
};

}  // namespace

RegexAst parse_regex_syntax(std::string_view pattern, RegexSyntax syntax) {
  if (const size_t valid = valid_utf8_prefix(pattern); valid < pattern.size()) {
    throw Error(Code::kInvalidArgument,
                "the pattern isn't UTF-8 from its byte " + std::to_string(valid) + " on");
  }
  return RegexParser(pattern, syntax).parse();
}

}  // namespace tgi::guide
