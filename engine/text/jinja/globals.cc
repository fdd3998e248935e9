#include "engine/text/jinja/globals.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <vector>

#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/print.h"

namespace tgi::jinja {
namespace {

int64_t range_bound(const Bound& arguments, size_t i) {
  const Int value = arguments.integer(i);
  if (value > INT64_MAX || value < INT64_MIN) fail("a bound of range() is too large");
  return static_cast<int64_t>(value);
}

Value make_range(Interpreter& in, const Value&, const Bound& arguments) {
  const bool only_stop = !arguments.has(1);
  const int64_t start = only_stop ? 0 : range_bound(arguments, 0);
  const int64_t stop = range_bound(arguments, only_stop ? 0 : 1);
  const int64_t step = arguments.has(2) ? range_bound(arguments, 2) : 1;
  if (step == 0) fail("range() step must not be zero");
  auto range = std::make_shared<RangeObject>(start, stop, step);
  if (range->length > static_cast<int64_t>(in.limits().max_range)) {
    fail(fmt::format("range() has {} elements: at most {} are allowed", range->length,
                     in.limits().max_range));
  }
  return Value::from(std::move(range));
}

// What dict(...) and namespace(...) make of their arguments: a mapping or pairs, then names.
DictObject collect_entries(Interpreter& in, const Bound& arguments) {
  DictObject dict;
  const auto& positional = arguments.all.positional;
  if (positional.size() > 1) fail(fmt::format("{}() takes at most 1 argument", arguments.name));
  if (!positional.empty()) {
    require_defined(positional[0]);
    const bool is_dict = positional[0].is(Type::kDict);
    if (is_dict) {
      for (const auto& entry : positional[0].dict().entries) {
        dict.set(entry.key, entry.value, in.budget());
      }
    }
    for (const Value& item :
         is_dict ? std::vector<Value>() : to_vector(positional[0], in.budget())) {
      const std::vector<Value> pair = to_vector(item, in.budget());
      if (pair.size() != 2) fail(fmt::format("{}() wants pairs", arguments.name));
      dict.set(pair[0], pair[1], in.budget());
    }
  }
  for (const auto& [name, value] : arguments.all.named) {
    dict.set(Value::string(name), value, in.budget());
  }
  return dict;
}

Value make_dict(Interpreter& in, const Value&, const Bound& arguments) {
  return Value::dict(collect_entries(in, arguments));
}

Value make_namespace(Interpreter& in, const Value&, const Bound& arguments) {
  std::vector<std::pair<std::string, Value>> attributes;
  for (auto& entry : collect_entries(in, arguments).entries) {
    if (!entry.key.is_string()) fail("names in a namespace must be strings");
    attributes.emplace_back(entry.key.text(), std::move(entry.value));
  }
  return in.make_namespace(std::move(attributes));
}

Value make_cycler(Interpreter&, const Value&, const Bound& arguments) {
  if (arguments.all.positional.empty()) fail("cycler(): at least one item has to be provided");
  return Value::from(std::make_shared<CyclerObject>(arguments.all.positional));
}

Value make_joiner(Interpreter&, const Value&, const Bound& arguments) {
  return Value::from(
      std::make_shared<JoinerObject>(arguments.has(0) ? arguments[0] : Value::string(", ")));
}

Value raise_exception(Interpreter& in, const Value&, const Bound& arguments) {
  raise_from_template(to_text(arguments[0], in.budget()));
}

Value strftime_now(Interpreter& in, const Value&, const Bound& arguments) {
  return Value::string(format_time(in.local_time(), arguments.text(0), in.budget()));
}

Value lipsum(Interpreter&, const Value&, const Bound&) {
  fail_unsupported("lipsum() is not supported: a chat template must not be random");
}

constexpr std::array<Builtin, 8> kGlobals = {{
    {.name = "range",
     .call = &make_range,
     .num_required = 1,
     .parameters = {"/start", "/stop", "/step"}},
    {.name = "dict", .call = &make_dict, .is_variadic = true},
    {.name = "namespace", .call = &make_namespace, .is_variadic = true},
    {.name = "cycler", .call = &make_cycler, .is_variadic = true},
    {.name = "joiner", .call = &make_joiner, .parameters = {"sep"}},
    {.name = "raise_exception",
     .call = &raise_exception,
     .num_required = 1,
     .parameters = {"message"}},
    {.name = "strftime_now", .call = &strftime_now, .num_required = 1, .parameters = {"format"}},
    {.name = "lipsum", .call = &lipsum, .is_variadic = true},
}};

}  // namespace

const Builtin* find_global(std::string_view name) {
  return find_row(kGlobals, name);
}

void set_namespace_attribute(NamespaceObject& space, const std::string& name, Value value) {
  if (!name.empty() && name[0] == '_') {
    fail(
        fmt::format("a namespace can't have the attribute '{}': names must not begin with an "
                    "underscore",
                    name));
  }
  for (auto& [known, old_value] : space.attributes) {
    if (known != name) continue;
    old_value = std::move(value);
    return;
  }
  space.attributes.emplace_back(name, std::move(value));
}

std::string format_time(const std::tm& time, std::string_view format, Budget& budget) {
  std::string result;
  for (size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%' || at + 1 >= format.size()) {
      result += format[at];
      continue;
    }
    std::string directive = "%";
    directive += format[++at];
    // GNU flags: %-d, %_d, %0d, %^a, %#a.
    while (std::string_view("-_0^#").find(format[at]) != std::string_view::npos &&
           at + 1 < format.size()) {
      directive += format[++at];
    }
    switch (directive.back()) {
      case 'f':
        result += "000000";
        break;
      case 'z':
      case 'Z':
        break;  // a time without zone
      default: {
        std::array<char, 128> buffer{};
        result.append(buffer.data(),
                      std::strftime(buffer.data(), buffer.size(), directive.c_str(), &time));
      }
    }
    budget.charge_text(result.size());
  }
  return result;
}

}  // namespace tgi::jinja
