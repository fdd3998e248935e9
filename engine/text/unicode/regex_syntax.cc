#include "engine/text/unicode/regex_syntax.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/text/unicode/regex_class.h"

namespace tgi {
namespace {

constexpr int kMaxNesting = 100;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string literal(char32_t character) {
  if (character < 0x80 && is_word(static_cast<char>(character))) {
    return std::string(1, static_cast<char>(character));
  }
  return fmt::format("\\x{{{:X}}}", static_cast<uint32_t>(character));
}

class Translator {
 public:
  Translator(std::string_view pattern, bool newer_unicode)
      : pattern_(pattern), newer_unicode_(newer_unicode) {}

  std::string run() {
    groups_.push_back({});
    while (at_ < pattern_.size()) step();
    if (groups_.size() != 1) fail("a group that does not end");
    out_.append(static_cast<size_t>(groups_.back().extra_closes), ')');
    return std::move(out_);
  }

 private:
  struct Group {
    size_t begin = 0;  // where it opens in out_
    int extra_closes = 0;
  };

  [[noreturn]] void fail(std::string_view what) const {
    throw Error(Code::kUnsupported, fmt::format("{} at byte {} of \"{}\"", what, at_, pattern_));
  }

  bool peek(char c) const { return at_ < pattern_.size() && pattern_[at_] == c; }
  bool peek(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  bool take(std::string_view text) {
    if (!peek(text)) return false;
    at_ += text.size();
    return true;
  }
  char next() {
    if (at_ >= pattern_.size()) fail("an unexpected end");
    return pattern_[at_++];
  }

  void begin_atom() {
    atom_ = out_.size();
    quantified_ = false;
  }

  void step() {
    const char c = pattern_[at_];
    if (c == '\\') {
      ++at_;
      translate_escape();
    } else if (c == '[') {
      ++at_;
      begin_atom();
      out_ += translate_class(0);
    } else if (c == '(') {
      ++at_;
      open_group();
    } else if (c == ')') {
      ++at_;
      close_group();
    } else if (c == '*' || c == '+' || c == '?') {
      ++at_;
      add_quantifier(std::string(1, c), true);
    } else if (c == '{') {
      translate_interval();
    } else if (c == '|') {
      ++at_;
      out_ += '|';
      atom_.reset();
    } else if (c == '^' || c == '$' || c == '.') {
      ++at_;
      begin_atom();
      out_ += c;
    } else {
      begin_atom();
      out_ += literal(next_character(pattern_, at_));
    }
  }

  // simple: * + ?, whose lazy and possessive forms are the same in both syntaxes.
  void add_quantifier(const std::string& quantifier, bool simple) {
    if (!atom_) fail("a quantifier without anything to repeat");
    if (quantified_) {
      out_.insert(*atom_, "(?:");
      out_ += ')';
    }
    out_ += quantifier;
    quantified_ = true;
    if (peek('?')) {
      if (simple || quantifier.find(',') != std::string::npos) {
        ++at_;
        out_ += '?';
      }  // else {n}? means ({n})?: the next step wraps it
    } else if (peek('+') && simple) {
      ++at_;
      out_ += '+';
    }
  }

  void translate_interval() {
    size_t end = at_ + 1;
    while (end < pattern_.size() && (is_digit(pattern_[end]) || pattern_[end] == ',')) ++end;
    const std::string_view body = pattern_.substr(at_ + 1, end - at_ - 1);
    const bool closed = end < pattern_.size() && pattern_[end] == '}';
    const size_t comma = body.find(',');
    const bool one_comma =
        comma == std::string_view::npos || body.find(',', comma + 1) > body.size();
    if (!closed || body.empty() || body == "," || !one_comma) {
      ++at_;
      begin_atom();
      out_ += literal('{');
      return;
    }
    at_ = end + 1;
    add_quantifier(fmt::format("{{{}{}}}", comma == 0 ? "0" : "", body), false);
  }

  void open_group() {
    if (peek('*')) fail("a callout (*...)");
    begin_atom();
    if (!peek('?')) {
      groups_.push_back({out_.size(), 0});
      out_ += '(';
      atom_.reset();
      return;
    }
    if (take("?#")) {
      while (next() != ')') {
      }
      return;
    }
    for (const std::string_view kind : {"?:", "?=", "?!", "?>", "?<=", "?<!"}) {
      if (!take(kind)) continue;
      groups_.push_back({out_.size(), 0});
      out_ += '(';
      out_ += kind;
      atom_.reset();
      return;
    }
    ++at_;
    if (peek('<')) {
      open_named_group();
    } else {
      open_options();
    }
  }

  void open_named_group() {
    groups_.push_back({out_.size(), 0});
    out_ += "(?";
    do {
      if (peek('(') || peek(')') || peek('[')) fail("a group name");
      out_ += next();
    } while (out_.back() != '>');
    atom_.reset();
  }

  // (?i), which holds up to the end of the group around it, alternatives included, or (?i:...).
  void open_options() {
    std::string options = "(?";
    while (!peek(')') && !peek(':')) {
      const char c = next();
      if (c == 'm') {
        options += 's';
      } else if (c == 'i' || c == '-') {
        options += c;
      } else {
        --at_;
        fail("a group option");
      }
    }
    if (next() == ':') {
      groups_.push_back({out_.size(), 0});
    } else {
      ++groups_.back().extra_closes;
    }
    out_ += options + ":";
    atom_.reset();
  }

  void close_group() {
    if (groups_.size() == 1) fail("a ) without its (");
    const Group group = groups_.back();
    groups_.pop_back();
    out_.append(static_cast<size_t>(group.extra_closes) + 1, ')');
    atom_ = group.begin;
    quantified_ = false;
  }

  void translate_escape() {
    begin_atom();
    const char c = next();
    if (c == 'b' || c == 'B') {
      const std::string word =
          "[" + escape_set('w', SetPlace::kAlone, newer_unicode_).members + "]";
      out_ += c == 'b' ? fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", word)
                       : fmt::format("(?:(?<={0})(?={0})|(?<!{0})(?!{0}))", word);
    } else if (const auto set = named_set(c, SetPlace::kAlone)) {
      out_ += (set->negated ? "[^" : "[") + set->members + "]";
    } else if (std::string_view("AzZGKR").find(c) != std::string_view::npos) {
      out_ += '\\';
      out_ += c;
    } else if (c >= '1' && c <= '9') {
      out_ += fmt::format("\\g{{{}", c);
      while (at_ < pattern_.size() && is_digit(pattern_[at_])) out_ += next();
      out_ += '}';
    } else if (c == 'k' && peek('<')) {
      out_ += "\\k";
      do {
        out_ += next();
      } while (out_.back() != '>');
    } else {
      --at_;
      out_ += literal(escaped_character());
    }
  }

  // The set that the escape `c` (already taken) stands for, if it is one.
  std::optional<NamedSet> named_set(char c, SetPlace place) {
    if (std::string_view("sSdDwWhH").find(c) != std::string_view::npos) {
      return escape_set(c, place, newer_unicode_);
    }
    if (c != 'p' && c != 'P') return std::nullopt;
    if (!take("{")) fail("\\p without {");
    const size_t end = pattern_.find('}', at_);
    if (end == std::string_view::npos) fail("\\p{ without }");
    NamedSet set = property_set(pattern_.substr(at_, end - at_), place, newer_unicode_);
    at_ = end + 1;
    if (c == 'P') set.negated = !set.negated;
    return set;
  }

  // The character that an escape stands for; the backslash is already taken.
  char32_t escaped_character() {
    struct Row {
      char name;
      char32_t character;
    };
    constexpr Row kControls[] = {{'t', '\t'}, {'n', '\n'}, {'r', '\r'}, {'f', '\f'},
                                 {'v', '\v'}, {'a', '\a'}, {'e', 0x1B}};
    if (at_ >= pattern_.size()) fail("a backslash at the end");
    const char c = pattern_[at_];
    for (const Row& row : kControls) {
      if (row.name != c) continue;
      ++at_;
      return row.character;
    }
    if (c == 'x' || c == 'u' || c == '0') return numbered_character();
    if (is_word(c)) fail(fmt::format("the escape \\{}", c));
    return next_character(pattern_, at_);
  }

  char32_t numbered_character() {
    const char kind = next();
    const bool braces = kind == 'x' && take("{");
    const size_t most = braces ? 8 : kind == 'u' ? 4 : 2;
    const char32_t base = kind == '0' ? 8 : 16;
    char32_t value = 0;
    size_t digits = 0;
    while (digits < most && at_ < pattern_.size()) {
      const char c = pattern_[at_];
      const char low = static_cast<char>(c | 0x20);
      const bool hex = base == 16 && low >= 'a' && low <= 'f';
      if (!hex && (c < '0' || c > '9' || static_cast<char32_t>(c - '0') >= base)) break;
      value = value * base + static_cast<char32_t>(hex ? low - 'a' + 10 : c - '0');
      ++at_;
      ++digits;
    }
    if (braces && !take("}")) fail("\\x{ without }");
    if ((kind == 'u' && digits != 4) || (kind == 'x' && digits == 0))
      fail("a number of a character");
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) fail("no character");
    if (kind == 'x' && !braces && value > 0x7F) fail("a byte that is no character");
    return value;
  }

