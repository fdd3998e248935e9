#include "engine/guide/json/item_texts.h"

#include <algorithm>
#include <set>

#include "engine/guide/json/json_text_regex.h"

namespace tgi::guide {
namespace {

constexpr int kMaxItemNesting = 8;
constexpr int kMaxAnyNesting = 3;  // of what no schema describes
constexpr size_t kMaxParts =
    60;  // of an object or an array, those aside that the schema does not list

}  // namespace

std::optional<Regex> ItemTexts::refuse(Demand of, const std::string& what) {
  const std::string path = reader_.demands().path(of);
  why_not_ = what + (path == "#" ? "" : ", at " + path) + ", or list the items in an enum";
  return std::nullopt;
}

std::optional<Regex> ItemTexts::of(Demand item, const std::vector<Demand>& all) {
  return value(item, place_of(all), 0);
}

template <typename Visit>
void ItemTexts::for_each_alternative(size_t place, const Visit& visit) {
  grammar_.regex().count_steps(places_[place].values.size());
  for (const Alternative& value : places_[place].values) visit(value);
}

size_t ItemTexts::place_of(std::vector<Demand> demands) {
  std::ranges::sort(demands);
  demands.erase(std::unique(demands.begin(), demands.end()), demands.end());
  std::erase(demands, kNothing);
  const auto [known, is_new] = place_ids_.try_emplace(demands, places_.size());
  if (!is_new) return known->second;
  const size_t place = places_.size();
  Place& added = places_.emplace_back();
  for (const Demand demand : demands) {
    // A copy: what is visited may make others known.
    const Alternatives& values = reader_.alternatives(demand);
    added.values.insert(added.values.end(), values.begin(), values.end());
  }
  std::set<std::string> names;
  for_each_alternative(place, [&](const Alternative& value) {
    for (const Property& property : value.object_set().properties()) {
      if (names.insert(property.name).second) places_[place].names.push_back(property.name);
    }
  });
  return place;
}

size_t ItemTexts::place_of_items(size_t place) {
  std::vector<Demand> items;
  for_each_alternative(place, [&](const Alternative& value) {
    if (value.type != JsonType::kArray) return;
    const ArraySet& set = value.array_set();
    const size_t first = items.size();
    items.insert(items.end(), set.prefix.begin(), set.prefix.end());
    items.push_back(set.rest);
    const size_t end = items.size();
    for (const Contains& kind : set.contains) {
      for (size_t i = first; i < end; ++i)
        items.push_back(reader_.demands().both(items[i], kind.item));
    }
  });
  return place_of(std::move(items));
}

size_t ItemTexts::place_of_member(size_t place, const std::string& name) {
  const auto known = member_places_.find({place, name});
  if (known != member_places_.end()) return known->second;
  std::vector<Demand> values;
  for_each_alternative(place, [&](const Alternative& value) {
    if (value.type != JsonType::kObject) return;
    const ObjectSet set = meant(value.object_set());
    const Property* const own = set.find(name);
    if (own == nullptr && has_no_others(set)) return;
    values.push_back(own != nullptr ? own->value : reader_.algebra().value_of_other(set, name));
  });
  return member_places_[{place, name}] = place_of(std::move(values));
}

size_t ItemTexts::place_of_others(size_t place) {
  std::vector<Demand> values;
  for_each_alternative(place, [&](const Alternative& value) {
    if (value.type != JsonType::kObject) return;
    const ObjectSet set = meant(value.object_set());
    if (has_no_others(set)) return;
    for (const NameClass& names : reader_.algebra().classes_of(set)) values.push_back(names.value);
  });
  return place_of(std::move(values));
}

std::optional<Regex> ItemTexts::value(Demand demand, size_t at, int depth) {
  if (demand == kNothing || depth > kMaxItemNesting) return grammar_.regex().nothing();
  if (demand == kAnything) depth = std::max(depth, kMaxItemNesting - kMaxAnyNesting);
  if (const auto known = known_.find({demand, at, depth}); known != known_.end())
    return known->second;
  std::vector<Regex> choices;
  bool is_refused = false;
  // A copy: what is nested may make others known.
  const Alternatives values =
      closes_objects_ ? reader_.meant(demand) : reader_.alternatives(demand);
  for (const Alternative& value : values) {
    const std::optional<Regex> texts = alternative(value, demand, at, depth);
    is_refused = !texts;
    if (is_refused) break;
    choices.push_back(*texts);
  }
  std::optional<Regex> result;
  if (!is_refused) result = grammar_.regex().either(choices);
  known_.emplace(std::tuple(demand, at, depth), result);
  return result;
}

std::optional<Regex> ItemTexts::alternative(const Alternative& value,
                                            Demand of,
                                            size_t at,
                                            int depth) {
  RegexPool& pool = grammar_.regex();
  switch (value.type) {
    case JsonType::kNull:
      return pool.literal(json_.null_word());
    case JsonType::kBoolean: {
      std::vector<Regex> words;
      if (value.can_be_true) words.push_back(pool.literal(json_.true_word()));
      if (value.can_be_false) words.push_back(pool.literal(json_.false_word()));
      return pool.either(words);
    }
    case JsonType::kNumber: {
      const std::optional<Regex> texts = reader_.algebra().numbers.plain_texts(value.number);
      if (texts) return texts;
      return refuse(
          of, "numbers of an item have a multipleOf other than tens and decimals: take it out");
    }
    case JsonType::kString:
      return reader_.algebra().strings.canonical_texts(value.string);
    case JsonType::kArray:
      return array(value.array_set(), of, at, depth + 1);
    case JsonType::kObject:
      return object(value.object_set(), of, at, depth + 1);
  }
  return std::nullopt;
}

// From the last to the first, by the number of those before.
std::optional<Regex> ItemTexts::in_order(const std::vector<Part>& parts,
                                         int64_t least,
                                         int64_t most,
                                         Demand of) {
  constexpr size_t kMaxStates = 20'000;
  RegexPool& pool = grammar_.regex();
  const auto size = static_cast<int64_t>(parts.size());
  if (least > size) return pool.nothing();
  const auto num_required =
      std::ranges::count_if(parts, [](const Part& part) { return part.required; });
  if (least <= num_required) least = 0;
  const bool is_limited = most != kUnbounded && most < size;
  const int64_t counted = std::max<int64_t>({1, least, is_limited ? most : 0});
  if (parts.size() * static_cast<size_t>(counted) > kMaxStates)
    return refuse(of, "members or items of an item are counted, and are too many for that");
  const Regex space = json_.space_texts();
  const Regex comma = json_.comma_texts();
  std::vector<Regex> rest;
  for (int64_t count = 0; count <= counted; ++count)
    rest.push_back(count >= least ? pool.empty_text() : pool.nothing());
  for (size_t i = parts.size(); i-- > 0;) {
    std::vector<Regex> from_here;
    for (int64_t count = 0; count <= counted; ++count) {
      const Regex without = rest[static_cast<size_t>(count)];
      if (is_limited && count >= most) {
        from_here.push_back(parts[i].required ? pool.nothing() : without);
        continue;
      }
      const Regex one = pool.concat({count == 0 ? space : comma, parts[i].text});
      const Regex behind = rest[static_cast<size_t>(std::min(count + 1, counted))];
      if (parts[i].required) {
        from_here.push_back(pool.concat({one, behind}));
      } else if (behind == without) {
        from_here.push_back(pool.concat({pool.repeat(one, 0, 1), behind}));
      } else {
        from_here.push_back(pool.either({pool.concat({one, behind}), without}));
      }
    }
    rest = std::move(from_here);
  }
  return rest[0];
}

ObjectSet ItemTexts::meant(const ObjectSet& set) const {
  SetAlgebra& algebra = reader_.algebra();
  return closes_objects_ && algebra.lists_its_members(set) ? algebra.closed(set) : set;
}

bool ItemTexts::has_no_others(const ObjectSet& set) const {
  const std::vector<NameClass> classes = reader_.algebra().classes_of(set);
  return std::ranges::all_of(classes,
                             [](const NameClass& names) { return names.value == kNothing; });
}

std::optional<std::vector<ItemTexts::Part>> ItemTexts::other_members(const ObjectSet& set,
                                                                     Demand of,
                                                                     size_t at,
                                                                     int depth) {
  RegexPool& pool = grammar_.regex();
  std::vector<std::string> known = places_[at].names;
  std::ranges::sort(known);
  Strings& strings = reader_.algebra().strings;
  const Regex space = json_.space_texts();
  std::vector<NameClass> classes = reader_.algebra().classes_of(set);
  std::erase_if(classes, [](const NameClass& names) { return names.value == kNothing; });
  std::vector<Regex> values;
  for (const NameClass& names : classes) {
    const std::optional<Regex> one = value(names.value, place_of_others(at), depth);
    if (!one) return std::nullopt;
    values.push_back(pool.concat({space, pool.literal(":"), space, *one}));
  }
  if (classes.size() > kMaxParts) {
    refuse(of, "objects of an item have " + std::to_string(classes.size()) +
                   " kinds of names: make them fewer");
    return std::nullopt;
  }
  std::vector<Part> parts;
  for (const ByteSet& first : first_characters()) {
    std::vector<Regex> members;
    for (size_t i = 0; i < classes.size(); ++i) {
      Regex names = pool.concat({pool.bytes(first), pool.complement(pool.nothing())});
      names = pool.both(classes[i].names, names);
      if (!known.empty()) names = pool.without(names, strings.language_of(known));
      members.push_back(pool.concat({strings.canonical_texts(strings.of(names)), values[i]}));
    }
    parts.push_back({pool.either(members)});
  }
  return parts;
}

std::optional<std::vector<ItemTexts::Part>> ItemTexts::listed_members(const ObjectSet& set,
                                                                      Demand of,
                                                                      size_t at,
                                                                      int depth) {
  RegexPool& pool = grammar_.regex();
  const Regex space = json_.space_texts();
  const size_t num_own = set.properties().size();
  if (num_own > kMaxParts) {
    refuse(of, "objects of an item have " + std::to_string(num_own) + " properties, and at most " +
                   std::to_string(kMaxParts) + " can be followed: make them fewer");
    return std::nullopt;
  }
  std::vector<Part> parts;
  for (const std::string& name : places_[at].names) {
    const Property* const own = set.find(name);
    const Demand demand = own != nullptr ? own->value : reader_.algebra().value_of_other(set, name);
    const bool is_required = own != nullptr && own->required;
    if (demand == kNothing && !is_required) continue;
    const std::optional<Regex> text = value(demand, place_of_member(at, name), depth);
    if (!text) return std::nullopt;
    parts.push_back(
        {pool.concat({pool.literal(quoted_json(name)), space, pool.literal(":"), space, *text}),
         is_required});
  }
  return parts;
}

std::optional<Regex> ItemTexts::object(const ObjectSet& given, Demand of, size_t at, int depth) {
  RegexPool& pool = grammar_.regex();
  const ObjectSet set = meant(given);
  if (!set.witnesses.empty()) {
    return refuse(of,
                  "objects of an item have a member of any name that has to be there: take out "
                  "what wants it");
  }
  std::optional<std::vector<Part>> parts = listed_members(set, of, at, depth);
  if (!parts) return std::nullopt;
  if (!has_no_others(set)) {
    const std::optional<std::vector<Part>> others = other_members(set, of, at, depth);
    if (!others) return std::nullopt;
    parts->insert(parts->end(), others->begin(), others->end());
  }
  const std::optional<Regex> inside = in_order(*parts, set.min_properties, set.max_properties, of);
  if (!inside) return std::nullopt;
  return pool.concat({pool.literal("{"), *inside, json_.space_texts(), pool.literal("}")});
}

}  // namespace tgi::guide
