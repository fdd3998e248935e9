// What the operators of the language do, with Python's rules: what may be added to what, exact
// comparison of ints and floats, negative indices and steps. Errors name the types.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/text/jinja/value.h"

namespace tgi::jinja {

enum class BinaryOp { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
enum class CompareOp { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

bool is_true(const Value& value);
bool equal(const Value& left, const Value& right, Budget& budget);
// Throws for types that have no order, and kIn for what is no container.
bool compare(CompareOp op, const Value& left, const Value& right, Budget& budget);
bool less(const Value& left, const Value& right, Budget& budget);
bool contains(const Value& container, const Value& item, Budget& budget);

// A text on the left that nothing else holds becomes the result of kAdd.
Value binary(BinaryOp op, Value left, const Value& right, Budget& budget);
Value negative(const Value& value);
Value positive(const Value& value);

// `bounds` may be None or ints.
Value slice(
    const Value& value, const Value& start, const Value& stop, const Value& step, Budget& budget);

// The element number `index`, counted from the end when negative; nothing when out of range or when
// `value` has no elements by number.
std::optional<Value> element(const Value& value, Int index);

// len(); nothing when the type has none.
std::optional<size_t> length_of(const Value& value);

// How messages call the value: "'x' is undefined" for an undefined one.
[[noreturn]] void fail_undefined(const Value& value);
void require_defined(const Value& value);

// &, <, >, ' and " as HTML entities, unless the value is markup already.
std::string escape_html(const Value& value, Budget& budget);

}  // namespace tgi::jinja
