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
  if (!set.contains.empty()) {
    refuse_schema(
        set.unique_at,
        "that all items differ cannot be enforced together with contains; take one of the "
        "two out");
  }
  if (const std::optional<Expr> few = few_different_items(set)) return json_.in_brackets(*few);
  return many_different_items(set);
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
  RegexPool& pool = grammar_.regex();
  const int32_t list = grammar_.new_list();
  std::vector<Demand> all;
  for (size_t place = 0; place < num_places; ++place) all.push_back(set.item(place));
  if (set.max_items == kUnbounded || set.max_items > static_cast<int64_t>(num_places))
    all.push_back(set.item(num_places));
  // The item at a place, and its end; nothing: no value can be there.
  const auto item_at = [&](size_t place, int64_t least) -> std::optional<Expr> {
    const Demand demand = set.item(place);
    const std::optional<Regex> texts = item_texts_.of(demand, all);
    if (!texts) {
      refuse_schema(set.unique_at,
                    "that all items differ cannot be enforced: " + item_texts_.why_not());
    }
    const auto count = static_cast<size_t>(std::max<int64_t>(least, 1));
    const std::vector<int32_t> lengths =
        pool.lengths_of_different_values(*texts, static_cast<int32_t>(count));
    if (lengths.size() < count) {
      if (least == 0) return std::nullopt;
      refuse("item " + std::to_string(place + 1) + " has " + std::to_string(lengths.size()) +
             " values, or those beyond take too much to find, and " + std::to_string(count) +
             " different ones are needed there; set minItems lower");
    }
    const Rule rule = grammar_.declare_item("item", list, lengths[count - 1], is_endless(demand));
    grammar_.define(rule, grammar_.terminal(*texts));
    return grammar_.sequence({grammar_.call(rule), grammar_.item_end(list)});
  };
  const Expr space = grammar_.terminal_in_place(json_.space_texts());
  const Expr comma = grammar_.terminal_in_place(
      pool.concat({json_.space_texts(), pool.literal(","), json_.space_texts()}));
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
