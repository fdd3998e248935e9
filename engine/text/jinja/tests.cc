#include "engine/text/jinja/tests.h"

#include <fmt/format.h>

#include <array>

#include "engine/text/jinja/filters.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/print.h"
#include "engine/text/jinja/text.h"

namespace tgi::jinja {
namespace {

template <Type type>
Value has_type(Interpreter&, const Value& value, const Bound&) {
  return Value::boolean(value.is(type));
}

Value is_defined(Interpreter&, const Value& value, const Bound&) {
  return Value::boolean(!value.is_undefined());
}

template <bool wanted>
Value is_exactly(Interpreter&, const Value& value, const Bound&) {
  return Value::boolean(value.is(Type::kBool) && value.as_bool() == wanted);
}

Value is_number(Interpreter&, const Value& value, const Bound&) {
  return Value::boolean(value.is_number());
}

Value test_iterable(Interpreter&, const Value& value, const Bound&) {
  return Value::boolean(is_iterable(value) || value.is(Type::kLoop));
}

Value is_sequence(Interpreter&, const Value& value, const Bound&) {
  const bool has_both = value.is_string() || value.is_sequence() || value.is(Type::kDict) ||
                        value.is(Type::kRange) || value.is_undefined();
  return Value::boolean(has_both);
}

Value is_callable(Interpreter&, const Value& value, const Bound&) {
  return Value::boolean(value.is(Type::kFunction) || value.is(Type::kMacro) ||
                        value.is(Type::kLoop) || value.is(Type::kJoiner) || value.is_undefined());
}

template <CompareOp op>
Value compares(Interpreter& in, const Value& value, const Bound& arguments) {
  return Value::boolean(compare(op, value, arguments[0], in.budget()));
}

Value remainder_of(Interpreter& in, const Value& value, const Value& divisor) {
  return binary(BinaryOp::kModulo, value, divisor, in.budget());
}

template <int remainder>
Value leaves(Interpreter& in, const Value& value, const Bound&) {
  const Value left = remainder_of(in, value, Value::integer(2));
  return Value::boolean(equal(left, Value::integer(remainder), in.budget()));
}

Value is_divisible(Interpreter& in, const Value& value, const Bound& arguments) {
  const Value left = remainder_of(in, value, arguments[0]);
  return Value::boolean(equal(left, Value::integer(0), in.budget()));
}

// Identity: of values that Python may or may not share (numbers, strings) equality is the best
// answer there is.
Value is_same(Interpreter& in, const Value& value, const Bound& arguments) {
  const Value& other = arguments[0];
  if (value.type() != other.type()) return Value::boolean(false);
  if (value.is_number() || value.is_string() || value.is_none()) {
    return Value::boolean(equal(value, other, in.budget()));
  }
  return Value::boolean(value.identity() == other.identity());
}

template <bool (*test)(std::string_view)>
Value text_is(Interpreter& in, const Value& value, const Bound&) {
  return Value::boolean(test(to_text(value, in.budget())));
}

Value is_filter(Interpreter&, const Value& value, const Bound&) {
  return Value::boolean(value.is_string() && find_filter(value.text()) != nullptr);
}

Value is_test(Interpreter&, const Value& value, const Bound&) {
  return Value::boolean(value.is_string() && find_test(value.text()) != nullptr);
}

Value is_escaped(Interpreter&, const Value& value, const Bound&) {
  return Value::boolean(value.is_markup());
}

constexpr std::array<Builtin, 39> kTests = {{
    {.name = "defined", .call = &is_defined},
    {.name = "undefined", .call = &has_type<Type::kUndefined>},
    {.name = "none", .call = &has_type<Type::kNone>},
    {.name = "boolean", .call = &has_type<Type::kBool>},
    {.name = "true", .call = &is_exactly<true>},
    {.name = "false", .call = &is_exactly<false>},
    {.name = "integer", .call = &has_type<Type::kInt>},
    {.name = "float", .call = &has_type<Type::kFloat>},
    {.name = "number", .call = &is_number},
    {.name = "string", .call = &has_type<Type::kString>},
    {.name = "mapping", .call = &has_type<Type::kDict>},
    {.name = "sequence", .call = &is_sequence},
    {.name = "iterable", .call = &test_iterable},
    {.name = "callable", .call = &is_callable},
    {.name = "lower", .call = &text_is<&is_lower>},
    {.name = "upper", .call = &text_is<&is_upper>},
    {.name = "odd", .call = &leaves<1>},
    {.name = "even", .call = &leaves<0>},
    {.name = "divisibleby", .call = &is_divisible, .num_required = 1, .parameters = {"num"}},
    {.name = "sameas", .call = &is_same, .num_required = 1, .parameters = {"other"}},
    {.name = "escaped", .call = &is_escaped},
    {.name = "filter", .call = &is_filter},
    {.name = "test", .call = &is_test},
    {.name = "in", .call = &compares<CompareOp::kIn>, .num_required = 1, .parameters = {"seq"}},
    {.name = "==",
     .call = &compares<CompareOp::kEqual>,
     .num_required = 1,
     .parameters = {"/other"}},
    {.name = "eq",
     .call = &compares<CompareOp::kEqual>,
     .num_required = 1,
     .parameters = {"/other"}},
    {.name = "equalto",
     .call = &compares<CompareOp::kEqual>,
     .num_required = 1,
     .parameters = {"/other"}},
    {.name = "!=",
     .call = &compares<CompareOp::kNotEqual>,
     .num_required = 1,
     .parameters = {"/other"}},
    {.name = "ne",
     .call = &compares<CompareOp::kNotEqual>,
     .num_required = 1,
     .parameters = {"/other"}},
    {.name = ">",
     .call = &compares<CompareOp::kGreater>,
     .num_required = 1,
     .parameters = {"/other"}},
    {.name = "gt",
     .call = &compares<CompareOp::kGreater>,
     .num_required = 1,
     .parameters = {"/other"}},
    {.name = "greaterthan",
     .call = &compares<CompareOp::kGreater>,
     .num_required = 1,
     .parameters = {"/other"}},
    {.name = ">=",
     .call = &compares<CompareOp::kGreaterEqual>,
     .num_required = 1,
     .parameters = {"/other"}},
    {.name = "ge",
     .call = &compares<CompareOp::kGreaterEqual>,
     .num_required = 1,
     .parameters = {"/other"}},
    {.name = "<", .call = &compares<CompareOp::kLess>, .num_required = 1, .parameters = {"/other"}},
    {.name = "lt",
     .call = &compares<CompareOp::kLess>,
     .num_required = 1,
     .parameters = {"/other"}},
    {.name = "lessthan",
     .call = &compares<CompareOp::kLess>,
     .num_required = 1,
     .parameters = {"/other"}},
    {.name = "<=",
     .call = &compares<CompareOp::kLessEqual>,
     .num_required = 1,
     .parameters = {"/other"}},
    {.name = "le",
     .call = &compares<CompareOp::kLessEqual>,
     .num_required = 1,
     .parameters = {"/other"}},
}};

}  // namespace

const Builtin* find_test(std::string_view name) {
  return find_row(kTests, name);
}

}  // namespace tgi::jinja
