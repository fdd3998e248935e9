// The arithmetic half of operators.h.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/text/jinja/format.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/print.h"

namespace tgi::jinja {
namespace {

constexpr std::array<std::string_view, 7> kSymbols = {"+", "-", "*", "/", "//", "%", "**"};

[[noreturn]] void fail_operands(BinaryOp op, const Value& left, const Value& right) {
  fail(fmt::format("unsupported operand types for {}: '{}' and '{}'",
                   kSymbols[static_cast<size_t>(op)], type_name(left), type_name(right)));
}

// By reference: the result is written while the arguments are evaluated.
Int checked(bool overflowed, const Int& result) {
  if (overflowed) fail("the result is too large for an integer");
  return result;
}

Int floor_divide(Int left, Int right) {
  const Int quotient = left / right;
  return left % right != 0 && (left < 0) != (right < 0) ? quotient - 1 : quotient;
}

Value power_of_ints(Int base, Int exponent) {
  if (exponent < 0) {
    if (base == 0) fail("0 cannot be raised to a negative power");
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  Int result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0) {
      result = checked(__builtin_mul_overflow(result, base, &result), result);
    }
    exponent >>= 1;
    if (exponent > 0 && (base > 1 || base < -1)) {
      base = checked(__builtin_mul_overflow(base, base, &base), base);
    } else if (exponent > 0) {
      base = base * base;
    }
  }
  return Value::integer(result);
}

Value of_ints(BinaryOp op, Int left, Int right) {
  Int result = 0;
  switch (op) {
    case BinaryOp::kAdd:
      return Value::integer(checked(__builtin_add_overflow(left, right, &result), result));
    case BinaryOp::kSubtract:
      return Value::integer(checked(__builtin_sub_overflow(left, right, &result), result));
    case BinaryOp::kMultiply:
      return Value::integer(checked(__builtin_mul_overflow(left, right, &result), result));
    case BinaryOp::kPower:
      return power_of_ints(left, right);
    default:
      break;
  }
  if (right == 0) fail("division by zero");
  if (op == BinaryOp::kDivide) {
    return Value::real(static_cast<double>(left) / static_cast<double>(right));
  }
  if (right == -1) {  // the lowest integer has no negative
    if (op == BinaryOp::kModulo) return Value::integer(0);
    return Value::integer(checked(__builtin_sub_overflow(Int{0}, left, &result), result));
  }
  const Int quotient = floor_divide(left, right);
  return Value::integer(op == BinaryOp::kFloorDivide ? quotient : left - quotient * right);
}

Value of_floats(BinaryOp op, double left, double right) {
  switch (op) {
    case BinaryOp::kAdd:
      return Value::real(left + right);
    case BinaryOp::kSubtract:
      return Value::real(left - right);
    case BinaryOp::kMultiply:
      return Value::real(left * right);
    case BinaryOp::kPower: {
      if (left == 0 && right < 0) fail("0.0 cannot be raised to a negative power");
      if (left < 0 && std::floor(right) != right) fail("a complex result is not supported");
      const double power = std::pow(left, right);
      if (std::isinf(power) && std::isfinite(left) && std::isfinite(right)) {
        fail("the result is too large for a float");
      }
      return Value::real(power);
    }
    default:
      break;
  }
  if (right == 0) fail("division by zero");
  if (op == BinaryOp::kDivide) return Value::real(left / right);
  double remainder = std::fmod(left, right);
  const bool crosses = remainder != 0 && (remainder < 0) != (right < 0);
  if (op == BinaryOp::kModulo) {
    if (crosses) remainder += right;
    return Value::real(remainder == 0 ? std::copysign(0.0, right) : remainder);
  }
  const double quotient = (left - remainder) / right - (crosses ? 1 : 0);
  if (quotient == 0) return Value::real(std::copysign(0.0, left / right));
  const double whole = std::floor(quotient);
  return Value::real(quotient - whole > 0.5 ? whole + 1 : whole);
}

Value repeat(const Value& value, Int count, Budget& budget) {
  if (count < 0) count = 0;
  constexpr Int kHuge = Int{1} << 40;
  const auto times = static_cast<size_t>(std::min(count, kHuge));
  if (value.is_string()) {
    const std::string& text = value.text();
    if (text.empty()) return value;
    if (times > budget.max_text_bytes()) budget.charge_text(times);
    budget.charge_text(text.size() * times);
    std::string result;
    result.reserve(text.size() * times);
    for (size_t i = 0; i < times; ++i) result += text;
    return Value::string(std::move(result), value.is_markup());
  }
  std::vector<Value> result;
  if (!value.items().empty()) {
    budget.charge_elements(times);
    budget.charge_elements(value.items().size() * times);
    result.reserve(value.items().size() * times);
    for (size_t i = 0; i < times; ++i) {
      result.insert(result.end(), value.items().begin(), value.items().end());
    }
  }
  return value.is(Type::kList) ? Value::list(std::move(result)) : Value::tuple(std::move(result));
}

// A text that nothing else holds is appended to, so that a + b + c copies a once.
Value concatenate_texts(Value left, const Value& right, Budget& budget) {
  const size_t size = left.text().size() + right.text().size();
  const bool is_markup = left.is_markup() && right.is_markup();
  if (left.is_only_owner()) {
    budget.charge_appended(right.text().size(), size);
    auto& object = left.object<StringObject>();
    object.append(right.text());
    object.is_markup = is_markup;
    return left;
  }
  budget.charge_text(size);
  std::string text;
  text.reserve(size + size / 8);  // what is added next is mostly shorter
  text += left.text();
  text += right.text();
  return Value::string(std::move(text), is_markup);
}

Value concatenate(Value left, const Value& right, Budget& budget) {
  if (left.is_string()) return concatenate_texts(std::move(left), right, budget);
  budget.charge_elements(left.items().size() + right.items().size());
  std::vector<Value> items = left.items();
  items.insert(items.end(), right.items().begin(), right.items().end());
  return left.is(Type::kList) ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

bool is_repeatable(const Value& value) {
  return value.is_string() || value.is_sequence();
}

}  // namespace

Value binary(BinaryOp op, Value left, const Value& right, Budget& budget) {
  if (left.is_integral() && right.is_integral()) {
    return of_ints(op, left.as_int(), right.as_int());
  }
  if (left.is_number() && right.is_number()) {
    return of_floats(op, left.as_double(), right.as_double());
  }
  if (op == BinaryOp::kModulo && left.is_string()) {
    return Value::string(format_percent(left, right, budget));
  }
  require_defined(left);
  require_defined(right);
  if (op == BinaryOp::kMultiply && is_repeatable(left) && right.is_integral()) {
    return repeat(left, right.as_int(), budget);
  }
  if (op == BinaryOp::kMultiply && left.is_integral() && is_repeatable(right)) {
    return repeat(right, left.as_int(), budget);
  }
  if (op == BinaryOp::kAdd && is_repeatable(left) && left.is(right.type())) {
    return concatenate(std::move(left), right, budget);
  }
  fail_operands(op, left, right);
}

Value negative(const Value& value) {
  require_defined(value);
  if (value.is(Type::kFloat)) return Value::real(-value.as_float());
  if (!value.is_integral())
    fail(fmt::format("bad operand type for unary -: '{}'", type_name(value)));
  return of_ints(BinaryOp::kSubtract, 0, value.as_int());
}

Value positive(const Value& value) {
  require_defined(value);
  if (value.is(Type::kFloat)) return value;
  if (!value.is_integral())
    fail(fmt::format("bad operand type for unary +: '{}'", type_name(value)));
  return Value::integer(value.as_int());
}

std::string escape_html(const Value& value, Budget& budget) {
  const std::string text = to_text(value, budget);
  if (value.is_markup()) return text;
  std::string escaped;
  for (const char character : text) {
    constexpr std::string_view kSpecial = "&<>'\"";
    constexpr std::array<std::string_view, 5> kEntities = {"&amp;", "&lt;", "&gt;", "&#39;",
                                                           "&#34;"};
    const size_t special = kSpecial.find(character);
    if (special == std::string_view::npos) {
      escaped += character;
    } else {
      escaped += kEntities[special];
    }
  }
  budget.charge_text(escaped.size());
  return escaped;
}

}  // namespace tgi::jinja
