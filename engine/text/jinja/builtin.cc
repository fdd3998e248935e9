#include "engine/text/jinja/builtin.h"

#include <fmt/format.h>

#include "engine/text/jinja/operators.h"

namespace tgi::jinja {
namespace {

size_t num_parameters(const Builtin& function) {
  size_t count = 0;
  while (count < kMaxParameters && !function.parameters[count].empty()) ++count;
  return count;
}

void bind_named(const Builtin& function, const Arguments& arguments, Bound& bound) {
  for (const auto& [name, value] : arguments.named) {
    size_t i = 0;
    while (i < num_parameters(function) && function.parameters[i] != name) ++i;
    if (i == num_parameters(function)) {
      fail(fmt::format("{}() got an unexpected argument '{}'", function.name, name));
    }
    if (bound.has(i)) {
      fail(fmt::format("{}() got two values for the argument '{}'", function.name, name));
    }
    bound.values[i] = &value;
  }
}

}  // namespace

const Value& Bound::operator[](size_t i) const {
  static const Value kNone;
  return has(i) ? *values[i] : kNone;
}

const std::string& Bound::text(size_t i) const {
  const Value& value = (*this)[i];
  if (!value.is_string()) {
    require_defined(value);
    fail(fmt::format("{}() wants a string as argument {}, got {}", name, i + 1, type_name(value)));
  }
  return value.text();
}

Int Bound::integer(size_t i) const {
  const Value& value = (*this)[i];
  if (!value.is_integral()) {
    require_defined(value);
    fail(
        fmt::format("{}() wants an integer as argument {}, got {}", name, i + 1, type_name(value)));
  }
  return value.as_int();
}

Int Bound::integer_or(size_t i, Int fallback) const {
  return has(i) ? integer(i) : fallback;
}

bool Bound::flag_or(size_t i, bool fallback) const {
  return has(i) ? is_true(*values[i]) : fallback;
}

Value call_builtin(Interpreter& in,
                   const Builtin& function,
                   const Value& self,
                   const Arguments& arguments) {
  Bound bound(arguments);
  bound.name = function.name;
  if (function.is_variadic) return function.call(in, self, bound);
  const size_t count = num_parameters(function);
  if (arguments.positional.size() > count) {
    fail(fmt::format("{}() takes at most {} arguments, got {}", function.name, count,
                     arguments.positional.size()));
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    bound.values[i] = &arguments.positional[i];
  }
  bind_named(function, arguments, bound);
  for (size_t i = 0; i < function.num_required; ++i) {
    if (!bound.has(i)) {
      fail(fmt::format("{}() is missing the argument '{}'", function.name,
                       function.parameters[i].substr(function.parameters[i][0] == '/' ? 1 : 0)));
    }
  }
  return function.call(in, self, bound);
}

}  // namespace tgi::jinja
