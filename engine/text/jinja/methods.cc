#include "engine/text/jinja/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/operators.h"

namespace tgi::jinja {
namespace {

// --- dict ---

Value dict_get(Interpreter& in, const Value& self, const Bound& arguments) {
  const Value* found = self.dict().find(arguments[0], in.budget());
  return found == nullptr ? arguments[1] : *found;
}

template <DictViewKind kind>
Value dict_view(Interpreter&, const Value& self, const Bound&) {
  return Value::from(std::make_shared<DictViewObject>(kind, self));
}

Value copy_of_itself(Interpreter&, const Value& self, const Bound&) {
  return self;
}

// --- list, tuple and range ---

Value sequence_count(Interpreter& in, const Value& self, const Bound& arguments) {
  Int count = 0;
  for (const Value& item : to_vector(self, in.budget()))
    count += equal(item, arguments[0], in.budget()) ? 1 : 0;
  return Value::integer(count);
}

Value sequence_index(Interpreter& in, const Value& self, const Bound& arguments) {
  const std::vector<Value> items = to_vector(self, in.budget());
  const auto size = static_cast<Int>(items.size());
  const auto clamp = [&](Int bound) {
    return std::clamp<Int>(bound < 0 ? bound + size : bound, 0, size);
  };
  const auto first = static_cast<size_t>(clamp(arguments.integer_or(1, 0)));
  const auto last = static_cast<size_t>(clamp(arguments.integer_or(2, size)));
  for (size_t i = first; i < last; ++i) {
    if (equal(items[i], arguments[0], in.budget())) return Value::integer(static_cast<Int>(i));
  }
  fail("index(): the value is not in the list");
}

// --- float ---

Value float_is_integer(Interpreter&, const Value& self, const Bound&) {
  const double value = self.as_float();
  return Value::boolean(std::isfinite(value) && std::floor(value) == value);
}

// --- cycler ---

Value cycler_next(Interpreter&, const Value& self, const Bound&) {
  auto& cycler = self.object<CyclerObject>();
  Value current = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return current;
}

Value cycler_reset(Interpreter&, const Value& self, const Bound&) {
  self.object<CyclerObject>().position = 0;
  return Value();
}

constexpr std::array<Builtin, 5> kDictMethods = {{
    {.name = "get", .call = &dict_get, .num_required = 1, .parameters = {"/key", "/default"}},
    {.name = "items", .call = &dict_view<DictViewKind::kItems>},
    {.name = "keys", .call = &dict_view<DictViewKind::kKeys>},
    {.name = "values", .call = &dict_view<DictViewKind::kValues>},
    {.name = "copy", .call = &copy_of_itself},
}};

constexpr std::array<Builtin, 3> kListMethods = {{
    {.name = "count", .call = &sequence_count, .num_required = 1, .parameters = {"/value"}},
    {.name = "index",
     .call = &sequence_index,
     .num_required = 1,
     .parameters = {"/value", "/start", "/stop"}},
    {.name = "copy", .call = &copy_of_itself},
}};

constexpr std::array<Builtin, 1> kFloatMethods = {{
    {.name = "is_integer", .call = &float_is_integer},
}};

constexpr std::array<Builtin, 2> kCyclerMethods = {{
    {.name = "next", .call = &cycler_next},
    {.name = "reset", .call = &cycler_reset},
}};

// Methods that change what they belong to.
constexpr std::array<std::string_view, 8> kListChanges = {"append", "clear", "pop",    "reverse",
                                                          "insert", "sort",  "extend", "remove"};
constexpr std::array<std::string_view, 5> kDictChanges = {"clear", "pop", "popitem", "setdefault",
                                                          "update"};

template <typename Names>
bool has_name(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Value unsafe(const Value& object, std::string_view name) {
  return Value::undefined(
      fmt::format("access to attribute '{}' of '{}' object is unsafe: templates "
                  "can't change lists and dicts",
                  name, type_name(object)));
}

const Builtin* find_method(const Value& object, std::string_view name) {
  switch (object.type()) {
    case Type::kString:
      return find_string_method(name);
    case Type::kDict:
      return find_row(kDictMethods, name);
    case Type::kList:
      return find_row(kListMethods, name);
    case Type::kTuple:
    case Type::kRange:
      return name == "copy" ? nullptr : find_row(kListMethods, name);
    case Type::kFloat:
      return find_row(kFloatMethods, name);
    case Type::kCycler:
      return find_row(kCyclerMethods, name);
    case Type::kLoop:
      return find_loop_method(name);
    default:
      return nullptr;
  }
}

// Attributes that are values rather than methods.
std::optional<Value> find_member(const Value& object, std::string_view name) {
  if (object.is(Type::kTuple) && object.object<SequenceObject>().is_group) {
    if (name == "grouper") return object.items()[0];
    if (name == "list") return object.items()[1];
  }
  if (object.is(Type::kRange)) {
    const auto& range = object.object<RangeObject>();
    if (name == "start") return Value::integer(range.start);
    if (name == "stop") return Value::integer(range.stop);
    if (name == "step") return Value::integer(range.step);
  }
  if (object.is(Type::kCycler) && name == "current") {
    const auto& cycler = object.object<CyclerObject>();
    return cycler.items[cycler.position];
  }
  if (object.is(Type::kMacro) && name == "name") {
    return Value::string(object.object<MacroObject>().definition.name);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Value> find_attribute(const Value& object, std::string_view name) {
  if (std::optional<Value> member = find_member(object, name)) return member;
  if (const Builtin* method = find_method(object, name); method != nullptr) {
    return Value::from(std::make_shared<FunctionObject>(*method, object));
  }
  if (object.is(Type::kList) && has_name(kListChanges, name)) return unsafe(object, name);
  if (object.is(Type::kDict) && has_name(kDictChanges, name)) return unsafe(object, name);
  return std::nullopt;
}

std::string describe_callable(const Value& value) {
  switch (value.type()) {
    case Type::kMacro:
      return fmt::format("<Macro '{}'>", value.object<MacroObject>().definition.name);
    case Type::kLoop:
      return value.object<LoopObject>().describe();
    case Type::kFunction:
      return fmt::format("<function {}>", value.object<FunctionObject>().function.name);
    default:
      return fmt::format("<{} object>", type_name(value));
  }
}

}  // namespace tgi::jinja
