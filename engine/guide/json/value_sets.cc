#include "engine/guide/json/value_sets.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace tgi::guide {

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
      return a.array == b.array || a.array_set() == b.array_set();
    case JsonType::kObject:
      return a.object == b.object || a.object_set() == b.object_set();
  }
  return false;
}

Alternative every_value(JsonType type) {
  Alternative result;
  result.type = type;
  return result;
}

Alternative alternative_of(ArraySet set) {
  Alternative result = every_value(JsonType::kArray);
  result.array = std::make_shared<const ArraySet>(std::move(set));
  return result;
}

Alternative alternative_of(ObjectSet set) {
  Alternative result = every_value(JsonType::kObject);
  result.object = std::make_shared<const ObjectSet>(std::move(set));
  return result;
}

}  // namespace tgi::guide
