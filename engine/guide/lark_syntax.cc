#include "engine/guide/lark_syntax.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/guide/lark_literals.h"
#include "engine/guide/regex.h"

namespace tgi::guide {
namespace {

using LarkKind = LarkNode::Kind;

constexpr int32_t kMaxLarkNesting = 100;

class LarkParser {
 public:
  explicit LarkParser(SourceText& source) : source_(source) {}

  LarkGrammar parse() {
    parse_items();
    grammar_.end = source_.at;
    return std::move(grammar_);
  }

 private:
  // In braces, as deep as that.
  LarkParser(SourceText& source, int32_t nesting)
      : source_(source), is_nested_(true), nesting_(nesting) {}

  bool at_end() const { return source_.at_end() || (is_nested_ && source_.peek() == '}'); }

  void parse_items() {
    for (skip(true); !at_end(); skip(true)) {
      if (source_.peek() == '%') {
        parse_directive();
      } else {
        parse_definition();
      }
    }
  }

  // What stands in the braces behind %lark is a grammar by itself.
  int32_t parse_nested(size_t place) {
    skip(true);
    if (!source_.take("{")) source_.refuse("expected \"{\" and a grammar");
    count_nesting(place);
    LarkParser inner(source_, nesting_);
    LarkGrammar nested = inner.parse();
    if (!source_.take("}")) refuse_at(place, "a grammar without its \"}\"");
    --nesting_;
    grammar_.nested.push_back(std::move(nested));
    return static_cast<int32_t>(grammar_.nested.size()) - 1;
  }

  void count_nesting(size_t place) {
    if (++nesting_ <= kMaxLarkNesting) return;
    refuse_at(place, "more than " + std::to_string(kMaxLarkNesting) + " groups inside one another");
  }

  int32_t add(LarkNode node) {
    grammar_.nodes.push_back(std::move(node));
    return static_cast<int32_t>(grammar_.nodes.size()) - 1;
  }

  [[noreturn]] void refuse_at(size_t place, const std::string& what) const {
    source_.refuse(place, what, Code::kInvalidArgument);
  }

  void skip(bool with_newlines) {
    while (!source_.at_end()) {
      const char c = source_.peek();
      if (c == '#' || source_.rest().starts_with("//")) {
        while (!source_.at_end() && source_.peek() != '\n') ++source_.at;
      } else if (c == ' ' || c == '\t' || c == '\r' || (with_newlines && c == '\n')) {
        ++source_.at;
      } else {
        return;
      }
    }
  }

  std::string parse_word(const std::string& what) { return take_lark_word(source_, what); }

  void parse_directive() {
    const size_t begin = source_.at++;
    const std::string name = parse_word("a directive");
    skip(false);
    if (name == "ignore") {
      grammar_.ignored.push_back(parse_alternatives());
    } else if (name == "import") {
      parse_import();
    } else if (name == "llguidance") {
      take_llguidance_options(source_, grammar_.options);
    } else {
      source_.refuse(
          begin,
          "the directive %" + name + " isn't supported; %import, %ignore and %llguidance are",
          Code::kUnsupported);
    }
    expect_end();
  }

  // common.NAME, common.NAME -> HERE, or common (NAME, ...)
  void parse_import() {
    const size_t begin = source_.at;
    const auto add_import = [&](size_t place, const std::string& there, const std::string& here) {
      grammar_.imports.push_back({.name = here, .place = place});
      grammar_.import_sources.push_back(there);
    };
    const auto refuse_module = [&] {
      source_.at = begin;
      source_.refuse("expected common.NAME: only the terminals of \"common\" can be imported");
    };
    if (!source_.take("common")) refuse_module();
    const bool has_point = source_.take(".");
    if (!has_point) skip(false);
    if (source_.take("(")) {
      do {
        skip(true);
        const size_t place = source_.at;
        const std::string name = parse_word("the name of a terminal");
        add_import(place, name, name);
        skip(true);
      } while (source_.take(","));
      if (!source_.take(")")) source_.refuse("expected \",\" or \")\"");
      return;
    }
    if (!has_point) refuse_module();
    const std::string there = parse_word("the name of a terminal");
    skip(false);
    std::string here = there;
    if (source_.take("->")) {
      skip(false);
      here = parse_word("a name");
    }
    add_import(begin, there, here);
  }

  // What they ask for has to hold, but for names under which parts of an answer are told.
  void parse_attributes(LarkDefinition& definition) {
    do {
      skip(true);
      const size_t place = source_.at;
      const std::string name = parse_word("an attribute");
      const bool is_name = name == "capture" || name == "stop_capture";
      const bool is_end = name == "suffix" || name == "stop";
      if (!is_name && !is_end && name != "lazy") refuse_attribute(place, name);
      if (name == "lazy") definition.is_lazy = true;
      skip(true);
      if (source_.take("=")) {
        if (name == "lazy") refuse_at(place, "lazy has no value");
        skip(true);
        const size_t value_place = source_.at;
        const std::optional<int32_t> value = parse_atom();
        const bool fits = value && (!is_name || node_at(*value).kind == LarkKind::kString);
        if (!fits) refuse_at(value_place, is_name ? "expected a string" : "expected a terminal");
        if (is_end && (definition.suffix >= 0 || definition.stop >= 0))
          refuse_at(place, "a rule ends in one way: with one suffix or one stop");
        if (name == "suffix") definition.suffix = *value;
        if (name == "stop") definition.stop = *value;
        skip(true);
      } else if (is_end) {
        source_.refuse("expected \"=\" and what the rule ends with");
      }
    } while (source_.take(","));
    if (!source_.take("]")) source_.refuse("expected \",\" or \"]\" after an attribute");
  }

