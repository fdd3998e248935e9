#include "engine/text/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/text.h"

namespace tgi::jinja {
namespace {

constexpr int kMaxDepth = 100;
constexpr size_t kLinearSearch = 8;  // entries of a dict up to which looking at each is fastest

int checked_depth(int depth) {
  if (depth > kMaxDepth) fail(fmt::format("lists and dicts nest deeper than {}", kMaxDepth));
  return depth;
}

int depth_over(const std::vector<Value>& items) {
  int deepest = 0;
  for (const Value& item : items) deepest = std::max(deepest, item.depth());
  return checked_depth(deepest + 1);
}

}  // namespace

int depth_around(const Value& value) {
  return checked_depth(value.depth() + 1);
}

Value Value::string(std::string text, bool is_markup) {
  return from(std::make_shared<StringObject>(std::move(text), is_markup));
}

Value Value::list(std::vector<Value> items) {
  return from(std::make_shared<SequenceObject>(Type::kList, std::move(items)));
}

Value Value::tuple(std::vector<Value> items) {
  return from(std::make_shared<SequenceObject>(Type::kTuple, std::move(items)));
}

Value Value::group(Value key, Value items) {
  auto pair = std::make_shared<SequenceObject>(
      Type::kTuple, std::vector<Value>{std::move(key), std::move(items)});
  pair->is_group = true;
  return from(std::move(pair));
}

Value Value::dict(DictObject dict) {
  constexpr size_t kPlaceBytes = 40;  // a node of the index of a large one
  auto object = std::make_shared<DictObject>(std::move(dict));
  object->memory.add(object->entries.capacity() * sizeof(DictObject::Entry) +
                     (object->entries.size() > kLinearSearch ? object->entries.size() : 0) *
                         kPlaceBytes);
  return from(std::move(object));
}

Value Value::iterator(std::string_view name, std::vector<Value> items) {
  return from(std::make_shared<IteratorObject>(name, std::move(items)));
}

Value Value::undefined(std::string message) {
  return from(std::make_shared<UndefinedObject>(std::move(message)));
}

bool Value::is_markup() const {
  return is_string() && object<StringObject>().is_markup;
}

Int Value::as_int() const {
  const bool* flag = std::get_if<bool>(&payload_);
  return flag != nullptr ? Int{*flag} : std::get<Int>(payload_);
}

double Value::as_double() const {
  const double* real = std::get_if<double>(&payload_);
  return real != nullptr ? *real : static_cast<double>(as_int());
}

const std::string& Value::text() const {
  TGI_CHECK(is_string());
  return object<StringObject>().text;
}

const std::vector<Value>& Value::items() const {
  TGI_CHECK(is_sequence());
  return object<SequenceObject>().items;
}

const DictObject& Value::dict() const {
  TGI_CHECK(is(Type::kDict));
  return object<DictObject>();
}

SequenceObject::SequenceObject(Type sequence_type, std::vector<Value> values)
    : Object(sequence_type, depth_over(values)), items(std::move(values)) {
  memory.add(items.capacity() * sizeof(Value));
}

RangeObject::RangeObject(int64_t first, int64_t last, int64_t by)
    : Object(Type::kRange), start(first), stop(last), step(by), length(0) {
  const Int span = by > 0 ? Int{last} - first : Int{first} - last;
  const Int stride = by > 0 ? Int{by} : -Int{by};
  if (span > 0) {
    length = static_cast<int64_t>(std::min<Int>((span + stride - 1) / stride, INT64_MAX));
  }
}

IteratorObject::IteratorObject(std::string_view kind, std::vector<Value> values)
    : Object(Type::kIterator, depth_over(values)), name(kind), items(std::move(values)) {
  memory.add(items.capacity() * sizeof(Value));
}

CyclerObject::CyclerObject(std::vector<Value> values)
    : Object(Type::kCycler, depth_over(values)), items(std::move(values)) {
  memory.add(items.capacity() * sizeof(Value));
}

void DictObject::set(Value key, Value value, Budget& budget) {
  budget.charge(2);
  const size_t hash = hash_value(key, budget);
  depth = std::max(depth, checked_depth(std::max(key.depth(), value.depth()) + 1));
  if (const Entry* known = locate(hash, key, budget); known != nullptr) {
    entries[static_cast<size_t>(known - entries.data())].value = std::move(value);
    return;
  }
  entries.push_back({std::move(key), std::move(value)});
  if (entries.size() == kLinearSearch + 1) {
    for (size_t i = 0; i < entries.size(); ++i) {
      places_.emplace(hash_value(entries[i].key, budget), i);
    }
  } else if (entries.size() > kLinearSearch) {
    places_.emplace(hash, entries.size() - 1);
  }
}

const DictObject::Entry* DictObject::locate(size_t hash, const Value& key, Budget& budget) const {
  if (entries.size() <= kLinearSearch) {
    for (const Entry& entry : entries) {
      if (equal(entry.key, key, budget)) return &entry;
    }
    return nullptr;
  }
  const auto [first, last] = places_.equal_range(hash);
  for (auto place = first; place != last; ++place) {
    if (equal(entries[place->second].key, key, budget)) return &entries[place->second];
  }
  return nullptr;
}

const Value* DictObject::find(const Value& key, Budget& budget) const {
  const Entry* entry = locate(hash_value(key, budget), key, budget);
  return entry == nullptr ? nullptr : &entry->value;
}

const Value* DictObject::find(std::string_view key) const {
  const auto has_key = [&](const Entry& entry) {
    return entry.key.is_string() && entry.key.text() == key;
  };
  if (entries.size() <= kLinearSearch) {
    const auto entry = std::find_if(entries.begin(), entries.end(), has_key);
    return entry == entries.end() ? nullptr : &entry->value;
  }
  const auto [first, last] = places_.equal_range(std::hash<std::string_view>{}(key));
  for (auto place = first; place != last; ++place) {
    if (has_key(entries[place->second])) return &entries[place->second].value;
  }
  return nullptr;
}

std::string_view type_name(const Value& value) {
  // In the order of Type.
  constexpr std::array<std::string_view, 18> kNames = {
      "NoneType",  "bool",     "int",   "float",       "Undefined", "str",
      "list",      "tuple",    "dict",  "dict",        "range",     "generator",
      "Namespace", "function", "Macro", "LoopContext", "Cycler",    "Joiner"};
  if (value.is(Type::kDictView)) {
    constexpr std::array<std::string_view, 3> kViews = {"dict_keys", "dict_values", "dict_items"};
    return kViews[static_cast<size_t>(value.object<DictViewObject>().kind)];
  }
  if (value.is_markup()) return "Markup";
  return kNames[static_cast<size_t>(value.type())];
}

bool is_hashable(const Value& value) {
  if (value.is(Type::kTuple)) {
    return std::all_of(value.items().begin(), value.items().end(), is_hashable);
  }
  return !value.is(Type::kList) && !value.is(Type::kDict) && !value.is(Type::kDictView);
}

size_t hash_value(const Value& value, Budget& budget) {
  budget.charge(1);
  switch (value.type()) {
    case Type::kNone:
      return 0;
    case Type::kBool:
    case Type::kInt:
      return std::hash<double>{}(static_cast<double>(value.as_int()));  // 1, 1.0 and True are one
    case Type::kFloat:
      return std::hash<double>{}(value.as_float());
    case Type::kString:
      budget.charge(value.text().size() / 16);
      return std::hash<std::string_view>{}(value.text());
    case Type::kTuple: {
      size_t hash = value.items().size();
      for (const Value& item : value.items()) hash = hash * 1000003 + hash_value(item, budget);
      return hash;
    }
    case Type::kUndefined:
      return 1;
    default:
      if (!is_hashable(value)) fail(fmt::format("unhashable type: '{}'", type_name(value)));
      return std::hash<const void*>{}(value.identity());
  }
}

Value from_json(const OrderedJson& json, Budget& budget, int depth) {
  budget.charge(1);
  checked_depth(depth);
  switch (json.type()) {
    case OrderedJson::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case OrderedJson::value_t::number_integer:
      return Value::integer(json.get<int64_t>());
    case OrderedJson::value_t::number_unsigned:
      return Value::integer(json.get<uint64_t>());
    case OrderedJson::value_t::number_float:
      return Value::real(json.get<double>());
    case OrderedJson::value_t::string: {
      const auto& text = json.get_ref<const std::string&>();
      budget.charge_text(text.size());
      if (!is_valid_utf8(text)) fail("a string given to the template is not valid UTF-8");
      return Value::string(text);
    }
    case OrderedJson::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const OrderedJson& item : json) items.push_back(from_json(item, budget, depth + 1));
      return Value::list(std::move(items));
    }
    case OrderedJson::value_t::object: {
      DictObject dict;
      for (const auto& [key, value] : json.items()) {
        if (!is_valid_utf8(key)) fail("a key given to the template is not valid UTF-8");
        dict.set(Value::string(key), from_json(value, budget, depth + 1), budget);
      }
      return Value::dict(std::move(dict));
    }
    default:
      return Value();
  }
}

