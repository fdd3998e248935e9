#include "engine/guide/gbnf.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/guide/code_points.h"
#include "engine/guide/source_text.h"
#include "engine/guide/token_set.h"

namespace tgi::guide {
namespace {

constexpr int32_t kMaxGbnfNesting = 100;
constexpr int32_t kMaxGbnfCount = 1'000'000;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

class GbnfParser {
 public:
  GbnfParser(Grammar& grammar, std::string_view text) : grammar_(grammar), source_{text, 0} {
    if (const size_t valid = valid_utf8_prefix(text); valid < text.size())
      source_.refuse(valid, "expected UTF-8", Code::kInvalidArgument);
  }

  Rule parse() {
    for (skip_space(true); !source_.at_end(); skip_space(true)) parse_rule();
    for (const auto& [name, entry] : rules_) {
      if (!entry.defined) {
        source_.refuse(entry.first_use, "the rule \"" + name + "\" is used and not defined",
                       Code::kInvalidArgument);
      }
    }
    const auto root = rules_.find("root");
    if (root == rules_.end())
      source_.refuse("the grammar has no rule \"root\", which is the start");
    return root->second.rule;
  }

 private:
  struct Entry {
    Rule rule;
    bool defined = false;
    size_t first_use = 0;
  };

  void skip_space(bool with_newlines) {
    while (!source_.at_end()) {
      const char c = source_.peek();
      if (c == '#') {
        while (!source_.at_end() && source_.peek() != '\n') ++source_.at;
      } else if (c == ' ' || c == '\t' || (with_newlines && (c == '\n' || c == '\r'))) {
        ++source_.at;
      } else {
        return;
      }
    }
  }

  std::string parse_name() {
    const size_t begin = source_.at;
    while (is_name_character(source_.peek())) ++source_.at;
    if (source_.at == begin) source_.refuse("expected the name of a rule");
    return std::string(source_.text.substr(begin, source_.at - begin));
  }

  Entry& entry_of(const std::string& name, size_t place) {
    const auto [entry, is_new] = rules_.try_emplace(name);
    if (is_new) entry->second = {grammar_.declare(name), false, place};
    return entry->second;
  }

  void parse_rule() {
    const size_t begin = source_.at;
    const std::string name = parse_name();
    skip_space(false);
    if (!source_.take("::=")) source_.refuse("expected \"::=\" after the name of a rule");
    Entry& entry = entry_of(name, begin);
    if (std::exchange(entry.defined, true)) {
      source_.refuse(begin, "the rule \"" + name + "\" is defined a second time",
                     Code::kInvalidArgument);
    }
    skip_space(true);
    const Rule rule = entry.rule;
    grammar_.define(rule, parse_alternatives(false));
    if (!source_.at_end() && source_.peek() != '\n' && source_.peek() != '\r')
      source_.refuse("expected a new line, \"|\", or a part of the rule");
  }

  // A line that begins with | goes on with the rule before it.
  bool take_bar(bool nested) {
    const size_t begin = source_.at;
    skip_space(true);
    if (source_.take("|")) {
      skip_space(true);
      return true;
    }
    if (!nested) source_.at = begin;
    return false;
  }

  Expr parse_alternatives(bool nested) {
    std::vector<Expr> alternatives{parse_sequence(nested)};
    while (take_bar(nested)) alternatives.push_back(parse_sequence(nested));
    return grammar_.either(alternatives);
  }

  Expr parse_sequence(bool nested) {
    std::vector<Expr> parts;
    while (true) {
      const std::optional<Expr> atom = parse_atom();
      if (!atom) return grammar_.sequence(parts);
      skip_space(nested);
      parts.push_back(parse_repetitions(*atom, nested));
    }
  }

  std::optional<Expr> parse_atom() {
    const size_t begin = source_.at;
    const char c = source_.peek();
    if (c == '"') return parse_literal();
    if (c == '[') return grammar_.terminal(grammar_.regex().code_points(parse_class()));
    if (source_.take(".")) return grammar_.terminal(grammar_.regex().any_character());
    if (c == '(') return parse_group();
    if (c == '<' || source_.rest().starts_with("!<")) return parse_token();
    if (is_name_character(c)) return grammar_.call(entry_of(parse_name(), begin).rule);
    return std::nullopt;
  }

  Expr parse_group() {
    const size_t begin = source_.at++;
    if (++nesting_ > kMaxGbnfNesting) {
      source_.refuse(begin,
                     "more than " + std::to_string(kMaxGbnfNesting) + " groups inside one another",
                     Code::kInvalidArgument);
    }
    skip_space(true);
    const Expr inner = parse_alternatives(true);
    if (!source_.take(")")) source_.refuse("expected \")\"");
    --nesting_;
    return inner;
  }

