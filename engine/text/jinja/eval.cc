// What each kind of expression does (declared in ast.h).
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/text/jinja/filters.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/print.h"
#include "engine/text/jinja/tests.h"

namespace tgi::jinja {

Value ConstExpr::eval(Interpreter&) const {
  return value;
}

Value NameExpr::eval(Interpreter& in) const {
  return in.load(name);
}

Value SequenceExpr::eval(Interpreter& in) const {
  std::vector<Value> values;
  values.reserve(items.size());
  for (const ExprPtr& item : items) values.push_back(in.eval(*item));
  return is_tuple ? Value::tuple(std::move(values)) : Value::list(std::move(values));
}

Value DictExpr::eval(Interpreter& in) const {
  DictObject dict;
  for (const auto& [key, value] : entries) {
    Value evaluated_key = in.eval(*key);
    dict.set(std::move(evaluated_key), in.eval(*value), in.budget());
  }
  return Value::dict(std::move(dict));
}

Value UnaryExpr::eval(Interpreter& in) const {
  const Value value = in.eval(*operand);
  switch (op) {
    case UnaryOp::kNegative:
      return negative(value);
    case UnaryOp::kPositive:
      return positive(value);
    default:
      return Value::boolean(!is_true(value));
  }
}

Value BinaryExpr::eval(Interpreter& in) const {
  Value first = in.eval(*left);
  const Value second = in.eval(*right);
  return binary(op, std::move(first), second, in.budget());
}

Value LogicExpr::eval(Interpreter& in) const {
  Value value = in.eval(*left);
  return is_true(value) == is_and ? in.eval(*right) : value;
}

Value ConcatExpr::eval(Interpreter& in) const {
  std::string text;
  for (const ExprPtr& part : parts) {
    const Value value = in.eval(*part);
    const size_t before = text.size();
    if (value.is_string()) {
      text += value.text();
    } else {
      text += to_text(value, in.budget());
    }
    if (text.size() > in.budget().max_text_bytes()) in.budget().charge_text(text.size());
    in.budget().charge((text.size() - before) / 16);
  }
  return Value::string(std::move(text));
}

Value CompareExpr::eval(Interpreter& in) const {
  Value left = in.eval(*first);
  for (const auto& [op, expr] : rest) {
    Value right = in.eval(*expr);
    if (!compare(op, left, right, in.budget())) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value ConditionalExpr::eval(Interpreter& in) const {
  if (is_true(in.eval(*test))) return in.eval(*then);
  if (otherwise != nullptr) return in.eval(*otherwise);
  return Value::undefined(fmt::format("the inline if on line {} was false and has no else", line));
}

Value AttributeExpr::eval(Interpreter& in) const {
  return in.attribute(in.eval(*object), name);
}

Value ItemExpr::eval(Interpreter& in) const {
  const Value container = in.eval(*object);
  return in.item(container, in.eval(*key));
}

Value SliceExpr::eval(Interpreter& in) const {
  const auto part = [&](const ExprPtr& expr) { return expr == nullptr ? Value() : in.eval(*expr); };
  const Value container = in.eval(*object);
  const Value from = part(start);
  const Value to = part(stop);
  return slice(container, from, to, part(step), in.budget());
}

Value CallExpr::eval(Interpreter& in) const {
  return call(in, nullptr);
}

Value CallExpr::call(Interpreter& in, const Value* caller) const {
  const Value function = in.eval(*callee);
  Arguments evaluated = in.evaluate(arguments);
  if (caller != nullptr) evaluated.named.emplace_back("caller", *caller);
  return in.call(function, evaluated);
}

Value FilterExpr::eval(Interpreter& in) const {
  if (filter == nullptr) throw Error(unknown_name_error("filter", name));
  const Value value = operand == nullptr ? in.filtered_text() : in.eval(*operand);
  return call_builtin(in, *filter, value, in.evaluate(arguments));
}

Value TestExpr::eval(Interpreter& in) const {
  if (test == nullptr) throw Error(unknown_name_error("test", name));
  const Value value = in.eval(*operand);
  const Value result = call_builtin(in, *test, value, in.evaluate(arguments));
  return Value::boolean(is_true(result) != is_negated);
}

}  // namespace tgi::jinja
