// Sets of characters in a regular expression, on the way from Oniguruma's to PCRE2's syntax. Used
// by regex_syntax.cc only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tgi {

// What \s, \p{...} or [:...:] stand for: the inside of a PCRE2 class, possibly its complement.
struct NamedSet {
  std::string members;
  bool negated = false;
};

// Where a set stands, on which two of them hang in Oniguruma: \w and \p{Word} by themselves, unlike
// within brackets, hold the numbers of Latin-1; [:punct:], unlike \p{Punct}, holds symbols.
enum class SetPlace : uint8_t { kAlone, kInBrackets, kPosix };

// escape: one of s S d D w W h H. newer_unicode as in to_pcre2_syntax.
NamedSet escape_set(char escape, SetPlace place, bool newer_unicode);

// A property (\p{...}) or POSIX bracket name, upper and lower case, spaces, '-' and '_' all the
// same; a leading ^ negates. Throws kUnsupported for a name that is empty or not plain ASCII; an
// unknown one is found by PCRE2.
NamedSet property_set(std::string_view name, SetPlace place, bool newer_unicode);

// A union of parts, intersections of such unions, perhaps the complement of it all. PCRE2 10.42 has
// no set operations, so what one class can't say becomes look-aheads before a single character.
class ClassBuilder {
 public:
  void add_members(std::string_view members) { members_ += members; }
  void add(const NamedSet& set);
  void add_expression(std::string expression) { others_.push_back(std::move(expression)); }
  void intersect();  // what follows is the right-hand side of &&
  bool empty() const { return members_.empty() && others_.empty(); }

  // An expression that matches exactly one character.
  std::string finish(bool negated);

 private:
  std::string take_union();

  std::string members_;              // the inside of one class
  std::vector<std::string> others_;  // what does not fit into it
  std::vector<std::string> operands_;
};

}  // namespace tgi
