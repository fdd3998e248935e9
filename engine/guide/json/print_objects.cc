// Objects as rules: members in the order of the schema, then those that are no properties.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/guide/json/schema_printer.h"

namespace tgi::guide {
namespace {

std::vector<std::string> sorted_names(const ObjectSet& set) {
  std::vector<std::string> names;
  for (const Property& property : set.properties()) names.push_back(property.name);
  std::sort(names.begin(), names.end());
  return names;
}

// Members of which some may be missing, with commas between those that are there. Halves of a long
// list are rules, so that the grammar grows with the number of members and not with its square.
class MemberList {
 public:
  struct Part {
    Expr text;
    bool required;
  };
  MemberList(Grammar& grammar, const AnyJson& json, std::vector<Part> parts)
      : grammar_(grammar), json_(json), parts_(std::move(parts)) {
    num_required_.push_back(0);
    for (const Part& part : parts_) {
      num_required_.push_back(num_required_.back() + (part.required ? 1 : 0));
    }
  }

  bool may_be_missing(size_t begin, size_t end) const {
    return num_required_[begin] == num_required_[end];
  }

  // All from `begin` on, each behind a comma.
  Expr rest(size_t begin, size_t end) {
    constexpr size_t kSmall = 4;
    if (end - begin <= kSmall) {
      std::vector<Expr> texts;
      for (size_t i = begin; i < end; ++i) {
        const Expr text = grammar_.sequence({json_.comma(), parts_[i].text});
        texts.push_back(parts_[i].required ? text : grammar_.optional(text));
      }
      return grammar_.sequence(texts);
    }
    const auto [place, is_new] = rules_.emplace(std::pair(begin, end), Rule{});
    if (is_new) {
      const Rule rule = grammar_.declare("members");
      place->second = rule;
      const size_t middle = begin + (end - begin) / 2;
      grammar_.define(rule, grammar_.sequence({rest(begin, middle), rest(middle, end)}));
      return grammar_.call(rule);
    }
    return grammar_.call(place->second);
  }

  // At least one of them, the first without a comma. REQUIRES: begin < end.
  Expr first(size_t begin, size_t end) {
    if (end - begin == 1) return grammar_.sequence({json_.space(), parts_[begin].text});
    size_t middle = begin + (end - begin) / 2;
    if (parts_[begin].required) middle = begin + 1;
    const Expr here = grammar_.sequence({first(begin, middle), rest(middle, end)});
    if (!may_be_missing(begin, middle)) return here;
    return grammar_.either({here, first(middle, end)});
  }

