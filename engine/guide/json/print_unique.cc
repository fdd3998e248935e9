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
    if (!is_past_end) found = texts_of(reader_, json_, set.item(i));
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

// The texts of an item as one language, each value in one way but for the zeros of numbers;
// nothing, and why: it is none.
std::optional<Regex> SchemaPrinter::item_texts(Demand demand, int depth, std::string& why) {
  constexpr int kMaxNesting = 8;
  // The first schema that says so; an item or member that no schema describes has none.
  const std::string path = reader_.demands().path(demand);
  const std::string at = path == "#" ? "what no schema describes" : path;
  if (demand == kAnything) {
    why =
        "an item, or a part of one, may be any JSON; describe all parts by their types, or list "
        "the "
        "items in an enum";
    return std::nullopt;
  }
  if (depth > kMaxNesting) {
    why =
        at + " is in more than " + std::to_string(kMaxNesting) +
        " arrays and objects of an item, or in itself; make items flatter, or list them in an enum";
    return std::nullopt;
  }
  std::vector<Regex> choices;
  if (demand == kNothing) return grammar_.regex().nothing();
  for (const Alternative& value : Alternatives(reader_.alternatives(demand))) {
    std::optional<Regex> texts;
    switch (value.type) {
      case JsonType::kNull:
        texts = grammar_.regex().literal(json_.null_word());
        break;
      case JsonType::kBoolean: {
        std::vector<Regex> words;
        if (value.can_be_true) words.push_back(grammar_.regex().literal(json_.true_word()));
        if (value.can_be_false) words.push_back(grammar_.regex().literal(json_.false_word()));
        texts = grammar_.regex().either(words);
        break;
      }
      case JsonType::kNumber:
        texts = reader_.algebra().numbers.plain_texts(value.number);
        if (!texts) {
          why = "numbers of " + at +
                " have a multipleOf other than tens and decimals; take it out, or list them in an "
                "enum";
        }
        break;
      case JsonType::kString:
        texts = reader_.algebra().strings.canonical_texts(value.string);
        break;
      case JsonType::kArray:
        texts = array_texts(value.array_set(), at, depth + 1, why);
        break;
      case JsonType::kObject:
        texts = object_texts(value.object_set(), at, depth + 1, why);
        break;
    }
    if (!texts) return std::nullopt;
    choices.push_back(*texts);
  }
  return grammar_.regex().either(choices);
}

std::optional<Regex> SchemaPrinter::array_texts(const ArraySet& set,
                                                const std::string& at,
                                                int depth,
                                                std::string& why) {
  constexpr int64_t kMost = 1'000'000;
  constexpr size_t kMaxPlaces = 60;
  RegexPool& pool = grammar_.regex();
  const auto refuse = [&](const std::string& what) {
    why = "arrays of " + at + " " + what + ", or list the items in an enum";
    return std::nullopt;
  };
  if (!set.contains.empty()) return refuse("have a contains: take it out");
  if (!set.unique_at.empty()) {
    return refuse("have a uniqueItems of their own, at " + set.unique_at +
                  ": take one of the two out");
  }
  const auto places = static_cast<int64_t>(set.prefix.size());
  if (set.prefix.size() > kMaxPlaces) {
    return refuse("have " + std::to_string(places) +
                  " places with items of their own, and at most " + std::to_string(kMaxPlaces) +
                  " can be told apart: make them fewer");
  }
  if (set.min_items > kMost || (set.max_items != kUnbounded && set.max_items > kMost)) {
    return refuse("may have more than " + std::to_string(kMost) + " items: make them shorter");
  }
  const Regex space = json_.space_texts();
  const Regex comma = pool.concat({space, pool.literal(","), space});
  // From the last place to the first; nothing: what is behind has to be there and can't.
  std::optional<Regex> inside = pool.empty_text();
  const int64_t room = set.max_items == kUnbounded ? kUnbounded : set.max_items - places;
  const auto least = static_cast<int32_t>(std::max<int64_t>(set.min_items - places, 0));
  if ((set.max_items == kUnbounded || room > 0) && set.rest != kNothing) {
    const std::optional<Regex> item = item_texts(set.rest, depth, why);
    if (!item) return std::nullopt;
    const Regex next = pool.concat({comma, *item});
    if (places > 0) {
      inside = pool.repeat(next, least, static_cast<int32_t>(room));
    } else {
      const int64_t more = room == kUnbounded ? kUnbounded : room - 1;
      inside = pool.concat(
          {space, *item, pool.repeat(next, std::max(least - 1, 0), static_cast<int32_t>(more))});
      if (least == 0) inside = pool.repeat(*inside, 0, 1);
    }
  } else if (least > 0) {
    inside = pool.nothing();
  }
  for (int64_t i = places; i-- > 0;) {
    if (set.max_items != kUnbounded && i >= set.max_items) {
      inside = pool.empty_text();
      continue;
    }
    const std::optional<Regex> item = item_texts(set.prefix[static_cast<size_t>(i)], depth, why);
    if (!item) return std::nullopt;
    inside = pool.concat({i == 0 ? space : comma, *item, *inside});
    if (i >= set.min_items) inside = pool.repeat(*inside, 0, 1);
  }
  return pool.concat({pool.literal("["), *inside, space, pool.literal("]")});
}

