// The values of a template, with the meaning Python gives them: immutable strings (UTF-8, indexed
// by character), lists, tuples and ordered dicts, 64-bit-and-beyond integers, doubles, and jinja2's
// own objects (undefined, namespace, loop, macro, generators). No operators here:
// operators.h.
//
// A Value belongs to one rendering, hence to one thread, except constants in a parsed template,
// which are only read. Lists and dicts can't be changed once made (jinja2's immutable sandbox
// forbids it too), so they form no cycles; namespaces and scopes can, and the interpreter owns
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/nlohmann_json.h"
#include "engine/text/jinja/limits.h"

namespace tgi::jinja {

// Python's integers have no limit; these cover all of JSON's 64-bit ones with room for arithmetic,
// and going beyond is an error.
__extension__ typedef __int128 Int;

using OrderedJson = nlohmann::ordered_json;

enum class Type : uint8_t {
  kNone,
  kBool,
  kInt,
  kFloat,
  kUndefined,
  kString,
  kList,
  kTuple,
  kDict,
  kDictView,
  kRange,
  kIterator,
  kNamespace,
  kFunction,
  kMacro,
  kLoop,
  kCycler,
  kJoiner,
};

// What lies on the heap. `depth` is how deep containers nest below; bounded, so that walking a
// value recursively is safe. `memory` counts the object and what it alone owns.
struct Object {
  explicit Object(Type object_type, int object_depth = 0)
      : type(object_type), depth(object_depth) {}
  Type type;
  int depth;
  MemoryCount memory{128};  // about what any of them takes with the counters of its owners
};

struct DictObject;

class Value {
 public:
  Value() = default;  // None

  static Value boolean(bool value) { return Value(Payload(value)); }
  static Value integer(Int value) { return Value(Payload(value)); }
  static Value real(double value) { return Value(Payload(value)); }
  // REQUIRES: valid UTF-8. Markup is text that `x|escape` is not to escape (again), as `x|safe`
  // gives. Unlike in jinja2 that is all it does: what is joined to such a text is never escaped,
  // since HTML entities in a prompt are no use to a model.
  static Value string(std::string text, bool is_markup = false);
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  static Value group(Value key, Value items);  // the pair (grouper, list) that groupby gives
  static Value dict(DictObject dict);
  static Value iterator(std::string_view name, std::vector<Value> items);
  // Prints as nothing; using it in any other way fails with `message`.
  static Value undefined(std::string message);
  static Value from(std::shared_ptr<Object> object) { return Value(Payload(std::move(object))); }

  Type type() const {
    constexpr Type kScalars[] = {Type::kNone, Type::kBool, Type::kInt, Type::kFloat};
    return payload_.index() < 4 ? kScalars[payload_.index()] : heap()->type;
  }
  bool is(Type wanted) const { return type() == wanted; }
  bool is_none() const { return payload_.index() == 0; }
  bool is_undefined() const { return is(Type::kUndefined); }
  bool is_string() const { return is(Type::kString); }
  bool is_sequence() const { return is(Type::kList) || is(Type::kTuple); }
  bool is_number() const { return payload_.index() >= 1 && payload_.index() <= 3; }  // bools too
  bool is_integral() const { return payload_.index() == 1 || payload_.index() == 2; }
  bool is_markup() const;

  bool as_bool() const { return std::get<bool>(payload_); }
  double as_float() const { return std::get<double>(payload_); }
  Int as_int() const;        // of a bool or an int
  double as_double() const;  // of any number
  const std::string& text() const;
  const std::vector<Value>& items() const;  // of a list or a tuple
  const DictObject& dict() const;

  // REQUIRES: T is the struct that belongs to type().
  template <typename T>
  T& object() const {
    return *static_cast<T*>(heap());
  }
  // Whether no other value holds the same object, so that changing it is seen by nobody.
  // REQUIRES: the object is on the heap.
  bool is_only_owner() const {
    return std::get_if<std::shared_ptr<Object>>(&payload_)->use_count() == 1;
  }
  const void* identity() const { return payload_.index() == 4 ? heap() : nullptr; }
  int depth() const { return payload_.index() == 4 ? heap()->depth : 0; }

