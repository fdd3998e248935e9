// A function of the language as a row of a table: filters, tests, methods of strings and dicts,
// globals. Arguments are put into the order of `parameters` before the call, so that the functions
// never look at names.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/text/jinja/value.h"

namespace tgi::jinja {

class Interpreter;

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

inline constexpr size_t kMaxParameters = 6;

// The arguments of one call, by the number of their parameter.
class Bound {
 public:
  explicit Bound(const Arguments& arguments) : all(arguments) {}

  bool has(size_t i) const { return values[i] != nullptr; }
  // The argument, or None when it was not given.
  const Value& operator[](size_t i) const;

  // Each throws kInvalidArgument when the argument has another type.
  const std::string& text(size_t i) const;
  Int integer(size_t i) const;
  // These give `fallback` when the argument was not given.
  Int integer_or(size_t i, Int fallback) const;
  bool flag_or(size_t i, bool fallback) const;  // by truth, not by type

  const Arguments& all;   // as they were given; what a variadic function looks at
  std::string_view name;  // of the function
  std::array<const Value*, kMaxParameters> values{};
};

struct Builtin {
  std::string_view name;
  // `self`: what the filter, test or method applies to; None for a global function.
  Value (*call)(Interpreter& in, const Value& self, const Bound& arguments) = nullptr;
  size_t num_required = 0;
  // A name that begins with a slash can't be given by name.
  std::array<std::string_view, kMaxParameters> parameters{};
  bool is_variadic = false;  // takes whatever it is given, in `all`
};

// Throws kInvalidArgument for missing, surplus and unknown arguments.
Value call_builtin(Interpreter& in,
                   const Builtin& function,
                   const Value& self,
                   const Arguments& arguments);

// The row called `name`, or null.
template <typename Table>
const Builtin* find_row(const Table& table, std::string_view name) {
  for (const Builtin& row : table) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace tgi::jinja
