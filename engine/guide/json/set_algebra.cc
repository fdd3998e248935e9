#include "engine/guide/json/set_algebra.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace tgi::guide {
namespace {

// Too large for a proof is not a proof.
template <typename Question>
bool is_proved(const Question& question) {
  try {
    return question();
  } catch (const Error&) {
    return false;
  }
}

int64_t smaller_limit(int64_t a, int64_t b) {
  if (a == kUnbounded) return b;
  return b == kUnbounded ? a : std::min(a, b);
}

}  // namespace

// Lists of strings or numbers become one list.
bool SetAlgebra::merge_listed(Alternatives& to, const Alternative& from) {
  const bool is_string = from.type == JsonType::kString && from.string.finite;
  const bool is_number = from.type == JsonType::kNumber && from.number.finite;
  if (!is_string && !is_number) return false;
  const auto is_list = [&](const Alternative& other) {
    return other.type == from.type &&
           (is_string ? other.string.finite.has_value() : other.number.finite.has_value());
  };
  const auto known = std::find_if(to.begin(), to.end(), is_list);
  if (known == to.end()) return false;
  if (is_string) {
    known->string = strings.either(std::move(known->string), from.string);
  } else {
    known->number = Numbers::either(std::move(known->number), from.number);
  }
  return true;
}

void SetAlgebra::spend(size_t work, const std::string& at) {
  constexpr size_t kMaxWork = 2'000'000;
  work_ += work;
  if (work_ > kMaxWork) {
    reject_combinations(at, "the parts of the schema take more than " + std::to_string(kMaxWork) +
                                " steps to combine");
  }
}

void SetAlgebra::add(Alternatives& to, const Alternatives& from, const std::string& at) {
  constexpr size_t kMaxAlternatives = 3000;
  constexpr size_t kMaxCompared = 100;
  for (const Alternative& alternative : from) {
    if (merge_listed(to, alternative)) continue;
    const size_t first = to.size() > kMaxCompared ? to.size() - kMaxCompared : 0;
    if (std::find(to.begin() + static_cast<std::ptrdiff_t>(first), to.end(), alternative) ==
        to.end()) {
      to.push_back(alternative);
    }
  }
  if (to.size() > kMaxAlternatives) {
    reject_combinations(at, "comes to more than " + std::to_string(kMaxAlternatives) +
                                " alternatives, too many to combine");
  }
}

void SetAlgebra::drop_impossible(Alternatives& values) {
  const auto is_impossible = [](const Alternative& value) {
    const ArraySet& array = value.array_set();
    const ObjectSet& object = value.object_set();
    const auto has = [&](size_t i) { return static_cast<int64_t>(i) < array.min_items; };
    for (size_t i = 0; i < array.prefix.size() && has(i); ++i) {
      if (array.prefix[i] == kNothing) return true;
    }
    if (has(array.prefix.size()) && array.rest == kNothing) return true;
    return std::any_of(object.properties().begin(), object.properties().end(),
                       [](const Property& p) { return p.required && p.value == kNothing; });
  };
  values.erase(std::remove_if(values.begin(), values.end(), is_impossible), values.end());
}

Alternatives SetAlgebra::both(const Alternatives& a, const Alternatives& b, const std::string& at) {
  Alternatives result;
  for (const Alternative& first : a) {
    spend(1 + b.size() / 8, at);
    for (const Alternative& second : b) {
      if (first.type != second.type) continue;
      if (second.is_every()) {
        add(result, {first}, at);
      } else if (first.is_every()) {
        add(result, {second}, at);
      } else if (const std::optional<Alternative> both_of = both(first, second)) {
        spend(4 + both_of->object_set().properties().size(), at);
        add(result, {*both_of}, at);
      }
    }
  }
  return result;
}

std::optional<Alternative> SetAlgebra::both(const Alternative& a, const Alternative& b) {
  Alternative result = a;
  switch (a.type) {
    case JsonType::kNull:
      return result;
    case JsonType::kBoolean:
      result.can_be_true = a.can_be_true && b.can_be_true;
      result.can_be_false = a.can_be_false && b.can_be_false;
      if (!result.can_be_true && !result.can_be_false) return std::nullopt;
      return result;
    case JsonType::kNumber:
      result.number = numbers.both(a.number, b.number);
      if (is_proved([&] { return numbers.is_surely_empty(result.number); })) return std::nullopt;
      return result;
    case JsonType::kString:
      result.string = strings.both(a.string, b.string);
      if (is_proved([&] { return strings.is_empty(result.string); })) return std::nullopt;
      return result;
    case JsonType::kArray:
      return both_arrays(a.array_set(), b.array_set());
    case JsonType::kObject:
      return both_objects(a.object_set(), b.object_set());
  }
  return std::nullopt;
}

