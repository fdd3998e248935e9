#include "engine/guide/json/value_sets.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.h"

namespace tgi::guide {
namespace {

// Of what most sets differ in; the rest is compared where digests are equal.
class SetDigest {
 public:
  template <typename Value>
  void add(const Value& value) {
    value_ = (value_ ^ std::hash<Value>{}(value)) * 0x9e3779b97f4a7c15;
    value_ ^= value_ >> 32;
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0;
};

uint64_t digest_of(const ArraySet& set) {
  SetDigest digest;
  for (const Demand item : set.prefix) digest.add(item.id);
  digest.add(set.prefix.size());
  digest.add(set.rest.id);
  digest.add(set.min_items);
  digest.add(set.max_items);
  for (const Contains& contains : set.contains) {
    digest.add(contains.item.id);
    digest.add(contains.min);
    digest.add(contains.max);
  }
  return digest.value();
}

uint64_t digest_of(const ObjectSet& set) {
  SetDigest digest;
  for (const Property& property : set.properties()) {
    digest.add(property.name);
    digest.add(property.value.id);
    digest.add(property.required);
  }
  digest.add(set.properties().size());
  for (const NameClass& names : set.classes) {
    digest.add(names.names.id);
    digest.add(names.value.id);
    digest.add(names.is_described);
  }
  digest.add(set.min_properties);
  digest.add(set.max_properties);
  for (const NameClass& witness : set.witnesses) {
    digest.add(witness.names.id);
    digest.add(witness.value.id);
  }
  return digest.value();
}

}  // namespace

const Property* ObjectSet::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &properties_[found->second];
}

void ObjectSet::add(Property property) {
  const bool is_new = index_.emplace(property.name, properties_.size()).second;
  TGI_CHECK(is_new);
  properties_.push_back(std::move(property));
}

size_t ObjectSet::num_required() const {
  return static_cast<size_t>(std::count_if(properties_.begin(), properties_.end(),
                                           [](const Property& p) { return p.required; }));
}

const ArraySet& Alternative::array_set() const {
  static const ArraySet every;
  return array ? *array : every;
}

const ObjectSet& Alternative::object_set() const {
  static const ObjectSet every;
  return object ? *object : every;
}

bool Alternative::is_every() const {
  switch (type) {
    case JsonType::kNull:
      return true;
    case JsonType::kBoolean:
      return can_be_true && can_be_false;
    case JsonType::kNumber:
      return number.every;
    case JsonType::kString:
      return string.is_every();
    case JsonType::kArray:
      return array == nullptr;
    case JsonType::kObject:
      return object == nullptr;
  }
  return false;
}

bool operator==(const Alternative& a, const Alternative& b) {
  if (a.type != b.type) return false;
  switch (a.type) {
    case JsonType::kNull:
      return true;
    case JsonType::kBoolean:
      return a.can_be_true == b.can_be_true && a.can_be_false == b.can_be_false;
    case JsonType::kNumber:
      return a.number == b.number;
    case JsonType::kString:
      return a.string == b.string;
    case JsonType::kArray:
      return a.array == b.array || (a.digest == b.digest && a.array_set() == b.array_set());
    case JsonType::kObject:
      return a.object == b.object || (a.digest == b.digest && a.object_set() == b.object_set());
  }
  return false;
}

Alternative every_value(JsonType type) {
  Alternative result;
  result.type = type;
  static const uint64_t every_array = digest_of(ArraySet{});
  static const uint64_t every_object = digest_of(ObjectSet{});
  if (type == JsonType::kArray) result.digest = every_array;
  if (type == JsonType::kObject) result.digest = every_object;
  return result;
}

Alternative alternative_of(ArraySet set) {
  Alternative result = every_value(JsonType::kArray);
  result.digest = digest_of(set);
  result.array = std::make_shared<const ArraySet>(std::move(set));
  return result;
}

Alternative alternative_of(ObjectSet set) {
  Alternative result = every_value(JsonType::kObject);
  result.digest = digest_of(set);
  result.object = std::make_shared<const ObjectSet>(std::move(set));
  return result;
}

}  // namespace tgi::guide
