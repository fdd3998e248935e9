#include "engine/text/jinja/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "base/utf8.h"
#include "engine/text/jinja/text.h"

namespace tgi::jinja {
namespace {

// Sign of left - right, exact even where a double can't hold the int.
int order_int_float(Int left, double right) {
  constexpr double kBeyond = 1e38;  // above what an Int holds, about 1.7e38
  if (right > kBeyond) return -1;
  if (right < -kBeyond) return 1;
  const double whole = std::floor(right);
  const Int truncated = static_cast<Int>(whole);
  if (left != truncated) return left < truncated ? -1 : 1;
  return right > whole ? -1 : 0;
}

constexpr int kUnordered = 2;  // one is not a number

int order_numbers(const Value& left, const Value& right) {
  if (left.is_integral() && right.is_integral()) {
    return left.as_int() < right.as_int() ? -1 : left.as_int() > right.as_int() ? 1 : 0;
  }
  if (std::isnan(left.as_double()) || std::isnan(right.as_double())) return kUnordered;
  if (left.is_integral()) return order_int_float(left.as_int(), right.as_float());
  if (right.is_integral()) return -order_int_float(right.as_int(), left.as_float());
  return left.as_float() < right.as_float() ? -1 : left.as_float() > right.as_float() ? 1 : 0;
}

bool equal_dicts(const DictObject& left, const DictObject& right, Budget& budget) {
  if (left.entries.size() != right.entries.size()) return false;
  for (const DictObject::Entry& entry : left.entries) {
    const Value* other = right.find(entry.key, budget);
    if (other == nullptr || !equal(entry.value, *other, budget)) return false;
  }
  return true;
}

bool equal_ranges(const RangeObject& left, const RangeObject& right) {
  return left.length == right.length &&
         (left.length == 0 ||
          (left.start == right.start && (left.length == 1 || left.step == right.step)));
}

bool holds(CompareOp op, int order) {
  if (order == kUnordered) return false;
  switch (op) {
    case CompareOp::kLess:
      return order < 0;
    case CompareOp::kLessEqual:
      return order <= 0;
    case CompareOp::kGreater:
      return order > 0;
    default:
      return order >= 0;
  }
}

constexpr std::array<std::string_view, 8> kCompareSymbols = {
    "==", "!=", "<", "<=", ">", ">=", "in", "not in"};

bool compare_order(CompareOp op, const Value& left, const Value& right, Budget& budget) {
  budget.charge(1);
  if (left.is_number() && right.is_number()) return holds(op, order_numbers(left, right));
  if (left.is_string() && right.is_string()) {
    budget.charge(std::min(left.text().size(), right.text().size()) / 16);
    // compare() may give any number of the right sign, that of kUnordered too.
    const int order = left.text().compare(right.text());
    return holds(op, order < 0 ? -1 : order > 0 ? 1 : 0);
  }
  if (left.is_sequence() && left.is(right.type())) {
    const auto& a = left.items();
    const auto& b = right.items();
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (!equal(a[i], b[i], budget)) return compare_order(op, a[i], b[i], budget);
    }
    return holds(op, a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0);
  }
  require_defined(left);
  require_defined(right);
  fail(fmt::format("'{}' not supported between instances of '{}' and '{}'",
                   kCompareSymbols[static_cast<size_t>(op)], type_name(left), type_name(right)));
}

struct Bounds {
  Int start;
  Int stop;
  Int step;
};

std::optional<Int> bound_of(const Value& value) {
  if (value.is_none()) return std::nullopt;
  if (!value.is_integral()) {
    require_defined(value);
    fail(fmt::format("slice indices must be integers or none, not {}", type_name(value)));
  }
  return value.as_int();
}

// Does what Python's slice.indices does.
Bounds resolve_bounds(const Value& start, const Value& stop, const Value& step, Int length) {
  Bounds bounds{0, 0, bound_of(step).value_or(1)};
  if (bounds.step == 0) fail("slice step cannot be zero");
  const bool backward = bounds.step < 0;
  const Int lowest = backward ? -1 : 0;
  const Int highest = backward ? length - 1 : length;
  const auto resolve = [&](const Value& bound, Int fallback) {
    const std::optional<Int> given = bound_of(bound);
    if (!given) return fallback;
    return std::clamp<Int>(*given < 0 ? *given + length : *given, lowest, highest);
  };
  bounds.start = resolve(start, backward ? highest : lowest);
  bounds.stop = resolve(stop, backward ? lowest : highest);
  return bounds;
}

std::vector<Value> slice_items(const std::vector<Value>& items,
                               const Bounds& bounds,
                               Budget& budget) {
  std::vector<Value> result;
  for (Int i = bounds.start; bounds.step > 0 ? i < bounds.stop : i > bounds.stop;
       i += bounds.step) {
    budget.charge(2);
    result.push_back(items[static_cast<size_t>(i)]);
  }
  return result;
}

std::string slice_text(const std::string& text,
                       size_t length,
                       const Bounds& bounds,
                       Budget& budget) {
  budget.charge_text(text.size());
  if (bounds.step == 1) {
    if (bounds.start >= bounds.stop) return {};
    const size_t first = byte_offset(text, static_cast<size_t>(bounds.start));
    const auto count = static_cast<size_t>(bounds.stop - bounds.start);
    return text.substr(first, byte_offset(std::string_view(text).substr(first), count));
  }
  std::vector<size_t> starts;  // of each character, and the end
  starts.reserve(length + 1);
  for (size_t at = 0; at < text.size(); at += character_size(text, at)) starts.push_back(at);
  starts.push_back(text.size());
  std::string result;
  for (Int i = bounds.start; bounds.step > 0 ? i < bounds.stop : i > bounds.stop;
       i += bounds.step) {
    const auto index = static_cast<size_t>(i);
    result.append(text, starts[index], starts[index + 1] - starts[index]);
  }
  return result;
}

}  // namespace

