// Arrays as rules: items by place, counts, items that have to be there, items that differ.
#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/guide/json/schema_printer.h"

namespace tgi::guide {
namespace {

constexpr int64_t kMaxStates = 5000;

// The texts of a demand that has few values, none of them an array or object.
std::optional<std::vector<std::string>> texts_of(SchemaReader& reader,
                                                 const AnyJson& json,
                                                 Demand demand) {
  std::vector<std::string> texts;
  for (const Alternative& value : reader.alternatives(demand)) {
    if (value.type == JsonType::kNull) {
      texts.emplace_back(json.null_word());
    } else if (value.type == JsonType::kBoolean) {
      if (value.can_be_true) texts.emplace_back(json.true_word());
      if (value.can_be_false) texts.emplace_back(json.false_word());
    } else if (value.type == JsonType::kNumber && value.number.finite) {
      for (const Decimal& number : *value.number.finite) texts.push_back(number.text());
    } else if (value.type == JsonType::kString && value.string.finite) {
      for (const std::string& text : *value.string.finite) texts.push_back(quoted_json(text));
    } else {
      return std::nullopt;
    }
  }
  return texts;
}

}  // namespace

Expr SchemaPrinter::array(const ArraySet& set) {
  const bool may_repeat =
      set.unique_at.empty() || (set.max_items != kUnbounded && set.max_items <= 1);
  if (!may_repeat && !are_different(set)) return json_.in_brackets(different_items(set));
  if (!set.contains.empty()) return json_.in_brackets(counted_items(set));
  return json_.in_brackets(plain_items(set));
}

Expr SchemaPrinter::plain_items(const ArraySet& set) {
  constexpr size_t kNesting = 32;
  size_t num_places = set.prefix.size();
  if (set.max_items != kUnbounded) {
    num_places = std::min(num_places, static_cast<size_t>(set.max_items));
  }
  const auto places = static_cast<int64_t>(num_places);
  const int64_t most = set.max_items == kUnbounded ? kUnbounded : set.max_items - places;
  const int64_t least = std::max<int64_t>(set.min_items - places, 0);
  Expr tail = grammar_.empty_text();
  if (most != 0 && set.rest != kNothing) {
    const Expr item = value(set.rest);
    const Expr next = grammar_.sequence({json_.comma(), item});
    if (places > 0) {
      tail = repeat_in_blocks(grammar_, next, least, most);
    } else {
      const Expr more = repeat_in_blocks(grammar_, next, std::max<int64_t>(least - 1, 0),
                                         most == kUnbounded ? kUnbounded : most - 1);
      tail = grammar_.sequence({json_.space(), item, more});
      if (least == 0) tail = grammar_.optional(tail);
    }
  } else if (least > 0) {
    return grammar_.nothing();
  }
  // From the last place to the first: each may be the end from min_items on.
  std::vector<Expr> parts = {tail};
  for (size_t i = num_places; i-- > 0;) {
    parts.insert(parts.begin(), {i == 0 ? json_.space() : json_.comma(), value(set.prefix[i])});
    if (static_cast<int64_t>(i) < set.min_items) continue;
    Expr rest = grammar_.optional(grammar_.sequence(parts));
    if (i % kNesting == kNesting - 1) {
      const Rule rule = grammar_.declare("items");
      grammar_.define(rule, rest);
      rest = grammar_.call(rule);
    }
    parts = {rest};
  }
  return grammar_.sequence(parts);
}

// One rule for each place and each number of items found so far.
Expr SchemaPrinter::counted_items(const ArraySet& set) {
  constexpr size_t kMaxKinds = 4;
  const std::vector<Contains>& kinds = set.contains;
  if (kinds.size() > kMaxKinds) {
    refuse_schema(kinds[kMaxKinds].at, "more than " + std::to_string(kMaxKinds) +
                                           " contains for one array cannot be enforced");
  }
  // From here on one place is like the next.
  auto last_place =
      std::max<int64_t>({1, set.min_items, set.max_items, static_cast<int64_t>(set.prefix.size())});
  for (const Contains& kind : kinds) {
    last_place = std::max(last_place, static_cast<int64_t>(kind.from));
  }
  using State = std::vector<int64_t>;  // the place, and a number for each kind
  std::map<State, Rule> rules;
  std::vector<State> open;
  const auto rule_of = [&](const State& state) {
    const auto [place, is_new] = rules.emplace(state, Rule{});
    if (is_new) {
      if (rules.size() > static_cast<size_t>(kMaxStates)) {
        refuse_schema(kinds.front().at, "the counts of the items are too large to be enforced");
      }
      place->second = grammar_.declare("items");
      open.push_back(state);
    }
    return place->second;
  };
  const Rule first = rule_of(State(1 + kinds.size(), 0));
  while (!open.empty()) {
    const State state = open.back();
    open.pop_back();
    const int64_t place = state[0];
    bool can_end = place >= set.min_items;
    for (size_t k = 0; k < kinds.size(); ++k) can_end = can_end && state[k + 1] >= kinds[k].min;
    std::vector<Expr> choices;
    std::vector<Expr> loops;
    if (can_end) choices.push_back(grammar_.empty_text());
    const bool has_room = set.max_items == kUnbounded || place < set.max_items;
    for (uint32_t found = 0; has_room && found < (1U << kinds.size()); ++found) {
      Demand item = set.item(static_cast<size_t>(place));
      State next = state;
      next[0] = std::min(place + 1, last_place);
      bool is_possible = true;
      for (size_t k = 0; k < kinds.size(); ++k) {
        const Contains& kind = kinds[k];
        const bool is_found = (found >> k & 1U) != 0;
        const bool counts = static_cast<int64_t>(kind.from) <= place;
        const int64_t enough = kind.max == kUnbounded ? kind.min : kind.max;
        if (is_found) {
          is_possible = is_possible && counts && state[k + 1] < enough;
          item = reader_.demands().both(item, kind.item);
          ++next[k + 1];
        } else if (counts && kind.max != kUnbounded) {
          item = reader_.demands().both(item, reader_.demands().negated(kind.item));
        }
      }
      if (!is_possible || item == kNothing) continue;
      const Expr text =
          grammar_.sequence({place == 0 ? json_.space() : json_.comma(), value(item)});
      if (next == state) {
        loops.push_back(text);
      } else {
        choices.push_back(grammar_.sequence({text, grammar_.call(rule_of(next))}));
      }
    }
    Expr body = grammar_.either(choices);
    if (!loops.empty()) {
      body = grammar_.sequence({grammar_.repeat(grammar_.either(loops), 0, kUnbounded), body});
    }
    grammar_.define(rules.at(state), body);
  }
  return grammar_.call(first);
}

bool SchemaPrinter::are_different(const ArraySet& set) {
  constexpr int64_t kMaxPlaces = 30;
  const auto places = static_cast<int64_t>(set.prefix.size());
  if (set.max_items == kUnbounded || set.max_items > places || set.max_items > kMaxPlaces) {
    return false;
  }
  for (size_t i = 0; i < static_cast<size_t>(set.max_items); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const Demand both = reader_.demands().both(set.prefix[i], set.prefix[j]);
      if (!reader_.algebra().is_surely_empty(both)) return false;
    }
  }
  return true;
}

