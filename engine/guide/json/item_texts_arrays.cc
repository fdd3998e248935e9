// Arrays in items that have to differ, and what is known of their values.
#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/guide/json/item_counts.h"
#include "engine/guide/json/item_texts.h"
#include "engine/guide/json/json_text_regex.h"

namespace tgi::guide {
namespace {

constexpr size_t kMaxPlaces = 60;  // with items of their own
constexpr size_t kMaxFew = 30;     // values that are listed
constexpr size_t kMaxFewest = 6;   // of which all orders are followed

// The words, numbers, strings, arrays and objects that begin alike, each kind as a language of
// beginnings with anything behind them.
std::vector<Regex> beginnings(RegexPool& pool, const Alternatives& values) {
  const Regex anything = pool.complement(pool.nothing());
  const auto begins = [&](std::string_view text) {
    return pool.concat({pool.literal(text), anything});
  };
  const auto has = [&](JsonType type) {
    return std::ranges::any_of(values,
                               [&](const Alternative& value) { return value.type == type; });
  };
  std::vector<Regex> kinds;
  if (has(JsonType::kNull)) kinds.push_back(pool.either({begins("n"), begins("N")}));
  if (has(JsonType::kBoolean)) {
    kinds.push_back(pool.either({begins("f"), begins("F")}));
    kinds.push_back(pool.either({begins("t"), begins("T")}));
  }
  if (has(JsonType::kNumber)) {
    // "-0" is 0.
    ByteSet digits;
    for (char digit = '1'; digit <= '9'; ++digit) digits.set(static_cast<uint8_t>(digit));
    kinds.push_back(pool.concat({pool.literal("-"), anything, pool.bytes(digits), anything}));
    for (char digit = '0'; digit <= '9'; ++digit) kinds.push_back(begins(std::string(1, digit)));
  }
  if (has(JsonType::kString)) {
    for (const ByteSet& first : first_characters())
      kinds.push_back(pool.concat({pool.literal("\""), pool.bytes(first), anything}));
  }
  if (has(JsonType::kArray)) kinds.push_back(begins("["));
  if (has(JsonType::kObject)) kinds.push_back(begins("{"));
  return kinds;
}

}  // namespace

// First characters that tell names and strings apart: digits, letters of either case, all others.
std::vector<ByteSet> first_characters() {
  std::vector<ByteSet> kinds;
  ByteSet others = ~ByteSet();
  const auto add = [&](char one, char other) {
    ByteSet set;
    set.set(static_cast<uint8_t>(one)).set(static_cast<uint8_t>(other));
    others &= ~set;
    kinds.push_back(set);
  };
  for (char digit = '0'; digit <= '9'; ++digit) add(digit, digit);
  for (char letter = 'a'; letter <= 'z'; ++letter)
    add(letter, static_cast<char>(letter - 'a' + 'A'));
  kinds.insert(kinds.begin(), others);
  return kinds;
}

bool are_places_different(SchemaReader& reader, const ArraySet& set) {
  constexpr int64_t kMaxPlaces = 30;
  const auto places = static_cast<int64_t>(set.prefix.size());
  if (set.max_items == kUnbounded || set.max_items > places || set.max_items > kMaxPlaces) {
    return false;
  }
  for (size_t i = 0; i < static_cast<size_t>(set.max_items); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const Demand both = reader.demands().both(set.prefix[i], set.prefix[j]);
      if (!reader.algebra().is_surely_empty(both)) return false;
    }
  }
  return true;
}

std::optional<std::vector<std::string>> few_texts(SchemaReader& reader,
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
  // Alternatives may overlap; values keep the order in which they are listed.
  std::set<std::string> seen;
  std::erase_if(texts, [&](const std::string& text) { return !seen.insert(text).second; });
  return texts;
}

// One expression for each set of values that were used.
Regex ItemTexts::in_any_order(const std::vector<std::string>& texts, int64_t least, int64_t most) {
  RegexPool& pool = grammar_.regex();
  const Regex space = json_.space_texts();
  const Regex comma = json_.comma_texts();
  std::vector<Regex> rest(size_t{1} << texts.size(), pool.nothing());
  for (size_t used = rest.size(); used-- > 0;) {
    const int64_t count = std::popcount(used);
    std::vector<Regex> choices;
    if (count >= least) choices.push_back(pool.empty_text());
    for (size_t i = 0; i < texts.size() && (most == kUnbounded || count < most); ++i) {
      if ((used >> i & 1U) != 0) continue;
      choices.push_back(pool.concat(
          {count == 0 ? space : comma, pool.literal(texts[i]), rest[used | size_t{1} << i]}));
    }
    rest[used] = pool.either(choices);
  }
  return rest[0];
}