  [[noreturn]] void refuse_attribute(size_t place, const std::string& name) const {
    std::string what = "the attribute \"" + name +
                       "\" of a rule isn't supported; capture, lazy, suffix and stop are";
    if (name == "max_tokens")
      what += ": limit the characters, /(.|\\n){0,200}/, or the tokens of the answer";
    if (name == "temperature") what += ": the temperature is that of the request";
    source_.refuse(place, what, Code::kUnsupported);
  }

  [[noreturn]] void refuse_template() const {
    source_.refuse_unsupported("templates aren't supported; rules with a number (name::_) are");
  }

  const LarkNode& node_at(int32_t id) const { return grammar_.nodes[static_cast<size_t>(id)]; }

  void expect_end() {
    skip(false);
    if (!at_end() && source_.peek() != '\n') source_.refuse("expected a new line");
  }

  void parse_definition() {
    const size_t begin = source_.at;
    while (source_.peek() == '?' || source_.peek() == '!') ++source_.at;  // shapes of trees
    const std::string name = parse_word("a rule, a terminal, or a directive");
    if (source_.peek() == '{') refuse_template();
    LarkDefinition definition{.name = name, .place = begin};
    if (source_.take("::")) {
      if (!source_.take("_")) source_.refuse("expected _, the parameter of the rule");
      definition.has_parameter = true;
    }
    if (source_.take("[")) parse_attributes(definition);
    if (source_.take(".")) {  // a priority: all ways to read a text are kept anyway
      source_.take("-");
      parse_word("a priority");
    }
    skip(false);
    if (!source_.take(":")) source_.refuse("expected \":\" after the name of a rule");
    skip(true);
    definition.body = parse_alternatives();
    expect_end();
    grammar_.definitions.push_back(std::move(definition));
  }

  // A line that begins with | goes on with the rule before it.
  bool take_bar() {
    const size_t begin = source_.at;
    skip(true);
    if (source_.take("|")) {
      skip(true);
      return true;
    }
    source_.at = begin;
    return false;
  }

  int32_t parse_alternatives() {
    const size_t begin = source_.at;
    count_nesting(begin);
    std::vector<int32_t> alternatives{parse_alternative()};
    while (take_bar()) alternatives.push_back(parse_alternative());
    --nesting_;
    if (alternatives.size() == 1) return alternatives[0];
    return add({.kind = LarkKind::kEither, .place = begin, .parts = std::move(alternatives)});
  }

  int32_t parse_alternative() {
    const int32_t body = parse_both();
    skip(groups_ > 0);
    const size_t place = source_.at;
    if (!at_condition()) return body;
    source_.take("%if");
    skip(false);
    grammar_.conditions.push_back(take_lark_condition(source_));
    const auto index = static_cast<int32_t>(grammar_.conditions.size()) - 1;
    return add({.kind = LarkKind::kIf, .place = place, .index = index, .parts = {body}});
  }

  bool at_condition() const {
    return source_.rest().starts_with("%if") && !is_lark_word(source_.peek(3));
  }

  int32_t parse_both() {
    const size_t begin = source_.at;
    std::vector<int32_t> parts{parse_sequence()};
    for (skip(false); source_.peek() == '&'; skip(false)) {
      ++source_.at;
      skip(true);
      parts.push_back(parse_sequence());
    }
    if (parts.size() == 1) return parts[0];
    return add({.kind = LarkKind::kBoth, .place = begin, .parts = std::move(parts)});
  }

  int32_t parse_sequence() {
    const size_t begin = source_.at;
    std::vector<int32_t> parts;
    while (true) {
      skip(groups_ > 0);
      const size_t place = source_.at;
      if (source_.take("->")) {  // the name of an alternative
        skip(false);
        parse_word("a name");
        continue;
      }
      if (source_.peek() == '~') {
        ++source_.at;
        skip(false);
        const std::optional<int32_t> inner = parse_atom();
        if (!inner) source_.refuse("expected what ~ negates");
        parts.push_back(add({.kind = LarkKind::kNot, .place = place, .parts = {*inner}}));
        continue;
      }
      const std::optional<int32_t> atom = parse_atom();
      if (!atom) break;
      parts.push_back(parse_repetitions(*atom));
    }
    if (parts.size() == 1) return parts[0];
    return add({.kind = LarkKind::kSequence, .place = begin, .parts = std::move(parts)});
  }