bool is_iterable(const Value& value) {
  switch (value.type()) {
    case Type::kUndefined:
    case Type::kString:
    case Type::kList:
    case Type::kTuple:
    case Type::kDict:
    case Type::kDictView:
    case Type::kRange:
    case Type::kIterator:
      return true;
    default:
      return false;
  }
}

Iteration::Iteration(Value value, Budget& budget) : value_(std::move(value)), budget_(&budget) {
  if (!is_iterable(value_)) fail(fmt::format("'{}' object is not iterable", type_name(value_)));
}

bool Iteration::next(Value& item) {
  if (budget_ == nullptr) return false;
  budget_->charge(1);
  switch (value_.type()) {
    case Type::kString: {
      const std::string& text = value_.text();
      if (at_ >= text.size()) return false;
      const size_t length = character_size(text, at_);
      item = Value::string(text.substr(at_, length), value_.is_markup());
      at_ += length;
      return true;
    }
    case Type::kList:
    case Type::kTuple:
      if (at_ >= value_.items().size()) return false;
      item = value_.items()[at_++];
      return true;
    case Type::kDict:
      if (at_ >= value_.dict().entries.size()) return false;
      item = value_.dict().entries[at_++].key;
      return true;
    case Type::kDictView: {
      const auto& view = value_.object<DictViewObject>();
      const auto& entries = view.dict.dict().entries;
      if (at_ >= entries.size()) return false;
      const DictObject::Entry& entry = entries[at_++];
      item = view.kind == DictViewKind::kKeys     ? entry.key
             : view.kind == DictViewKind::kValues ? entry.value
                                                  : Value::tuple({entry.key, entry.value});
      return true;
    }
    case Type::kRange: {
      const auto& range = value_.object<RangeObject>();
      if (static_cast<int64_t>(at_) >= range.length) return false;
      item = Value::integer(Int{range.start} + Int{range.step} * static_cast<Int>(at_++));
      return true;
    }
    case Type::kIterator: {
      auto& source = value_.object<IteratorObject>();
      if (source.next >= source.items.size()) return false;
      item = source.items[source.next++];
      return true;
    }
    default:
      return false;
  }
}

size_t Iteration::length() const {
  switch (value_.type()) {
    case Type::kString:
      return count_characters(value_.text());
    case Type::kList:
    case Type::kTuple:
      return value_.items().size();
    case Type::kDict:
      return value_.dict().entries.size();
    case Type::kDictView:
      return value_.object<DictViewObject>().dict.dict().entries.size();
    case Type::kRange:
      return static_cast<size_t>(value_.object<RangeObject>().length);
    case Type::kIterator:
      return value_.object<IteratorObject>().items.size() - value_.object<IteratorObject>().next;
    default:
      return 0;
  }
}

std::vector<Value> to_vector(const Value& value, Budget& budget) {
  Iteration source(value, budget);
  const size_t length = source.length();
  budget.charge_elements(length);
  std::vector<Value> items;
  items.reserve(length);
  Value item;
  while (source.next(item)) items.push_back(std::move(item));
  return items;
}

}  // namespace tgi::jinja
