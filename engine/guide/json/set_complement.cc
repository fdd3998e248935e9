#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/guide/json/set_algebra.h"

namespace tgi::guide {

Alternatives SetAlgebra::complement(const Alternatives& a, const std::string& at) {
  Alternatives result;
  for (const JsonType type : kJsonTypes) {
    Alternatives left = {every_value(type)};
    for (const Alternative& alternative : a) {
      if (alternative.type == type) left = both(left, complement(alternative), at);
    }
    add(result, left, at);
  }
  return result;
}

Alternatives SetAlgebra::without(const Alternatives& a,
                                 const Alternatives& b,
                                 const std::string& at) {
  Alternatives left = a;
  for (const Alternative& taken : b) {
    std::optional<Alternatives> others;
    Alternatives next;
    for (const Alternative& part : left) {
      spend(1, at);
      // Disjoint from what is missing some of its strings proves nothing.
      if (part.type != taken.type || (are_surely_disjoint(part, taken) && !has_narrowed_strings)) {
        add(next, {part}, at);
        continue;
      }
      if (!others) others = complement(taken);
      add(next, both({part}, *others, at), at);
    }
    left = std::move(next);
  }
  return left;
}

Alternatives SetAlgebra::complement(const Alternative& a) {
  Alternatives result;
  if (a.is_every()) return result;
  Alternative part = every_value(a.type);
  switch (a.type) {
    case JsonType::kNull:
      break;
    case JsonType::kBoolean:
      part.can_be_true = !a.can_be_true;
      part.can_be_false = !a.can_be_false;
      result.push_back(part);
      break;
    case JsonType::kNumber:
      for (NumberSet& set : numbers.complement(a.number)) {
        part.number = std::move(set);
        result.push_back(part);
      }
      break;
    case JsonType::kString:
      for (StringSet& set : strings.complement(a.string)) {
        part.string = std::move(set);
        result.push_back(part);
      }
      break;
    case JsonType::kArray:
      return complement_of_array(*a.array);
    case JsonType::kObject:
      return complement_of_object(*a.object);
  }
  return result;
}

// One alternative for each way to be wrong.
Alternatives SetAlgebra::complement_of_array(const ArraySet& a) {
  if (!a.unique_at.empty()) {
    refuse_schema(a.unique_at, "that items are not all different cannot be enforced");
  }
  Alternatives result;
  for (size_t i = 0; i < a.prefix.size(); ++i) {
    if (a.prefix[i] == kAnything) continue;
    ArraySet wrong;
    wrong.prefix.assign(i, kAnything);
    wrong.prefix.push_back(demands.negated(a.prefix[i]));
    wrong.min_items = static_cast<int64_t>(i) + 1;
    result.push_back(alternative_of(std::move(wrong)));
  }
  if (a.rest == kNothing) {
    ArraySet wrong;
    wrong.min_items = static_cast<int64_t>(a.prefix.size()) + 1;
    result.push_back(alternative_of(std::move(wrong)));
  } else if (a.rest != kAnything) {
    ArraySet wrong;
    wrong.contains.push_back(
        {demands.negated(a.rest), 1, kUnbounded, a.prefix.size(), demands.path(a.rest)});
    result.push_back(alternative_of(std::move(wrong)));
  }
  if (a.min_items > 0) {
    ArraySet wrong;
    wrong.max_items = a.min_items - 1;
    result.push_back(alternative_of(std::move(wrong)));
  }
  if (a.max_items != kUnbounded) {
    ArraySet wrong;
    wrong.min_items = a.max_items + 1;
    result.push_back(alternative_of(std::move(wrong)));
  }
  for (const Contains& contains : a.contains) {
    if (contains.min > 0) {
      ArraySet wrong;
      wrong.contains.push_back({contains.item, 0, contains.min - 1, contains.from, contains.at});
      result.push_back(alternative_of(std::move(wrong)));
    }
    if (contains.max != kUnbounded) {
      ArraySet wrong;
      wrong.contains.push_back(
          {contains.item, contains.max + 1, kUnbounded, contains.from, contains.at});
      result.push_back(alternative_of(std::move(wrong)));
    }
  }
  return result;
}

Alternatives SetAlgebra::complement_of_object(const ObjectSet& a) {
  if (!a.names_narrowed_at.empty()) {
    refuse_schema(a.names_narrowed_at, "that names are not of this format cannot be enforced");
  }
  Alternatives result;
  std::vector<std::string> names;
  for (const Property& property : a.properties()) {
    names.push_back(property.name);
    if (property.value == kAnything && !property.required) continue;
    // One that has to be there and be right is wrong when it is absent or wrong: if it is there, it
    // is wrong. One that may be missing is wrong when it is there and wrong.
    ObjectSet wrong;
    wrong.add({.name = property.name,
               .value = demands.negated(property.value),
               .required = !property.required,
               .is_named = false});
    result.push_back(alternative_of(std::move(wrong)));
  }
  std::sort(names.begin(), names.end());
  for (const NameClass& others : a.classes) {
    if (others.value == kAnything) continue;
    const Regex names_of =
        names.empty() ? others.names : pool.without(others.names, strings.language_of(names));
    if (pool.is_empty(names_of)) continue;
    ObjectSet wrong;
    wrong.witnesses.push_back({names_of, demands.negated(others.value)});
    result.push_back(alternative_of(std::move(wrong)));
  }
  for (const NameClass& witness : a.witnesses) {
    ObjectSet none;
    none.classes.push_back({witness.names, demands.negated(witness.value)});
    none.classes.push_back({pool.without(pool.any_text(), witness.names), kAnything});
    result.push_back(alternative_of(std::move(none)));
  }
  if (a.min_properties > 0) {
    ObjectSet fewer;
    fewer.max_properties = a.min_properties - 1;
    fewer.count_at = a.count_at;
    result.push_back(alternative_of(std::move(fewer)));
  }
  if (a.max_properties != kUnbounded) {
    ObjectSet more;
    more.min_properties = a.max_properties + 1;
    more.count_at = a.count_at;
    result.push_back(alternative_of(std::move(more)));
  }
  return result;
}

}  // namespace tgi::guide
