#include "engine/guide/regex_class.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/guide/regex_sets.h"

namespace tgi::guide {
namespace {

constexpr int32_t kMaxNestedClasses = 100;

bool is_single(const CodePoints& set) {
  return set.size() == 1 && set[0].first == set[0].last;
}

// The name in "[:name:]", with its ^; "" where there is none.
std::string_view posix_name(std::string_view rest) {
  if (!rest.starts_with("[:")) return {};
  const size_t end = rest.find(":]", 2);
  if (end == std::string_view::npos) return {};
  const std::string_view name = rest.substr(2, end - 2);
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const std::string_view letters = name.substr(name.starts_with('^') ? 1 : 0);
  return std::ranges::all_of(letters, is_letter) && !letters.empty() ? name : std::string_view();
}

class ClassReader {
 public:
  ClassReader(RegexText& text, RegexSyntax syntax, bool ignore_case)
      : text_(text), syntax_(syntax), ignore_case_(ignore_case) {}

  CodePoints read() {
    const size_t begin = text_.at;
    if (syntax_ != RegexSyntax::kEcma) {
      // Python's and ECMA-262's [^[\]] is no class of Rust's: there its end is missing. Where
      // nothing but Rust's way can be meant it stays an error.
      try {
        if (std::optional<CodePoints> set = read_class(0)) return *std::move(set);
      } catch (const Error&) {
        if (is_surely_rust_) throw;
      }
      text_.at = begin;
      if (is_surely_rust_) refuse_open(begin);
      syntax_ = RegexSyntax::kEcma;
    }
    if (std::optional<CodePoints> set = read_class(0)) return *std::move(set);
    refuse_open(begin);
  }

 private:
  enum class Operator { kAnd, kWithout, kEitherAlone };

  [[noreturn]] void refuse_open(size_t begin) {
    text_.at = begin;
    text_.refuse("\"[\" without \"]\"");
  }

  std::string_view rest() const { return text_.pattern.substr(text_.at); }

  CodePoints folded(const CodePoints& set) const { return ignore_case_ ? fold_case(set) : set; }
  CodePoints set_of(const std::vector<CodePointRange>& ranges) const {
    return folded(normalize_code_points(ranges));
  }

  static CodePoints combined(const CodePoints& a, Operator how, const CodePoints& b) {
    if (how == Operator::kAnd) return intersect_code_points(a, b);
    const CodePoints only_a = intersect_code_points(a, negate_code_points(b));
    if (how == Operator::kWithout) return only_a;
    CodePoints both = intersect_code_points(b, negate_code_points(a));
    both.insert(both.end(), only_a.begin(), only_a.end());
    return normalize_code_points(both);
  }

  // None: its end is missing.
  std::optional<CodePoints> read_class(int32_t level) {
    if (level > kMaxNestedClasses) {
      text_.refuse("more than " + std::to_string(kMaxNestedClasses) +
                   " classes inside one another");
    }
    ++text_.at;
    const bool negated = text_.take('^');
    std::vector<CodePointRange> ranges;
    std::optional<std::pair<CodePoints, Operator>> left;
    // Python and Rust take ] as itself where it is first; ECMA-262 has the empty class there, which
    // nobody writes on purpose ([] and [^]).
    bool is_first = true;
    while (syntax_ == RegexSyntax::kRust && text_.take('-')) {
      ranges.push_back({'-', '-'});
      is_first = false;
    }
    const auto has_later_end = [&] {
      return text_.pattern.find(']', text_.at + 1) != std::string_view::npos;
    };
    while (true) {
      if (text_.at_end()) return std::nullopt;
      if (text_.peek() == ']' && !(is_first && has_later_end())) break;
      if (const auto how = take_operator(is_first)) {
        CodePoints set = set_of(ranges);
        if (left) set = combined(left->first, left->second, set);
        left = {std::move(set), *how};
        ranges.clear();
      } else if (!read_member(level, ranges)) {
        return std::nullopt;
      }
      is_first = false;
    }
    ++text_.at;
    CodePoints set = normalize_code_points(ranges);
    if (left) set = combined(left->first, left->second, set_of(ranges));
    return negated ? negate_code_points(folded(set)) : set;
  }

