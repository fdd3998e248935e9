// Members of any name of which so many have to be there, or that have to be of a kind: their names
// differ, as items of an array may have to.
#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/guide/json/schema_printer.h"

namespace tgi::guide {
namespace {

constexpr int64_t kMaxNeeded = 100;
constexpr size_t kMaxWitnesses = 5;
// Longer than what can be counted on, of a name that may be used up.
constexpr int32_t kFarNameLength = 1'000'000;

}  // namespace

// Those behind `before` members, of which the first `before` are properties: first the witnesses,
// in any order, then as many as have to be there, then others. All of them in one rule, which is
// where their names are told apart.
class SchemaPrinter::MemberTail {
 public:
  MemberTail(SchemaPrinter& printer, const ObjectSet& set, int64_t before)
      : printer_(printer),
        grammar_(printer.grammar_),
        set_(set),
        before_(before),
        list_(printer.grammar_.new_list()) {
    for (const Property& property : set.properties()) names_.push_back(property.name);
    std::ranges::sort(names_);
    const AnyJson& json = printer.json_;
    space_ = grammar_.terminal_in_place(json.space_texts());
    comma_ = grammar_.terminal_in_place(json.comma_texts());
    RegexPool& pool = grammar_.regex();
    colon_ = grammar_.terminal_in_place(
        pool.concat({json.space_texts(), pool.literal(":"), json.space_texts()}));
    any_ = kinds_of(0);
  }

  Expr print() {
    if (set_.witnesses.size() > kMaxWitnesses) {
      refuse_schema(printer_.reader_.demands().path(set_.witnesses.front().value),
                    "more than " + std::to_string(kMaxWitnesses) +
                        " members of any name that have to be there cannot be enforced");
    }
    if (set_.min_properties - before_ > kMaxNeeded) {
      refuse("more than " + std::to_string(kMaxNeeded) +
             " members have to be there whose names are not listed");
    }
    const Rule rule = grammar_.declare_whole("members");
    grammar_.define(rule, behind(before_, 0));
    return grammar_.call(rule);
  }

 private:
  struct Kind {
    Regex texts;  // of the name, with its quotes
    Demand value;
    bool is_endless = false;
    std::map<int64_t, Expr> names{};  // by how many are needed
  };

  [[noreturn]] void refuse(const std::string& why) const {
    refuse_schema(set_.count_at, why +
                                     "; list their names in properties, or in an enum of "
                                     "propertyNames");
  }

  // Members that are of all the witnesses in `which`.
  std::vector<Kind> kinds_of(size_t which) {
    RegexPool& pool = grammar_.regex();
    SetAlgebra& algebra = printer_.reader_.algebra();
    std::vector<Kind> kinds;
    for (NameClass kind : algebra.classes_of(set_)) {
      for (size_t w = 0; w < set_.witnesses.size(); ++w) {
        if ((which >> w & 1U) == 0) continue;
        kind.names = pool.both(kind.names, set_.witnesses[w].names);
        kind.value = printer_.reader_.demands().both(kind.value, set_.witnesses[w].value);
      }
      if (kind.value == kNothing) continue;
      const bool is_endless = kind.names == pool.any_text();
      Regex names = kind.names;
      if (!names_.empty()) names = pool.without(names, algebra.strings.language_of(names_));
      if (pool.is_empty(names)) continue;
      kinds.push_back(
          {algebra.strings.canonical_texts(algebra.strings.of(names)), kind.value, is_endless});
    }
    return kinds;
  }

  // Nothing: there are none. `needed`: one is left when all names but one of so many are used.
  std::optional<Expr> member(const std::vector<Kind>& kinds, int64_t needed) {
    RegexPool& pool = grammar_.regex();
    std::vector<Expr> choices;
    bool is_sure = false;
    for (const Kind& kind : kinds) {
      std::vector<int32_t> lengths =
          pool.lengths_of_different_values(kind.texts, static_cast<int32_t>(needed));
      const bool is_enough = static_cast<int64_t>(lengths.size()) == needed;
      if (!is_enough) lengths.push_back(kFarNameLength);
      is_sure = is_sure || is_enough;
      const Rule name = grammar_.declare_item("name", list_, lengths.back(), kind.is_endless);
      grammar_.define(name, grammar_.terminal(kind.texts));
      choices.push_back(grammar_.sequence(
          {grammar_.call(name), grammar_.item_end(list_), colon_, printer_.value(kind.value)}));
    }
    if (choices.empty()) return std::nullopt;
    if (!is_sure) {
      refuse("that " + std::to_string(needed) +
             " members have different names cannot be enforced where patterns have fewer names");
    }
    return grammar_.either(choices);
  }

  Expr separator(int64_t count) const { return count == 0 ? space_ : comma_; }

  // What follows `count` members, `seen` of the witnesses among them.
  Expr behind(int64_t count, size_t seen) {
    const size_t all = (size_t{1} << set_.witnesses.size()) - 1;
    const int64_t max = set_.max_properties;
    if (seen == all) return others(count);
    if (max != kUnbounded && count >= max) return grammar_.nothing();
    std::vector<Expr> choices;
    for (size_t now = 1; now <= all; ++now) {
      if ((seen & now) != 0) continue;
      if (!kinds_[now]) kinds_[now] = kinds_of(now);
      const std::optional<Expr> next = member(*kinds_[now], count - before_ + 1);
      if (next)
        choices.push_back(
            grammar_.sequence({separator(count), *next, behind(count + 1, seen | now)}));
    }
    return grammar_.either(choices);
  }

  Expr others(int64_t count) {
    const int64_t max = set_.max_properties;
    std::vector<Expr> parts;
    for (; count < set_.min_properties; ++count) {
      const std::optional<Expr> next = member(any_, count - before_ + 1);
      if (!next || (max != kUnbounded && count >= max)) return grammar_.nothing();
      parts.push_back(separator(count));
      parts.push_back(*next);
    }
    const std::optional<Expr> more = member(any_, 1);
    if (more && count > 0 && (max == kUnbounded || count < max)) {
      const auto most = static_cast<int32_t>(max == kUnbounded ? kUnbounded : max - count);
      parts.push_back(grammar_.repeat(grammar_.sequence({comma_, *more}), 0, most));
    }
    return grammar_.sequence(parts);
  }

  SchemaPrinter& printer_;
  Grammar& grammar_;
  const ObjectSet& set_;
  const int64_t before_;
  const int32_t list_;
  std::vector<std::string> names_;  // of the properties, sorted
  Expr space_;
  Expr comma_;
  Expr colon_;
  std::vector<Kind> any_;
  std::map<size_t, std::optional<std::vector<Kind>>> kinds_;  // by the witnesses that they are of
};

Expr SchemaPrinter::different_members(const ObjectSet& set, int64_t before) {
  return MemberTail(*this, set, before).print();
}

}  // namespace tgi::guide