  // After the opening bracket, which is already taken.
  std::string translate_class(int depth) {
    if (depth > kMaxNesting) fail("classes nested too deep");
    const bool negated = take("^");
    ClassBuilder builder;
    bool first = true;
    while (first || !peek(']')) {
      if (at_ >= pattern_.size()) fail("a class that does not end");
      if (!first && take("&&")) {
        builder.intersect();
        continue;
      }
      if (peek("[:") && pattern_.find(":]", at_) != std::string_view::npos) {
        add_bracket(builder);
      } else if (!(first && peek(']')) && take("[")) {
        builder.add_expression(translate_class(depth + 1));
      } else {
        add_characters(builder);
      }
      first = false;
    }
    ++at_;
    return builder.finish(negated);
  }

  void add_bracket(ClassBuilder& builder) {
    const size_t end = pattern_.find(":]", at_);
    const std::string_view name = pattern_.substr(at_ + 2, end - at_ - 2);
    builder.add(property_set(name, SetPlace::kPosix, newer_unicode_));
    at_ = end + 2;
  }

  // One character, a range of them, or an escape that is a set.
  void add_characters(ClassBuilder& builder) {
    if (take("\\")) {
      const char c = next();
      if (const auto set = named_set(c, SetPlace::kInBrackets)) {
        builder.add(*set);
        return;
      }
      at_ -= 2;
    }
    const char32_t low = class_character();
    const bool range = peek('-') && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']';
    if (!range) {
      builder.add_members(literal(low));
      return;
    }
    const size_t dash = at_++;
    const bool set_follows = peek('[') || (peek('\\') && is_set_escape(at_ + 1)) || peek("&&");
    if (set_follows) {  // then the dash is one itself
      at_ = dash + 1;
      builder.add_members(literal(low) + literal('-'));
      return;
    }
    const char32_t high = class_character();
    if (high < low) fail("a range that runs backwards");
    builder.add_members(literal(low) + "-" + literal(high));
  }

  bool is_set_escape(size_t at) const {
    return at < pattern_.size() &&
           std::string_view("sSdDwWhHpP").find(pattern_[at]) != std::string_view::npos;
  }

  char32_t class_character() {
    if (!take("\\")) return next_character(pattern_, at_);
    if (take("b")) return '\b';
    return escaped_character();
  }

  const std::string_view pattern_;
  const bool newer_unicode_;
  size_t at_ = 0;
  std::string out_;
  std::optional<size_t> atom_;  // where the last atom begins in out_, if one is there to repeat
  bool quantified_ = false;     // it already has a quantifier
  std::vector<Group> groups_;
};

}  // namespace

std::string to_pcre2_syntax(std::string_view pattern, bool newer_unicode) {
  return Translator(pattern, newer_unicode).run();
}

}  // namespace tgi