// One rule for each set of values that are used up.
Expr SchemaPrinter::different_items(const ArraySet& set) {
  constexpr size_t kMaxValues = 64;
  const auto refuse = [&](const std::string& why) {
    refuse_schema(set.unique_at, "that all items differ cannot be enforced " + why);
  };
  if (!set.contains.empty()) refuse("together with contains");
  std::vector<std::string> texts;
  const auto values_at = [&](size_t place) {
    const Demand item = set.item(place);
    std::optional<std::vector<std::string>> found;
    if (item != kAnything) found = texts_of(reader_, json_, item);
    if (!found) {
      refuse(
          "where items can have any number of values; list them in an enum, or set maxItems to 1");
    }
    return *found;
  };
  std::vector<std::vector<std::string>> places;
  for (size_t i = 0; i <= set.prefix.size(); ++i) {
    const bool is_past_end =
        set.max_items != kUnbounded && static_cast<int64_t>(i) >= set.max_items;
    places.push_back(is_past_end ? std::vector<std::string>() : values_at(i));
    for (const std::string& text : places.back()) {
      if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
    }
  }
  if (texts.size() > kMaxValues) {
    refuse("where items can have more than " + std::to_string(kMaxValues) + " values");
  }
  std::map<uint64_t, Rule> rules;
  std::vector<uint64_t> open;
  const auto rule_of = [&](uint64_t used) {
    const auto [place, is_new] = rules.emplace(used, Rule{});
    if (is_new) {
      if (rules.size() > static_cast<size_t>(kMaxStates)) {
        refuse("of so many values: there are more than " + std::to_string(kMaxStates) +
               " sets of them; set maxItems lower");
      }
      place->second = grammar_.declare("items");
      open.push_back(used);
    }
    return place->second;
  };
  const Rule first = rule_of(0);
  while (!open.empty()) {
    const uint64_t used = open.back();
    open.pop_back();
    const auto place = static_cast<size_t>(std::popcount(used));
    std::vector<Expr> choices;
    if (static_cast<int64_t>(place) >= set.min_items) choices.push_back(grammar_.empty_text());
    const bool has_room =
        set.max_items == kUnbounded || static_cast<int64_t>(place) < set.max_items;
    const bool is_last = static_cast<int64_t>(place) + 1 == set.max_items;
    const std::vector<std::string>& here = places[std::min(place, places.size() - 1)];
    const Expr before = place == 0 ? json_.space() : json_.comma();
    std::vector<Expr> last;
    for (size_t t = 0; has_room && t < texts.size(); ++t) {
      if ((used >> t & 1U) != 0) continue;
      if (std::find(here.begin(), here.end(), texts[t]) == here.end()) continue;
      const Expr text = grammar_.text(texts[t]);
      if (is_last) {
        last.push_back(text);
      } else {
        choices.push_back(
            grammar_.sequence({before, text, grammar_.call(rule_of(used | uint64_t{1} << t))}));
      }
    }
    if (!last.empty()) choices.push_back(grammar_.sequence({before, grammar_.either(last)}));
    grammar_.define(rules.at(used), grammar_.either(choices));
  }
  return grammar_.call(first);
}

}  // namespace tgi::guide