bool is_true(const Value& value) {
  switch (value.type()) {
    case Type::kNone:
    case Type::kUndefined:
      return false;
    case Type::kBool:
    case Type::kInt:
      return value.as_int() != 0;
    case Type::kFloat:
      return value.as_float() != 0;
    default:
      return length_of(value).value_or(1) != 0;
  }
}

bool equal(const Value& left, const Value& right, Budget& budget) {
  budget.charge(1);
  if (left.is_number() && right.is_number()) return order_numbers(left, right) == 0;
  if (left.type() != right.type()) return false;
  switch (left.type()) {
    case Type::kNone:
    case Type::kUndefined:
      return true;
    case Type::kString:
      budget.charge(std::min(left.text().size(), right.text().size()) / 16);
      return left.text() == right.text();
    case Type::kList:
    case Type::kTuple:
      return left.items().size() == right.items().size() &&
             std::equal(left.items().begin(), left.items().end(), right.items().begin(),
                        [&](const Value& a, const Value& b) { return equal(a, b, budget); });
    case Type::kDict:
      return equal_dicts(left.dict(), right.dict(), budget);
    case Type::kRange:
      return equal_ranges(left.object<RangeObject>(), right.object<RangeObject>());
    default:
      return left.identity() == right.identity();
  }
}

bool compare(CompareOp op, const Value& left, const Value& right, Budget& budget) {
  switch (op) {
    case CompareOp::kEqual:
      return equal(left, right, budget);
    case CompareOp::kNotEqual:
      return !equal(left, right, budget);
    case CompareOp::kIn:
      return contains(right, left, budget);
    case CompareOp::kNotIn:
      return !contains(right, left, budget);
    default:
      return compare_order(op, left, right, budget);
  }
}

bool less(const Value& left, const Value& right, Budget& budget) {
  return compare_order(CompareOp::kLess, left, right, budget);
}

bool contains(const Value& container, const Value& item, Budget& budget) {
  if (container.is_string()) {
    if (!item.is_string()) {
      fail(fmt::format("'in <string>' requires a string as left operand, not {}", type_name(item)));
    }
    budget.charge(container.text().size() / 16);
    return container.text().find(item.text()) != std::string::npos;
  }
  if (container.is(Type::kDict)) return container.dict().find(item, budget) != nullptr;
  if (!is_iterable(container)) {
    fail(fmt::format("argument of type '{}' is not iterable", type_name(container)));
  }
  Iteration source(container, budget);
  Value candidate;
  while (source.next(candidate)) {
    if (equal(candidate, item, budget)) return true;
  }
  return false;
}

Value slice(
    const Value& value, const Value& start, const Value& stop, const Value& step, Budget& budget) {
  require_defined(value);
  if (!value.is_string() && !value.is_sequence() && !value.is(Type::kRange)) {
    fail(fmt::format("'{}' object can't be sliced", type_name(value)));
  }
  const size_t length = *length_of(value);
  budget.charge(1);
  const Bounds bounds = resolve_bounds(start, stop, step, static_cast<Int>(length));
  if (value.is_string()) {
    return Value::string(slice_text(value.text(), length, bounds, budget), value.is_markup());
  }
  if (value.is(Type::kRange)) {
    const auto& range = value.object<RangeObject>();
    const auto at = [&](Int i) { return static_cast<int64_t>(range.start + i * range.step); };
    return Value::from(std::make_shared<RangeObject>(
        at(bounds.start), at(bounds.stop), static_cast<int64_t>(bounds.step * range.step)));
  }
  std::vector<Value> items = slice_items(value.items(), bounds, budget);
  return value.is(Type::kList) ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

std::optional<Value> element(const Value& value, Int index) {
  if (!value.is_string() && !value.is_sequence() && !value.is(Type::kRange)) return std::nullopt;
  const auto length = static_cast<Int>(*length_of(value));
  if (index < 0) index += length;
  if (index < 0 || index >= length) return std::nullopt;
  if (value.is(Type::kRange)) {
    const auto& range = value.object<RangeObject>();
    return Value::integer(range.start + index * range.step);
  }
  if (value.is_sequence()) return value.items()[static_cast<size_t>(index)];
  const size_t at = byte_offset(value.text(), static_cast<size_t>(index));
  return Value::string(value.text().substr(at, character_size(value.text(), at)),
                       value.is_markup());
}

std::optional<size_t> length_of(const Value& value) {
  switch (value.type()) {
    case Type::kUndefined:
      return 0;
    case Type::kString:
      return count_characters(value.text());
    case Type::kList:
    case Type::kTuple:
      return value.items().size();
    case Type::kDict:
      return value.dict().entries.size();
    case Type::kDictView:
      return value.object<DictViewObject>().dict.dict().entries.size();
    case Type::kRange:
      return static_cast<size_t>(value.object<RangeObject>().length);
    default:
      return std::nullopt;
  }
}

void fail_undefined(const Value& value) {
  fail(value.object<UndefinedObject>().message);
}

void require_defined(const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
}

}  // namespace tgi::jinja