  std::optional<int32_t> parse_atom() {
    const size_t begin = source_.at;
    const char c = source_.peek();
    if (c == '"') return parse_string_or_range();
    if (c == '/')
      return add({.kind = LarkKind::kRegex, .place = begin, .text = take_lark_pattern(source_)});
    if (c == '(' || c == '[') {
      ++source_.at;
      ++groups_;
      skip(true);
      const int32_t inner = parse_alternatives();
      skip(true);
      if (!source_.take(c == '(' ? ")" : "]"))
        source_.refuse(c == '(' ? "expected \")\"" : "expected \"]\"");
      --groups_;
      if (c == '(') return inner;
      return add({.kind = LarkKind::kRepeat, .place = begin, .min = 0, .max = 1, .parts = {inner}});
    }
    if (c == '<')
      return add({.kind = LarkKind::kToken, .place = begin, .tokens = parse_token_set(source_)});
    if (c == '@') {
      ++source_.at;
      std::string name = parse_word("the name of a grammar");
      return add({.kind = LarkKind::kNamed, .place = begin, .text = std::move(name)});
    }
    if (source_.take("%json")) {
      skip(true);
      return add({.kind = LarkKind::kJson, .place = begin, .json = take_json(source_)});
    }
    if (source_.take("%regex")) {
      skip(true);
      return add({.kind = LarkKind::kSubstring, .place = begin, .json = take_json(source_)});
    }
    if (source_.take("%lark"))
      return add({.kind = LarkKind::kNested, .place = begin, .index = parse_nested(begin)});
    if (c == '%' && !at_condition())
      source_.refuse_unsupported("only %json, %regex, %lark and %if may stand in a rule");
    if (!is_lark_word(c) || c == '-') return std::nullopt;
    std::string name = parse_word("a name");
    if (source_.take("::")) {
      grammar_.changes.push_back(take_lark_change(source_));
      const auto index = static_cast<int32_t>(grammar_.changes.size()) - 1;
      return add(
          {.kind = LarkKind::kCall, .place = begin, .text = std::move(name), .index = index});
    }
    if (source_.peek() == '{') {
      if (source_.peek(1) < '0' || source_.peek(1) > '9')
        if (source_.peek(1) != ',') refuse_template();
    }
    return add({.kind = LarkKind::kName, .place = begin, .text = std::move(name)});
  }

  int32_t parse_string_or_range() {
    const size_t begin = source_.at;
    std::string text = take_lark_string(source_);
    if (source_.take("..")) {
      const std::string end = take_lark_string(source_);
      size_t at = 0;
      size_t end_at = 0;
      if (count_utf8_characters(text) != 1 || count_utf8_characters(end) != 1)
        refuse_at(begin, "expected one character on both sides of \"..\"");
      const char32_t first = next_character(text, at);
      const char32_t last = next_character(end, end_at);
      if (last < first) refuse_at(begin, "a range that ends before it begins");
      return add({.kind = LarkKind::kRange, .place = begin, .first = first, .last = last});
    }
    const bool ignore_case = source_.peek() == 'i' && !is_lark_word(source_.peek(1));
    if (ignore_case) ++source_.at;
    return add({.kind = LarkKind::kString,
                .place = begin,
                .text = std::move(text),
                .ignore_case = ignore_case});
  }

  int32_t parse_repetitions(int32_t atom) {
    while (true) {
      const size_t begin = source_.at;
      std::pair<int32_t, int32_t> range;
      // A tilde after a space counts too: "a" ~ 3.
      skip(false);
      const auto digit_after_tilde = [&] {
        size_t ahead = 1;
        while (source_.peek(ahead) == ' ') ++ahead;
        return source_.peek(ahead) >= '0' && source_.peek(ahead) <= '9';
      };
      if (source_.take("*")) {
        range = {0, kUnbounded};
      } else if (source_.take("+")) {
        range = {1, kUnbounded};
      } else if (source_.take("?")) {
        range = {0, 1};
      } else if (source_.peek() == '~' && digit_after_tilde()) {
        ++source_.at;
        skip(false);
        range = take_lark_counts(source_, LarkCounts::kAfterTilde);
      } else if (source_.take("{")) {
        range = take_lark_counts(source_, LarkCounts::kAfterBrace);
      } else {
        source_.at = begin;
        return atom;
      }
      atom = add({.kind = LarkKind::kRepeat,
                  .place = begin,
                  .min = range.first,
                  .max = range.second,
                  .parts = {atom}});
    }
  }

  SourceText& source_;
  LarkGrammar grammar_;
  bool is_nested_ = false;
  int32_t nesting_ = 0;
  int32_t groups_ = 0;
};

}  // namespace

bool is_terminal_name(std::string_view name) {
  return std::ranges::none_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
}

LarkGrammar parse_lark_syntax(SourceText& source) {
  if (const size_t valid = valid_utf8_prefix(source.text); valid < source.text.size())
    source.refuse(valid, "expected UTF-8", Code::kInvalidArgument);
  return LarkParser(source).parse();
}

}  // namespace tgi::guide