  Expr parse_token() {
    const bool is_any_but = source_.take("!");
    TokenSet tokens = parse_token_set(source_);
    if (is_any_but) tokens.is_negated = !tokens.is_negated;
    return grammar_.token_of(tokens);
  }

  char32_t parse_hex(size_t digits, size_t begin) {
    char32_t value = 0;
    for (size_t i = 0; i < digits; ++i, ++source_.at) {
      const char c = source_.peek();
      const char lower = static_cast<char>(c | 0x20);
      if (c >= '0' && c <= '9') {
        value = value << 4 | static_cast<char32_t>(c - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        value = value << 4 | static_cast<char32_t>(lower - 'a' + 10);
      } else {
        source_.refuse(begin,
                       "expected " + std::to_string(digits) + " hexadecimal digits in an escape",
                       Code::kInvalidArgument);
      }
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
      source_.refuse(begin, "expected a character of Unicode", Code::kInvalidArgument);
    return value;
  }

  char32_t parse_character() {
    const size_t begin = source_.at;
    if (source_.at_end()) source_.refuse("expected a character");
    if (!source_.take("\\")) return next_character(source_.text, source_.at);
    const char kind = source_.peek();
    ++source_.at;
    switch (kind) {
      case 'x':
        return parse_hex(2, begin);
      case 'u':
        return parse_hex(4, begin);
      case 'U':
        return parse_hex(8, begin);
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'n':
        return '\n';
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
        return static_cast<char32_t>(kind);
      default:
        source_.refuse(begin,
                       "expected one of the escapes \\x \\u \\U \\t \\r \\n \\\\ \\\" \\[ \\]",
                       Code::kInvalidArgument);
    }
  }

  Expr parse_literal() {
    const size_t begin = source_.at++;
    std::string literal;
    while (!source_.take("\"")) {
      if (source_.at_end() || source_.peek() == '\n')
        source_.refuse(begin, "a literal without its closing quote", Code::kInvalidArgument);
      append_utf8(parse_character(), literal);
    }
    return grammar_.text(literal);
  }

  CodePoints parse_class() {
    const size_t begin = source_.at++;
    const bool negated = source_.take("^");
    std::vector<CodePointRange> ranges;
    while (!source_.take("]")) {
      if (source_.at_end()) source_.refuse(begin, "\"[\" without \"]\"", Code::kInvalidArgument);
      const size_t place = source_.at;
      const char32_t first = parse_character();
      char32_t last = first;
      if (source_.peek() == '-' && source_.peek(1) != ']') {
        ++source_.at;
        last = parse_character();
      }
      if (last < first)
        source_.refuse(place, "a range that ends before it begins", Code::kInvalidArgument);
      ranges.push_back({first, last});
    }
    const CodePoints set = normalize_code_points(ranges);
    return negated ? negate_code_points(set) : set;
  }

  std::optional<int32_t> parse_count() {
    const size_t begin = source_.at;
    int64_t value = 0;
    for (; source_.peek() >= '0' && source_.peek() <= '9'; ++source_.at)
      value = std::min<int64_t>(value * 10 + (source_.peek() - '0'), kMaxGbnfCount + 1);
    if (source_.at == begin) return std::nullopt;
    if (value > kMaxGbnfCount) {
      source_.refuse(begin, "a repetition of more than " + std::to_string(kMaxGbnfCount) + " times",
                     Code::kInvalidArgument);
    }
    return static_cast<int32_t>(value);
  }

  Expr parse_repetitions(Expr atom, bool nested) {
    while (true) {
      const size_t begin = source_.at;
      if (source_.take("*")) {
        atom = grammar_.repeat(atom, 0, kUnbounded);
      } else if (source_.take("+")) {
        atom = grammar_.repeat(atom, 1, kUnbounded);
      } else if (source_.take("?")) {
        atom = grammar_.optional(atom);
      } else if (source_.take("{")) {
        skip_space(nested);
        const std::optional<int32_t> min = parse_count();
        std::optional<int32_t> max = min;
        skip_space(nested);
        if (source_.take(",")) {
          skip_space(nested);
          max = parse_count().value_or(kUnbounded);
          skip_space(nested);
        }
        if (!source_.take("}") || !max) source_.refuse("expected {n}, {n,} or {n,m}");
        if (*max != kUnbounded && *max < min.value_or(0)) {
          source_.refuse(begin, "a repetition whose largest number is less than its smallest",
                         Code::kInvalidArgument);
        }
        atom = grammar_.repeat(atom, min.value_or(0), *max);
      } else {
        return atom;
      }
      skip_space(nested);
    }
  }

  Grammar& grammar_;
  SourceText source_;
  std::map<std::string, Entry> rules_;
  int32_t nesting_ = 0;
};

}  // namespace

Rule add_gbnf(Grammar& grammar, std::string_view text) {
  return GbnfParser(grammar, text).parse();
}

}  // namespace tgi::guide