// The fewest values in any order, few in one, others by how they begin.
std::optional<Regex> ItemTexts::different_items(const ArraySet& set,
                                                Demand of,
                                                size_t at,
                                                int depth) {
  RegexPool& pool = grammar_.regex();
  if (!set.contains.empty()) {
    return refuse(of,
                  "arrays of an item have a uniqueItems with a contains: take one of the two out");
  }
  if (!set.prefix.empty()) {
    return refuse(
        of,
        "arrays of an item have a uniqueItems with places of their own: take one of the two out");
  }
  std::vector<Part> parts;
  const std::optional<std::vector<std::string>> few =
      set.rest == kAnything ? std::nullopt : few_texts(reader_, json_, set.rest);
  if (few && few->size() <= kMaxFewest) return in_any_order(*few, set.min_items, set.max_items);
  if (few && few->size() <= kMaxFew) {
    for (const std::string& text : *few) parts.push_back({pool.literal(text)});
  } else {
    const std::optional<Regex> item = value(set.rest, place_of_items(at), depth);
    if (!item) return std::nullopt;
    // A copy: see value().
    const Alternatives values = reader_.alternatives(set.rest);
    for (const Regex kind : beginnings(pool, values)) parts.push_back({pool.both(*item, kind)});
  }
  return in_order(parts, set.min_items, set.max_items, of);
}

// From the last state to the first.
std::optional<Regex> ItemTexts::counted_items(const ArraySet& set, size_t at, int depth) {
  constexpr size_t kMaxStates = 500;
  RegexPool& pool = grammar_.regex();
  const Regex space = json_.space_texts();
  const ItemCounts counts(reader_.demands(), set, kMaxStates);
  std::vector<Regex> behind(counts.states.size(), pool.nothing());
  for (size_t i = counts.states.size(); i-- > 0;) {
    const ItemCounts::State& state = counts.states[i];
    std::vector<Regex> choices;
    std::vector<Regex> loops;
    if (state.can_end) choices.push_back(pool.empty_text());
    for (const ItemCounts::Step& step : state.steps) {
      const std::optional<Regex> item = value(step.item, place_of_items(at), depth);
      if (!item) return std::nullopt;
      const Regex text = pool.concat({state.place == 0 ? space : json_.comma_texts(), *item});
      if (step.to == i) {
        loops.push_back(text);
      } else {
        choices.push_back(pool.concat({text, behind[step.to]}));
      }
    }
    behind[i] = pool.concat({pool.repeat(pool.either(loops), 0, kUnbounded), pool.either(choices)});
  }
  return behind.front();
}

std::optional<Regex> ItemTexts::array(const ArraySet& set, Demand of, size_t at, int depth) {
  constexpr int64_t kMost = 1'000'000;
  RegexPool& pool = grammar_.regex();
  const Regex space = json_.space_texts();
  const Regex comma = json_.comma_texts();
  const auto in_brackets = [&](Regex inside) {
    return pool.concat({pool.literal("["), inside, space, pool.literal("]")});
  };
  const auto places = static_cast<int64_t>(set.prefix.size());
  const bool may_repeat =
      set.unique_at.empty() || (set.max_items != kUnbounded && set.max_items <= 1);
  if (!may_repeat && !are_places_different(reader_, set)) {
    const std::optional<Regex> inside = different_items(set, of, at, depth);
    if (!inside) return std::nullopt;
    return in_brackets(*inside);
  }
  if (!set.contains.empty()) {
    const std::optional<Regex> inside = counted_items(set, at, depth);
    if (!inside) return std::nullopt;
    return in_brackets(*inside);
  }
  if (set.prefix.size() > kMaxPlaces) {
    return refuse(of, "arrays of an item have " + std::to_string(places) +
                          " places with items of their own, and at most " +
                          std::to_string(kMaxPlaces) + " can be told apart: make them fewer");
  }
  if (set.min_items > kMost || (set.max_items != kUnbounded && set.max_items > kMost)) {
    return refuse(of, "arrays of an item may have more than " + std::to_string(kMost) +
                          " items: make them shorter");
  }
  // From the last place to the first; nothing: what is behind has to be there and can't.
  Regex inside = pool.empty_text();
  const int64_t room = set.max_items == kUnbounded ? kUnbounded : set.max_items - places;
  const auto least = static_cast<int32_t>(std::max<int64_t>(set.min_items - places, 0));
  if ((set.max_items == kUnbounded || room > 0) && set.rest != kNothing) {
    const std::optional<Regex> item = value(set.rest, place_of_items(at), depth);
    if (!item) return std::nullopt;
    const Regex next = pool.concat({comma, *item});
    if (places > 0) {
      inside = pool.repeat(next, least, static_cast<int32_t>(room));
    } else {
      const int64_t more = room == kUnbounded ? kUnbounded : room - 1;
      inside = pool.concat(
          {space, *item, pool.repeat(next, std::max(least - 1, 0), static_cast<int32_t>(more))});
      if (least == 0) inside = pool.repeat(inside, 0, 1);
    }
  } else if (least > 0) {
    inside = pool.nothing();
  }
  for (int64_t i = places; i-- > 0;) {
    if (set.max_items != kUnbounded && i >= set.max_items) {
      inside = pool.empty_text();
      continue;
    }
    const std::optional<Regex> item =
        value(set.prefix[static_cast<size_t>(i)], place_of_items(at), depth);
    if (!item) return std::nullopt;
    inside = pool.concat({i == 0 ? space : comma, *item, inside});
    if (i >= set.min_items) inside = pool.repeat(inside, 0, 1);
  }
  return in_brackets(inside);
}

}  // namespace tgi::guide
