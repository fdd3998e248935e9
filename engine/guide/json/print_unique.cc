// Arrays whose items have to differ.
#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/guide/json/json_text_regex.h"
#include "engine/guide/json/schema_printer.h"

namespace tgi::guide {
namespace {

constexpr int64_t kMaxSets = 5000;

}  // namespace

Expr SchemaPrinter::different_items(const ArraySet& set) {
  if (const std::optional<Expr> few = few_different_items(set)) return json_.in_brackets(*few);
  return set.contains.empty() ? many_different_items(set) : counted_different_items(set);
}

// Which of the texts are of a kind that is counted, as bits; nothing: that depends on the place.
std::optional<std::vector<uint64_t>> SchemaPrinter::texts_of_kinds(
    const ArraySet& set, const std::vector<std::string>& texts) {
  std::vector<uint64_t> kinds;
  for (const Contains& kind : set.contains) {
    if (kind.from > 0) return std::nullopt;
    uint64_t bits = 0;
    for (size_t i = 0; i <= set.prefix.size(); ++i) {
      const auto found = few_texts(reader_, json_, reader_.demands().both(set.item(i), kind.item));
      if (!found) return std::nullopt;
      for (const std::string& text : *found) {
        const auto at = std::ranges::find(texts, text);
        if (at != texts.end()) bits |= uint64_t{1} << (at - texts.begin());
      }
    }
    kinds.push_back(bits);
  }
  return kinds;
}

// One rule for each set of values that are used up; nothing where there are too many.
std::optional<Expr> SchemaPrinter::few_different_items(const ArraySet& set) {
  constexpr size_t kMaxValues = 64;
  std::vector<std::string> texts;
  std::vector<std::vector<std::string>> places;
  for (size_t i = 0; i <= set.prefix.size(); ++i) {
    const bool is_past_end =
        set.max_items != kUnbounded && static_cast<int64_t>(i) >= set.max_items;
    std::optional<std::vector<std::string>> found = std::vector<std::string>();
    if (!is_past_end && set.item(i) == kAnything) return std::nullopt;
    if (!is_past_end) found = few_texts(reader_, json_, set.item(i));
    if (!found) return std::nullopt;
    places.push_back(*std::move(found));
    for (const std::string& text : places.back()) {
      if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
    }
  }
  if (texts.size() > kMaxValues) return std::nullopt;
  const std::optional<std::vector<uint64_t>> kinds = texts_of_kinds(set, texts);
  if (!kinds) return std::nullopt;
  const auto num_found = [&](uint64_t used, size_t kind) {
    return static_cast<int64_t>(std::popcount(used & (*kinds)[kind]));
  };
  // The sets of so many values: rules are made only where they are few.
  double num_sets = 0;
  double of_size = 1;
  for (size_t size = 0; size <= texts.size() && num_sets <= kMaxSets; ++size) {
    if (set.max_items != kUnbounded && static_cast<int64_t>(size) >= set.max_items) break;
    num_sets += of_size;
    of_size *= static_cast<double>(texts.size() - size) / static_cast<double>(size + 1);
  }
  if (num_sets > kMaxSets && set.prefix.empty()) return std::nullopt;
  std::map<uint64_t, Rule> rules;
  std::vector<uint64_t> open;
  const auto rule_of = [&](uint64_t used) {
    const auto [place, is_new] = rules.emplace(used, Rule{});
    if (is_new) {
      if (rules.size() > static_cast<size_t>(kMaxSets)) {
        refuse_schema(set.unique_at,
                      "that all items differ cannot be enforced of so many values: "
                      "there are more than " +
                          std::to_string(kMaxSets) + " sets of them; set maxItems lower");
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
    bool can_end = static_cast<int64_t>(place) >= set.min_items;
    bool has_room = set.max_items == kUnbounded || static_cast<int64_t>(place) < set.max_items;
    for (size_t k = 0; k < kinds->size(); ++k) {
      const Contains& kind = set.contains[k];
      const bool is_too_many = kind.max != kUnbounded && num_found(used, k) > kind.max;
      can_end = can_end && !is_too_many && num_found(used, k) >= kind.min;
      has_room = has_room && !is_too_many;
    }
    if (can_end) choices.push_back(grammar_.empty_text());
    // What the last item is does not matter where nothing is counted.
    const bool is_last = static_cast<int64_t>(place) + 1 == set.max_items && kinds->empty();
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

// Whether strings among the items never run out, and every length has many.
bool SchemaPrinter::is_endless(Demand item) {
  constexpr int64_t kManyLengths = 4;
  const Alternatives& choices = reader_.alternatives(item);
  return std::any_of(choices.begin(), choices.end(), [](const Alternative& value) {
    const StringSet& set = value.string;
    return value.type == JsonType::kString && !set.finite && !set.language &&
           (set.max_length == kUnbounded || set.max_length - set.min_length >= kManyLengths);
  });
}

// The item, which is none of those before it in its list, and its end. `needed`: of so many values
// one is left; nothing: it has fewer, or those beyond take too much to find. It counts as `length`
// or longer.
std::optional<Expr> SchemaPrinter::item_of(const ItemList& list,
                                           Demand demand,
                                           int64_t needed,
                                           int32_t length) {
  RegexPool& pool = grammar_.regex();
  const std::optional<Regex> texts = item_texts_.of(demand, list.demands);
  if (!texts) {
    refuse_schema(list.at, "that all items differ cannot be enforced: " + item_texts_.why_not());
  }
  const auto count = static_cast<size_t>(needed);
  const std::vector<int32_t> lengths =
      pool.lengths_of_different_values(*texts, static_cast<int32_t>(count));
  if (lengths.size() < count) return std::nullopt;
  const Rule rule = grammar_.declare_item("item", list.list, std::max(length, lengths[count - 1]),
                                          is_endless(demand));
  grammar_.define(rule, grammar_.terminal(*texts));
  return grammar_.sequence({grammar_.call(rule), grammar_.item_end(list.list)});
}

// One rule of items for each place; which values are used up is known where the text is.
Expr SchemaPrinter::many_different_items(const ArraySet& set) {
  constexpr int64_t kMaxLeast = 200;
  constexpr size_t kMaxPlaces = 60;
  constexpr int64_t kMaxMost = 1'000'000;
  const auto refuse = [&](const std::string& why) {
    refuse_schema(set.unique_at, "that all items differ cannot be enforced: " + why);
  };
  if (set.min_items > kMaxLeast) {
    refuse("at least " + std::to_string(set.min_items) + " items have to be there, and " +
           std::to_string(kMaxLeast) + " are the most that can be; set minItems lower");
  }
  if (set.max_items > kMaxMost) {
    refuse("up to " + std::to_string(set.max_items) + " items may be there, and " +
           std::to_string(kMaxMost) + " are the most that can be; set maxItems lower");
  }
  size_t num_places = set.prefix.size();
  if (set.max_items != kUnbounded)
    num_places = std::min(num_places, static_cast<size_t>(set.max_items));
  if (num_places > kMaxPlaces) {
    refuse(std::to_string(num_places) + " places have items of their own, and " +
           std::to_string(kMaxPlaces) + " are the most that can have; make prefixItems shorter");
  }
  ItemList list{grammar_.new_list(), {}, set.unique_at};
  std::vector<Demand>& all = list.demands;
  for (size_t place = 0; place < num_places; ++place) all.push_back(set.item(place));
  if (set.max_items == kUnbounded || set.max_items > static_cast<int64_t>(num_places))
    all.push_back(set.item(num_places));
  // The item at a place, and its end; nothing: no value can be there.
  const auto item_at = [&](size_t place, int64_t least) {
    const std::optional<Expr> item = item_of(list, set.item(place), std::max<int64_t>(least, 1));
    if (!item && least > 0) {
      refuse("item " + std::to_string(place + 1) + " has fewer than " + std::to_string(least) +
             " values, or those beyond take too much to find, and as many different ones are "
             "needed there; set minItems lower");
    }
    return item;
  };
  const Expr space = grammar_.terminal_in_place(json_.space_texts());
  const Expr comma = grammar_.terminal_in_place(json_.comma_texts());
  const auto places = static_cast<int64_t>(num_places);
  const int64_t most = set.max_items == kUnbounded ? kUnbounded : set.max_items - places;
  const auto least = static_cast<int32_t>(std::max<int64_t>(set.min_items - places, 0));
  Expr tail = grammar_.empty_text();
  std::optional<Expr> item;
  if (most != 0 && set.rest != kNothing)
    item = item_at(set.prefix.size(), least > 0 ? set.min_items : 0);
  if (item) {
    const Expr next = grammar_.sequence({comma, *item});
    if (places > 0) {
      tail = grammar_.repeat(next, least, static_cast<int32_t>(most));
    } else {
      const int64_t more = most == kUnbounded ? kUnbounded : most - 1;
      tail = grammar_.sequence(
          {space, *item,
           grammar_.repeat(next, std::max(least - 1, 0), static_cast<int32_t>(more))});
      if (least == 0) tail = grammar_.optional(tail);
    }
  } else if (least > 0) {
    return grammar_.nothing();
  }
  for (size_t i = num_places; i-- > 0;) {
    const bool required = static_cast<int64_t>(i) < set.min_items;
    const std::optional<Expr> here = item_at(i, required ? static_cast<int64_t>(i) + 1 : 0);
    tail = here ? grammar_.sequence({i == 0 ? space : comma, *here, tail}) : grammar_.nothing();
    if (!required) tail = grammar_.optional(tail);
  }
  const Rule rule = grammar_.declare_whole("items");
  grammar_.define(rule, grammar_.sequence({grammar_.text("["), tail, space, grammar_.text("]")}));
  return grammar_.call(rule);
}

}  // namespace tgi::guide