std::optional<Alternative> SetAlgebra::both_arrays(const ArraySet& a, const ArraySet& b) {
  ArraySet result;
  for (size_t i = 0; i < std::max(a.prefix.size(), b.prefix.size()); ++i) {
    result.prefix.push_back(demands.both(a.item(i), b.item(i)));
  }
  result.rest = demands.both(a.rest, b.rest);
  result.min_items = std::max(a.min_items, b.min_items);
  result.max_items = smaller_limit(a.max_items, b.max_items);
  result.contains = a.contains;
  for (const Contains& contains : b.contains) {
    if (std::find(result.contains.begin(), result.contains.end(), contains) ==
        result.contains.end()) {
      result.contains.push_back(contains);
    }
  }
  result.unique_at = a.unique_at.empty() ? b.unique_at : a.unique_at;
  result.all_evaluated = a.all_evaluated || b.all_evaluated;
  result.num_evaluated = std::max(a.num_evaluated, b.num_evaluated);
  result.evaluated_kinds = a.evaluated_kinds;
  result.evaluated_kinds.insert(result.evaluated_kinds.end(), b.evaluated_kinds.begin(),
                                b.evaluated_kinds.end());
  if (result.max_items != kUnbounded && result.min_items > result.max_items) return std::nullopt;
  const size_t num_given = std::min(result.prefix.size(), static_cast<size_t>(result.min_items));
  for (size_t i = 0; i < num_given; ++i) {
    if (is_surely_empty(result.prefix[i])) return std::nullopt;
  }
  if (static_cast<size_t>(result.min_items) > num_given && is_surely_empty(result.rest)) {
    return std::nullopt;
  }
  return alternative_of(std::move(result));
}

std::vector<NameClass> SetAlgebra::classes_of(const ObjectSet& set) {
  if (!set.classes.empty()) return set.classes;
  return {{pool.any_text(), kAnything, /*is_described=*/false}};
}

bool SetAlgebra::lists_its_members(const ObjectSet& set) {
  const bool says_all = std::ranges::all_of(set.classes, &NameClass::is_described);
  if (!set.classes.empty() && says_all) return false;
  const bool has_patterns = std::ranges::any_of(set.classes, [](const NameClass& names) {
    return names.is_described && names.value != kNothing;
  });
  if (!has_patterns && std::ranges::none_of(set.properties(), &Property::is_named)) return false;
  const auto num_possible = std::ranges::count_if(set.properties(), [&](const Property& each) {
    return (each.is_named || each.required) && !is_surely_empty(each.value);
  });
  const int64_t num_missing = set.min_properties - num_possible;
  return num_missing <= 0 || (has_patterns && has_names_for(set, num_missing));
}

// Whether one of the patterns has so many names that are no properties.
bool SetAlgebra::has_names_for(const ObjectSet& set, int64_t count) {
  constexpr int64_t kMaxCounted = 100;  // more can't be enforced anyway
  if (count > kMaxCounted) return false;
  std::vector<std::string> known;
  for (const Property& property : set.properties()) known.push_back(property.name);
  std::ranges::sort(known);
  return std::ranges::any_of(set.classes, [&](const NameClass& names) {
    if (!names.is_described || is_surely_empty(names.value)) return false;
    const Regex others =
        known.empty() ? names.names : pool.without(names.names, strings.language_of(known));
    const std::vector<int32_t> lengths = pool.lengths_of_different_values(
        strings.canonical_texts(strings.of(others)), static_cast<int32_t>(count));
    return static_cast<int64_t>(lengths.size()) == count;
  });
}

ObjectSet SetAlgebra::closed(const ObjectSet& set) const {
  ObjectSet result = set;
  for (size_t i = 0; i < set.properties().size(); ++i) {
    Property& property = result.property(i);
    if (!property.is_named && !property.required) property.value = kNothing;
  }
  if (!set.witnesses.empty()) return result;
  if (result.classes.empty()) result.classes.push_back({pool.any_text(), kNothing});
  for (NameClass& names : result.classes) {
    if (!names.is_described) names = {names.names, kNothing};
  }
  return result;
}

namespace {

// What a schema says of arrays; of how many items there are it says nothing of what they are.
bool describes_items(const ArraySet& set) {
  return !set.prefix.empty() || set.rest != kAnything || !set.contains.empty();
}

}  // namespace

Alternatives SetAlgebra::as_meant(const Alternatives& values) {
  Alternatives meant;
  std::array<bool, kJsonTypes.size()> has_every{};
  for (const Alternative& value : values) {
    const bool is_described =
        (value.type == JsonType::kObject && lists_its_members(value.object_set())) ||
        (value.type == JsonType::kArray && describes_items(value.array_set()));
    if (is_described) {
      meant.push_back(value);
    } else if (value.is_every()) {
      has_every[static_cast<size_t>(value.type)] = true;
    } else {
      return values;
    }
  }
  if (meant.empty()) return values;
  const JsonType type = meant.front().type;
  for (const Alternative& value : meant)
    if (value.type != type) return values;
  for (const JsonType other : kJsonTypes)
    if (other != type && !has_every[static_cast<size_t>(other)]) return values;
  return meant;
}

