// What a demand comes to: alternatives, each of one type with the limits of its values. Items and
// members stay demands, so that recursive schemas have finite sets.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/guide/json/demands.h"
#include "engine/guide/json/numbers.h"
#include "engine/guide/json/strings.h"
#include "engine/guide/regex.h"

namespace tgi::guide {

enum class JsonType : uint8_t { kNull, kBoolean, kNumber, kString, kArray, kObject };
inline constexpr std::array<JsonType, 6> kJsonTypes = {JsonType::kNull,   JsonType::kBoolean,
                                                       JsonType::kNumber, JsonType::kString,
                                                       JsonType::kArray,  JsonType::kObject};

// At least min and at most max items from index `from` on satisfy `item`.
struct Contains {
  Demand item;
  int64_t min = 1;
  int64_t max = kUnbounded;
  size_t from = 0;
  std::string at;  // in the schema
  friend bool operator==(const Contains&, const Contains&) = default;
};

struct ArraySet {
  std::vector<Demand> prefix;
  Demand rest = kAnything;
  int64_t min_items = 0;
  int64_t max_items = kUnbounded;
  std::vector<Contains> contains;
  std::string unique_at;  // where uniqueItems stands; empty: equal items may be

  // What unevaluatedItems does not look at: the first items, or those of a kind.
  bool all_evaluated = false;
  size_t num_evaluated = 0;
  std::vector<Demand> evaluated_kinds;

  Demand item(size_t index) const { return index < prefix.size() ? prefix[index] : rest; }
  friend bool operator==(const ArraySet&, const ArraySet&) = default;
};

struct Property {
  std::string name;
  Demand value;
  bool required = false;
  bool is_named = true;  // by what objects have to be; else by what they must not be alone
  friend bool operator==(const Property&, const Property&) = default;
};

struct NameClass {
  Regex names;
  Demand value;
  bool is_described = true;  // a schema says what such members are, not just which may be there
  friend bool operator==(const NameClass&, const NameClass&) = default;
};

class ObjectSet {
 public:
  const std::vector<Property>& properties() const { return properties_; }
  const Property* find(const std::string& name) const;
  // REQUIRES: no such property yet.
  void add(Property property);
  Property& property(size_t index) { return properties_[index]; }
  size_t num_required() const;

  // Names that are no property belong to one of these; empty: all of them may have any value.
  std::vector<NameClass> classes;
  int64_t min_properties = 0;
  int64_t max_properties = kUnbounded;
  std::string count_at;  // where minProperties stands
  // For each some member has such a name and satisfies the demand.
  std::vector<NameClass> witnesses;

  // Where names are limited by strings of which some are missing: StringSet::narrowed_at.
  std::string names_narrowed_at;

  // What unevaluatedProperties does not look at.
  bool all_evaluated = false;
  std::set<std::string> evaluated_names;
  std::optional<Regex> evaluated_patterns;

  friend bool operator==(const ObjectSet&, const ObjectSet&) = default;

 private:
  std::vector<Property> properties_;  // in the order they are written
  std::unordered_map<std::string, size_t> index_;
};

struct Alternative {
  JsonType type = JsonType::kNull;
  bool can_be_true = true;
  bool can_be_false = true;
  NumberSet number;
  StringSet string;
  std::shared_ptr<const ArraySet> array;    // null: any array
  std::shared_ptr<const ObjectSet> object;  // null: any object
  uint64_t digest = 0;  // of the array or the object: equal ones have equal digests

  const ArraySet& array_set() const;
  const ObjectSet& object_set() const;
  bool is_every() const;  // of its type
};

bool operator==(const Alternative& a, const Alternative& b);

using Alternatives = std::vector<Alternative>;

Alternative every_value(JsonType type);
Alternative alternative_of(ArraySet set);
Alternative alternative_of(ObjectSet set);

}  // namespace tgi::guide