 private:
  Grammar& grammar_;
  const AnyJson& json_;
  std::vector<Part> parts_;
  std::vector<size_t> num_required_;  // of the parts before
  std::map<std::pair<size_t, size_t>, Rule> rules_;
};

}  // namespace

Expr SchemaPrinter::object(const ObjectSet& set) {
  SetAlgebra& algebra = reader_.algebra();
  const bool is_closed = closes_objects_ && algebra.lists_its_members(set);
  std::vector<Expr> choices;
  for (const ObjectSet& placed : with_witnesses_placed(is_closed ? algebra.closed(set) : set)) {
    const auto& members = placed.properties();
    const bool is_impossible = std::any_of(members.begin(), members.end(), [](const Property& p) {
      return p.required && p.value == kNothing;
    });
    if (!is_impossible) choices.push_back(json_.in_braces(plain_members(placed)));
  }
  return grammar_.either(choices);
}

Expr SchemaPrinter::member(const Property& property) {
  return grammar_.sequence({json_.string(property.name), json_.colon(), value(property.value)});
}

std::optional<Expr> SchemaPrinter::others(const ObjectSet& set) {
  RegexPool& pool = grammar_.regex();
  const std::vector<std::string> names = sorted_names(set);
  std::vector<Expr> kinds;
  for (const NameClass& others : reader_.algebra().classes_of(set)) {
    if (others.value == kNothing) continue;
    if (others.names != pool.any_text() &&
        pool.is_empty(pool.without(others.names, reader_.algebra().strings.language_of(names)))) {
      continue;
    }
    kinds.push_back(grammar_.sequence(
        {reader_.algebra().strings.print_name(grammar_, others.names, names, json_.quotes()),
         json_.colon(), value(others.value)}));
  }
  if (kinds.empty()) return std::nullopt;
  const Rule rule = grammar_.declare("member");
  grammar_.define(rule, grammar_.either_side_by_side(kinds));
  return grammar_.call(rule);
}

Expr SchemaPrinter::plain_members(const ObjectSet& given) {
  SetAlgebra& algebra = reader_.algebra();
  const bool is_closed = closes_objects_ && algebra.lists_its_members(given);
  const ObjectSet set = is_closed ? algebra.closed(given) : given;
  std::vector<MemberList::Part> parts;
  for (const Property& property : set.properties()) {
    if (property.value != kNothing) parts.push_back({member(property), property.required});
  }
  const auto num_parts = static_cast<int64_t>(parts.size());
  const bool has_others = !is_closed || set.witnesses.empty();
  const std::optional<Expr> other = has_others ? others(set) : std::nullopt;
  const bool is_counted = set.min_properties > static_cast<int64_t>(set.num_required()) ||
                          (set.max_properties != kUnbounded &&
                           (other || !set.witnesses.empty() || set.max_properties < num_parts));
  if (is_counted) return counted_members(set, other);
  MemberList list(grammar_, json_, parts);
  const size_t size = parts.size();
  const bool may_be_missing = list.may_be_missing(0, size);
  if (!set.witnesses.empty()) {
    std::vector<Expr> choices;
    if (size > 0)
      choices.push_back(grammar_.sequence({list.first(0, size), witnesses(set, false)}));
    if (may_be_missing) choices.push_back(witnesses(set, true));
    return grammar_.either(choices);
  }
  std::vector<Expr> choices;
  if (size > 0) {
    Expr members = list.first(0, size);
    if (other) {
      const Expr next = grammar_.sequence({json_.comma(), *other});
      members = grammar_.sequence({members, grammar_.repeat(next, 0, kUnbounded)});
    }
    choices.push_back(members);
  }
  if (may_be_missing) choices.push_back(other ? json_.list_of(*other) : grammar_.empty_text());
  return grammar_.either(choices);
}

// One rule for each member and each number of members before it.
Expr SchemaPrinter::counted_members(const ObjectSet& set, std::optional<Expr> other) {
  constexpr int64_t kMaxStates = 20'000;
  const int64_t min = set.min_properties;
  const int64_t max = set.max_properties;
  std::vector<Property> members;
  for (const Property& property : set.properties()) {
    if (property.value != kNothing) members.push_back(property);
  }
  const auto size = static_cast<int64_t>(members.size());
  int64_t enough = max == kUnbounded ? min : max;
  const bool has_others = other || !set.witnesses.empty();
  if (!has_others) enough = std::min(enough, size);
  if (!has_others && min > size) return grammar_.nothing();
  if (enough > kMaxStates || (size + 1) * (enough + 1) > kMaxStates) {
    refuse_schema(set.count_at, "so many members cannot be counted");
  }
  std::vector<std::vector<Rule>> rules(static_cast<size_t>(size) + 1);
  for (auto& row : rules) {
    for (int64_t c = 0; c <= enough; ++c) row.push_back(grammar_.declare("members"));
  }
  for (int64_t i = 0; i <= size; ++i) {
    for (int64_t c = 0; c <= enough; ++c) {
      const Rule rule = rules[static_cast<size_t>(i)][static_cast<size_t>(c)];
      const bool has_room = max == kUnbounded || c < max;
      const Expr before = c == 0 ? json_.space() : json_.comma();
      if (i < size) {
        const Property& property = members[static_cast<size_t>(i)];
        const std::vector<Rule>& next = rules[static_cast<size_t>(i) + 1];
        std::vector<Expr> choices;
        if (!property.required) choices.push_back(grammar_.call(next[static_cast<size_t>(c)]));
        if (has_room) {
          // Beyond what counts, but never back to "the first".
          const int64_t after = std::min(c + 1, std::max<int64_t>(enough, 1));
          if (after <= enough) {
            choices.push_back(grammar_.sequence(
                {before, member(property), grammar_.call(next[static_cast<size_t>(after)])}));
          }
        }
        grammar_.define(rule, grammar_.either(choices));
        continue;
      }
      // Where one more is enough its name differs from those before.
      if (has_others && (min - c > 1 || !set.witnesses.empty())) {
        grammar_.define(rule, different_members(set, c));
        continue;
      }
      std::vector<Expr> choices;
      if (c >= min) choices.push_back(grammar_.empty_text());
      if (other && has_room) {
        const Expr next = grammar_.sequence({json_.comma(), *other});
        const int64_t more = max == kUnbounded ? kUnbounded : max - c - 1;
        choices.push_back(
            grammar_.sequence({before, *other, repeat_in_blocks(grammar_, next, 0, more)}));
      }
      grammar_.define(rule, grammar_.either(choices));
    }
  }
  return grammar_.call(rules[0][0]);
}

// A member that has to be there may be one of the properties, or one of the others.
std::vector<ObjectSet> SchemaPrinter::with_witnesses_placed(const ObjectSet& set) {
  constexpr size_t kMaxSets = 500;
  std::vector<ObjectSet> sets = {set};
  for (size_t w = 0; w < set.witnesses.size(); ++w) {
    const NameClass& witness = set.witnesses[w];
    std::vector<ObjectSet> more;
    for (ObjectSet& before : sets) {
      for (size_t i = 0; i < before.properties().size(); ++i) {
        const Property& property = before.properties()[i];
        const Demand both = reader_.demands().both(property.value, witness.value);
        if (both == kNothing || !grammar_.regex().matches(witness.names, property.name)) continue;
        ObjectSet placed = before;
        placed.property(i).value = both;
        placed.property(i).required = true;
        more.push_back(std::move(placed));
      }
      before.witnesses.push_back(witness);
      more.push_back(std::move(before));
    }
    sets = std::move(more);
    if (sets.size() > kMaxSets) {
      reject_combinations("#", "\"not\", or a oneOf, comes to more than " +
                                   std::to_string(kMaxSets) + " ways in which members can differ");
    }
  }
  // Those of the set itself stand before those that are left.
  for (ObjectSet& placed : sets) {
    placed.witnesses.erase(
        placed.witnesses.begin(),
        placed.witnesses.begin() + static_cast<std::ptrdiff_t>(set.witnesses.size()));
  }
  return sets;
}

// Members that are no properties, among them one for each witness: a rule for each set of them that
// was seen.
Expr SchemaPrinter::witnesses(const ObjectSet& set, bool is_first) {
  constexpr size_t kMaxWitnesses = 5;
  SetAlgebra& algebra = reader_.algebra();
  RegexPool& pool = grammar_.regex();
  const size_t count = set.witnesses.size();
  if (count > kMaxWitnesses) {
    refuse_schema(reader_.demands().path(set.witnesses.front().value),
                  "more than " + std::to_string(kMaxWitnesses) +
                      " members of any name that have to be there cannot be enforced");
  }
  const std::vector<std::string> names = sorted_names(set);
  const std::optional<Expr> other = others(set);
  const size_t all = (size_t{1} << count) - 1;
  const auto seen_now = [&](size_t which) {
    std::vector<Expr> kinds;
    for (NameClass kind : algebra.classes_of(set)) {
      for (size_t w = 0; w < count; ++w) {
        if ((which >> w & 1U) == 0) continue;
        kind.names = pool.both(kind.names, set.witnesses[w].names);
        kind.value = reader_.demands().both(kind.value, set.witnesses[w].value);
      }
      if (kind.value == kNothing || pool.is_empty(kind.names)) continue;
      kinds.push_back(grammar_.sequence(
          {algebra.strings.print_name(grammar_, kind.names, names, json_.quotes()), json_.colon(),
           value(kind.value)}));
    }
    return grammar_.either_side_by_side(kinds);
  };
  std::vector<Rule> rules;
  for (size_t seen = 0; seen <= all; ++seen) rules.push_back(grammar_.declare("members"));
  for (size_t seen = 0; seen <= all; ++seen) {
    std::vector<Expr> choices;
    if (seen == all) choices.push_back(grammar_.empty_text());
    for (size_t now = 1; now <= all; ++now) {
      if ((seen & now) != 0) continue;
      choices.push_back(
          grammar_.sequence({json_.comma(), seen_now(now), grammar_.call(rules[seen | now])}));
    }
    Expr body = grammar_.either(choices);
    if (other) {
      const Expr next = grammar_.sequence({json_.comma(), *other});
      body = grammar_.sequence({grammar_.repeat(next, 0, kUnbounded), body});
    }
    grammar_.define(rules[seen], body);
  }
  if (!is_first) return grammar_.call(rules[0]);
  std::vector<Expr> choices;
  if (other) {
    choices.push_back(grammar_.sequence({json_.space(), *other, grammar_.call(rules[0])}));
  }
  for (size_t now = 1; now <= all; ++now) {
    choices.push_back(grammar_.sequence({json_.space(), seen_now(now), grammar_.call(rules[now])}));
  }
  return grammar_.either(choices);
}

}  // namespace tgi::guide