  // &&, -- or ~~. What ECMA-262 reads as ranges or as the characters themselves stays that, but in
  // Lark, where one side is empty.
  std::optional<Operator> take_operator(bool is_first) {
    if (syntax_ == RegexSyntax::kEcma || rest().size() < 3) return std::nullopt;
    constexpr std::array<std::pair<std::string_view, Operator>, 3> kOperators = {
        {{"&&", Operator::kAnd}, {"--", Operator::kWithout}, {"~~", Operator::kEitherAlone}}};
    for (const auto& [spelled, how] : kOperators) {
      if (!rest().starts_with(spelled)) continue;
      const char after = rest()[2];
      if (syntax_ != RegexSyntax::kRust && (is_first || after == ']')) return std::nullopt;
      is_surely_rust_ |= after == '[';
      text_.at += 2;
      return how;
    }
    return std::nullopt;
  }

  // False: the end of a class is missing.
  bool read_member(int32_t level, std::vector<CodePointRange>& ranges) {
    const auto add = [&](const CodePoints& set) {
      ranges.insert(ranges.end(), set.begin(), set.end());
    };
    if (text_.peek() == '[') {
      if (const std::string_view name = posix_name(rest()); !name.empty()) {
        add(posix_class(name));
        return true;
      }
      if (syntax_ != RegexSyntax::kEcma) {
        const std::optional<CodePoints> inner = read_class(level + 1);
        if (inner) add(*inner);
        return inner.has_value();
      }
    }
    const size_t place = text_.at;
    const CodePoints item = take_item();
    if (!begins_range(item)) {
      add(item);
      return true;
    }
    ++text_.at;
    const CodePoints last = take_item();
    if (!is_single(item) || !is_single(last)) {
      // [\w-.]: what can't be a range is three members, as in all dialects without the flag `u`.
      add(item);
      add(last);
      ranges.push_back({'-', '-'});
      return true;
    }
    if (last[0].first < item[0].first) {
      text_.at = place;
      text_.refuse("a range of characters that ends before it begins");
    }
    ranges.push_back({item[0].first, last[0].first});
    return true;
  }

  // One end of a range, or a set that is none.
  CodePoints take_item() {
    if (text_.peek() == '\\') return parse_regex_escape(text_, true);
    const char32_t character = text_.take_character();
    return {{character, character}};
  }

  bool begins_range(const CodePoints& item) const {
    const std::string_view after = rest();
    if (after.size() < 2 || after[0] != '-' || after[1] == ']') return false;
    if (syntax_ == RegexSyntax::kEcma || after[1] != '-') return true;
    if (syntax_ == RegexSyntax::kRust) return false;
    // [+--/] is a range of ECMA-262 and Python, [\w--\d] and [a--[b]] are none.
    if (after.size() > 2 && after[2] == ']') return true;
    return is_single(item) && item[0].first <= '-' && (after.size() < 3 || after[2] != '[');
  }

  CodePoints posix_class(std::string_view name) {
    const bool negated = name.starts_with('^');
    const std::optional<CodePoints> set = posix_characters(name.substr(negated ? 1 : 0));
    if (syntax_ == RegexSyntax::kEcma) {
      // By the letter these are a class of letters and colons, and a "]" behind it.
      if (!set) return take_item();
      text_.refuse("a POSIX class, which ECMA-262 doesn't have; write ranges or \\p{...}");
    }
    is_surely_rust_ = true;
    if (!set) text_.refuse("a POSIX class that isn't known");
    text_.at += name.size() + std::string_view("[::]").size();
    return negated ? negate_code_points(folded(*set)) : *set;
  }

  RegexText& text_;
  RegexSyntax syntax_;
  bool ignore_case_;
  bool is_surely_rust_ = false;
};

}  // namespace

CodePoints parse_regex_class(RegexText& text, RegexSyntax syntax, bool ignore_case) {
  return ClassReader(text, syntax, ignore_case).read();
}

}  // namespace tgi::guide