 private:
  using Payload = std::variant<std::monostate, bool, Int, double, std::shared_ptr<Object>>;

  explicit Value(Payload payload) : payload_(std::move(payload)) {}
  Object* heap() const { return std::get_if<std::shared_ptr<Object>>(&payload_)->get(); }

  Payload payload_;
};

// The depth of what holds `value`. Throws when that nests too deep.
int depth_around(const Value& value);

struct UndefinedObject : Object {
  explicit UndefinedObject(std::string text) : Object(Type::kUndefined), message(std::move(text)) {}
  std::string message;
};

struct StringObject : Object {
  StringObject(std::string value, bool markup)
      : Object(Type::kString), text(std::move(value)), is_markup(markup) {
    memory.add(text.capacity());
  }
  // REQUIRES: one value alone holds this.
  void append(std::string_view more) {
    const size_t before = text.capacity();
    text += more;
    memory.add(text.capacity() - before);
  }
  std::string text;
  bool is_markup;
};

struct SequenceObject : Object {
  SequenceObject(Type sequence_type, std::vector<Value> values);
  std::vector<Value> items;
  bool is_group = false;
};

// Keeps the order of insertion. Changed only while it is being built.
struct DictObject : Object {
  struct Entry {
    Value key;
    Value value;
  };

  DictObject() : Object(Type::kDict) {}

  // Throws kInvalidArgument when the key is not hashable (a list, a dict).
  void set(Value key, Value value, Budget& budget);
  const Value* find(const Value& key, Budget& budget) const;
  const Value* find(std::string_view key) const;

  std::vector<Entry> entries;

 private:
  const Entry* locate(size_t hash, const Value& key, Budget& budget) const;

  std::unordered_multimap<size_t, size_t> places_;  // hash → index in entries, when there are many
};

enum class DictViewKind { kKeys, kValues, kItems };

struct DictViewObject : Object {
  DictViewObject(DictViewKind view, Value of)
      : Object(Type::kDictView, depth_around(of)), kind(view), dict(std::move(of)) {}
  DictViewKind kind;
  Value dict;
};

struct RangeObject : Object {
  RangeObject(int64_t first, int64_t last, int64_t by);
  int64_t start;
  int64_t stop;
  int64_t step;
  int64_t length;
};

// A generator: read once, from the front. Computed beforehand, since the functions that make one
// have no side effects.
struct IteratorObject : Object {
  IteratorObject(std::string_view kind, std::vector<Value> values);
  std::string_view name;  // REQUIRES: a literal
  std::vector<Value> items;
  size_t next = 0;
};

struct NamespaceObject : Object {
  NamespaceObject() : Object(Type::kNamespace) {}
  std::vector<std::pair<std::string, Value>> attributes;
  bool is_being_printed = false;
};

struct CyclerObject : Object {
  explicit CyclerObject(std::vector<Value> values);
  std::vector<Value> items;
  size_t position = 0;
};

struct JoinerObject : Object {
  explicit JoinerObject(Value text)
      : Object(Type::kJoiner, depth_around(text)), separator(std::move(text)) {}
  Value separator;
  bool used = false;
};

// The name Python gives the type, for messages: "str", "dict", "NoneType".
std::string_view type_name(const Value& value);

// Throws kInvalidArgument for what Python can't hash.
size_t hash_value(const Value& value, Budget& budget);
bool is_hashable(const Value& value);

// Throws kInvalidArgument when a string is not UTF-8 or the document nests too deep.
Value from_json(const OrderedJson& json, Budget& budget, int depth = 0);

// Walks over what a for loop can walk over; reads generators up.
class Iteration {
 public:
  Iteration() = default;
  // Throws kInvalidArgument when `value` is not iterable.
  Iteration(Value value, Budget& budget);

  bool next(Value& item);
  // How many elements there are from the start. REQUIRES: nothing was taken yet.
  size_t length() const;

 private:
  Value value_;
  size_t at_ = 0;
  Budget* budget_ = nullptr;
};

bool is_iterable(const Value& value);
std::vector<Value> to_vector(const Value& value, Budget& budget);

}  // namespace tgi::jinja