std::optional<Regex> SchemaPrinter::object_texts(const ObjectSet& set,
                                                 const std::string& at,
                                                 int depth,
                                                 std::string& why) {
  constexpr size_t kMaxMembers = 60;
  RegexPool& pool = grammar_.regex();
  std::vector<const Property*> members;
  for (const Property& property : set.properties()) {
    if (property.value != kNothing) members.push_back(&property);
    if (property.required && property.value == kNothing) return pool.nothing();
  }
  const auto num_members = static_cast<int64_t>(members.size());
  const bool is_counted = set.min_properties > static_cast<int64_t>(set.num_required()) ||
                          (set.max_properties != kUnbounded && set.max_properties < num_members);
  const auto refuse = [&](const std::string& what) {
    why = "objects of " + at + " " + what + ", or list the items in an enum";
    return std::nullopt;
  };
  if (!is_closed(set) || !set.witnesses.empty()) {
    return refuse(
        "may have members that properties does not list: write \"additionalProperties\": "
        "false, and no patternProperties");
  }
  if (is_counted) return refuse("have a minProperties or maxProperties that counts: take it out");
  if (members.size() > kMaxMembers) {
    return refuse("have " + std::to_string(members.size()) + " properties, and at most " +
                  std::to_string(kMaxMembers) + " can be followed: make them fewer");
  }
  const Regex space = json_.space_texts();
  // From the last to the first: behind others, and as the first that is there.
  Regex behind = pool.empty_text();
  Regex first = pool.empty_text();
  for (size_t i = members.size(); i-- > 0;) {
    const std::optional<Regex> value = item_texts(members[i]->value, depth, why);
    if (!value) return std::nullopt;
    const Regex member = pool.concat({space, pool.literal(quoted_json(members[i]->name)), space,
                                      pool.literal(":"), space, *value});
    const Regex as_first = pool.concat({member, behind});
    const Regex next = pool.concat({space, pool.literal(","), member});
    const bool required = members[i]->required;
    first = required ? as_first : pool.either({as_first, first});
    behind = pool.concat({required ? next : pool.repeat(next, 0, 1), behind});
  }
  return pool.concat({pool.literal("{"), first, space, pool.literal("}")});
}

bool SchemaPrinter::is_closed(const ObjectSet& set) {
  if (closes_objects_ && set.classes.empty() && !set.properties().empty()) return true;
  const std::vector<NameClass> classes = reader_.algebra().classes_of(set);
  return std::all_of(classes.begin(), classes.end(),
                     [](const NameClass& names) { return names.value == kNothing; });
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
  // The item at a place, and its end; nothing: no value can be there.
  const auto item_at = [&](size_t place, int64_t least) -> std::optional<Expr> {
    const Demand demand = set.item(place);
    std::string why;
    const std::optional<Regex> texts = item_texts(demand, 0, why);
    if (!texts) {
      refuse_schema(set.unique_at, "that all items differ cannot be enforced: " + why);
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