Demand SetAlgebra::value_of_other(const ObjectSet& set, const std::string& name) {
  for (const NameClass& names : set.classes) {
    if (names.names == pool.any_text() || pool.matches(names.names, name)) return names.value;
  }
  return kAnything;
}

void SetAlgebra::intersect_classes(const ObjectSet& a, const ObjectSet& b, ObjectSet& result) {
  constexpr size_t kMaxClasses = 200;
  if (a.classes.empty() || b.classes.empty()) {
    result.classes = a.classes.empty() ? b.classes : a.classes;
    return;
  }
  for (const NameClass& first : a.classes) {
    for (const NameClass& second : b.classes) {
      Regex names = first.names;
      if (names == pool.any_text()) {
        names = second.names;
      } else if (second.names != pool.any_text() && second.names != names) {
        names = pool.both(names, second.names);
        if (pool.is_empty(names)) continue;
      }
      result.classes.push_back({names, demands.both(first.value, second.value),
                                first.is_described || second.is_described});
    }
  }
  if (result.classes.size() > kMaxClasses) {
    reject_schema("#", "patternProperties come to more than " + std::to_string(kMaxClasses) +
                           " kinds of names");
  }
}

std::optional<Alternative> SetAlgebra::both_objects(const ObjectSet& a, const ObjectSet& b) {
  ObjectSet result;
  intersect_classes(a, b, result);
  const auto add_property = [&](const Property& mine, const ObjectSet& other) {
    const Property* theirs = other.find(mine.name);
    Property property = mine;
    property.value = demands.both(
        mine.value, theirs != nullptr ? theirs->value : value_of_other(other, mine.name));
    property.required = mine.required || (theirs != nullptr && theirs->required);
    property.is_named = mine.is_named || (theirs != nullptr && theirs->is_named);
    const bool is_empty =
        property.value != mine.value && property.required && is_surely_empty(property.value);
    result.add(std::move(property));
    return !is_empty && !(mine.value == kNothing && result.properties().back().required);
  };
  for (const Property& property : a.properties()) {
    if (!add_property(property, b)) return std::nullopt;
  }
  for (const Property& property : b.properties()) {
    if (result.find(property.name) == nullptr && !add_property(property, a)) return std::nullopt;
  }
  result.names_narrowed_at =
      a.names_narrowed_at.empty() ? b.names_narrowed_at : a.names_narrowed_at;
  result.min_properties = std::max(a.min_properties, b.min_properties);
  result.max_properties = smaller_limit(a.max_properties, b.max_properties);
  result.count_at = a.min_properties >= b.min_properties ? a.count_at : b.count_at;
  if (result.count_at.empty()) result.count_at = a.count_at.empty() ? b.count_at : a.count_at;
  const int64_t least =
      std::max(result.min_properties, static_cast<int64_t>(result.num_required()));
  if (result.max_properties != kUnbounded && least > result.max_properties) return std::nullopt;
  result.witnesses = a.witnesses;
  result.witnesses.insert(result.witnesses.end(), b.witnesses.begin(), b.witnesses.end());
  result.all_evaluated = a.all_evaluated || b.all_evaluated;
  result.evaluated_names = a.evaluated_names;
  result.evaluated_names.insert(b.evaluated_names.begin(), b.evaluated_names.end());
  result.evaluated_patterns = a.evaluated_patterns;
  if (b.evaluated_patterns) {
    result.evaluated_patterns = a.evaluated_patterns
                                    ? pool.either({*a.evaluated_patterns, *b.evaluated_patterns})
                                    : *b.evaluated_patterns;
  }
  return alternative_of(std::move(result));
}

bool SetAlgebra::are_surely_disjoint(const Alternatives& a, const Alternatives& b) {
  for (const Alternative& first : a) {
    for (const Alternative& second : b) {
      if (!are_surely_disjoint(first, second)) return false;
    }
  }
  return true;
}

bool SetAlgebra::are_surely_disjoint(const Alternative& a, const Alternative& b) {
  if (a.type != b.type) return true;
  if (a.is_every() || b.is_every()) return false;
  if (a.type != JsonType::kObject) return !both(a, b);
  // Most branches of a oneOf differ in one member; the rest need not be put together.
  const auto differ = [&](const ObjectSet& mine, const ObjectSet& other) {
    return std::any_of(mine.properties().begin(), mine.properties().end(), [&](const Property& p) {
      const Property* theirs = other.find(p.name);
      if (!p.required && (theirs == nullptr || !theirs->required)) return false;
      return is_surely_empty(
          demands.both(p.value, theirs != nullptr ? theirs->value : value_of_other(other, p.name)));
    });
  };
  return differ(a.object_set(), b.object_set()) || differ(b.object_set(), a.object_set());
}

}  // namespace tgi::guide
