// Filters that look at each element by a key, a test or another filter.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja/filters.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/text.h"

namespace tgi::jinja {
namespace {

// What elements are compared by: strings without regard to case unless asked for.
Value without_case(const Value& value, bool is_case_sensitive, Budget& budget) {
  if (is_case_sensitive || !value.is_string()) return value;
  budget.charge_text(value.text().size());
  return Value::string(to_lower(value.text()));
}

struct Keyed {
  Value key;
  Value value;
};

void sort_by_key(std::vector<Keyed>& items, bool is_reversed, Budget& budget) {
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& left, const Keyed& right) {
    return is_reversed ? less(right.key, left.key, budget) : less(left.key, right.key, budget);
  });
}

std::vector<Value> values_of(std::vector<Keyed> items) {
  std::vector<Value> values;
  values.reserve(items.size());
  for (Keyed& item : items) values.push_back(std::move(item.value));
  return values;
}

// "a,b" sorts by a, then by b.
std::vector<AttributePath> sort_paths(const Value& attribute) {
  std::vector<AttributePath> paths;
  if (!attribute.is_string()) return {AttributePath(attribute)};
  std::string_view rest = attribute.text();
  while (true) {
    const size_t comma = std::min(rest.find(','), rest.size());
    paths.emplace_back(Value::string(std::string(rest.substr(0, comma))));
    if (comma == rest.size()) return paths;
    rest.remove_prefix(comma + 1);
  }
}

Value filter_sort(Interpreter& in, const Value& value, const Bound& arguments) {
  const std::vector<AttributePath> paths = sort_paths(arguments[2]);
  const bool is_case_sensitive = arguments.flag_or(1, false);
  std::vector<Keyed> items;
  for (Value& item : to_vector(value, in.budget())) {
    std::vector<Value> key;
    for (const AttributePath& path : paths) {
      key.push_back(without_case(path.get(in, item), is_case_sensitive, in.budget()));
    }
    items.push_back({Value::list(std::move(key)), std::move(item)});
  }
  sort_by_key(items, arguments.flag_or(0, false), in.budget());
  return Value::list(values_of(std::move(items)));
}

Value filter_dictsort(Interpreter& in, const Value& value, const Bound& arguments) {
  require_defined(value);
  if (!value.is(Type::kDict))
    fail(fmt::format("dictsort() wants a dict, got {}", type_name(value)));
  const bool is_case_sensitive = arguments.flag_or(0, false);
  const std::string by = arguments.has(1) ? arguments.text(1) : "key";
  if (by != "key" && by != "value") fail("dictsort(): can only sort by 'key' or 'value'");
  std::vector<Keyed> items;
  in.budget().charge_elements(value.dict().entries.size());
  for (const auto& entry : value.dict().entries) {
    items.push_back(
        {without_case(by == "key" ? entry.key : entry.value, is_case_sensitive, in.budget()),
         Value::tuple({entry.key, entry.value})});
  }
  sort_by_key(items, arguments.flag_or(2, false), in.budget());
  return Value::list(values_of(std::move(items)));
}

Value filter_unique(Interpreter& in, const Value& value, const Bound& arguments) {
  const bool is_case_sensitive = arguments.flag_or(0, false);
  const AttributePath path(arguments[1]);
  DictObject seen;
  std::vector<Value> kept;
  for (Value& item : to_vector(value, in.budget())) {
    const Value key = without_case(path.get(in, item), is_case_sensitive, in.budget());
    if (seen.find(key, in.budget()) != nullptr) continue;
    seen.set(key, Value(), in.budget());
    kept.push_back(std::move(item));
  }
  return Value::iterator("generator object do_unique", std::move(kept));
}

template <CompareOp wins>
Value filter_extreme(Interpreter& in, const Value& value, const Bound& arguments) {
  const bool is_case_sensitive = arguments.flag_or(0, false);
  const AttributePath path(arguments[1]);
  Iteration source(value, in.budget());
  Value best;
  if (!source.next(best)) return Value::undefined("no aggregated item, sequence was empty");
  Value best_key = without_case(path.get(in, best), is_case_sensitive, in.budget());
  Value item;
  while (source.next(item)) {
    Value key = without_case(path.get(in, item), is_case_sensitive, in.budget());
    if (!compare(wins, key, best_key, in.budget())) continue;
    best = item;
    best_key = std::move(key);
  }
  return best;
}

Value filter_groupby(Interpreter& in, const Value& value, const Bound& arguments) {
  const AttributePath path(arguments[0]);
  const Value& fallback = arguments[1];
  const bool is_case_sensitive = arguments.flag_or(2, false);
  std::vector<Keyed> items;
  for (Value& item : to_vector(value, in.budget())) {
    const Value key = path.get(in, item, fallback);
    items.push_back({without_case(key, is_case_sensitive, in.budget()), std::move(item)});
  }
  sort_by_key(items, false, in.budget());
  std::vector<Value> groups;
  for (size_t start = 0; start < items.size();) {
    size_t end = start;
    std::vector<Value> group;
    while (end < items.size() && equal(items[end].key, items[start].key, in.budget())) {
      group.push_back(items[end++].value);
    }
    if (end == start) group.push_back(items[end++].value);  // nan equals nothing, itself included
    const Value key = is_case_sensitive ? items[start].key : path.get(in, group[0], fallback);
    groups.push_back(Value::group(key, Value::list(std::move(group))));
    start = end;
  }
  return Value::list(std::move(groups));
}

// The arguments behind the first `count`, which belong to the filter or test that is named there.
Arguments arguments_behind(const Arguments& all, size_t count, Budget& budget) {
  budget.charge_elements(all.positional.size() + all.named.size());
  const auto first =
      all.positional.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.positional.size()));
  return {{first, all.positional.end()}, all.named};
}

Value map_attribute(Interpreter& in, const Value& value, const Arguments& arguments) {
  Value attribute;
  Value fallback;
  for (const auto& [name, argument] : arguments.named) {
    if (name == "attribute") {
      attribute = argument;
    } else if (name == "default") {
      fallback = argument;
    } else {
      fail(fmt::format("map() got an unexpected argument '{}'", name));
    }
  }
  const AttributePath path(attribute);
  std::vector<Value> mapped;
  for (Value& item : to_vector(value, in.budget())) {
    mapped.push_back(path.get(in, std::move(item), fallback));
  }
  return Value::iterator("generator object do_map", std::move(mapped));
}

Value filter_map(Interpreter& in, const Value& value, const Bound& arguments) {
  if (!is_true(value)) return Value::iterator("generator object do_map", {});
  const auto& named = arguments.all.named;
  const bool by_attribute = std::any_of(named.begin(), named.end(), [](const auto& argument) {
    return argument.first == "attribute";
  });
  if (arguments.all.positional.empty() && by_attribute) {
    return map_attribute(in, value, arguments.all);
  }
  if (arguments.all.positional.empty()) fail("map() wants the name of a filter");
  const Arguments rest = arguments_behind(arguments.all, 1, in.budget());
  std::vector<Value> mapped;
  for (const Value& item : to_vector(value, in.budget())) {
    mapped.push_back(in.call_filter(arguments.all.positional[0], item, rest));
  }
  return Value::iterator("generator object do_map", std::move(mapped));
}

template <bool keeps, bool by_attribute>
Value filter_select(Interpreter& in, const Value& value, const Bound& arguments) {
  if (!is_true(value)) return Value::iterator("generator object do_select", {});
  const auto& given = arguments.all.positional;
  const size_t name = by_attribute ? 1 : 0;
  if (given.size() < name) fail(fmt::format("{}() wants the name of an attribute", arguments.name));
  const AttributePath path(by_attribute ? given[0] : Value());
  const Arguments rest = arguments_behind(arguments.all, name + 1, in.budget());
  std::vector<Value> kept;
  for (Value& item : to_vector(value, in.budget())) {
    const Value looked_at = path.get(in, item);
    const bool holds =
        given.size() > name ? in.call_test(given[name], looked_at, rest) : is_true(looked_at);
    if (holds == keeps) kept.push_back(std::move(item));
  }
  return Value::iterator("generator object do_select", std::move(kept));
}

constexpr std::array<Builtin, 11> kSelectFilters = {{
    {.name = "sort",
     .call = &filter_sort,
     .parameters = {"reverse", "case_sensitive", "attribute"}},
    {.name = "dictsort",
     .call = &filter_dictsort,
     .parameters = {"case_sensitive", "by", "reverse"}},
    {.name = "unique", .call = &filter_unique, .parameters = {"case_sensitive", "attribute"}},
    {.name = "min",
     .call = &filter_extreme<CompareOp::kLess>,
     .parameters = {"case_sensitive", "attribute"}},
    {.name = "max",
     .call = &filter_extreme<CompareOp::kGreater>,
     .parameters = {"case_sensitive", "attribute"}},
    {.name = "groupby",
     .call = &filter_groupby,
     .num_required = 1,
     .parameters = {"attribute", "default", "case_sensitive"}},
    {.name = "map", .call = &filter_map, .is_variadic = true},
    {.name = "select", .call = &filter_select<true, false>, .is_variadic = true},
    {.name = "reject", .call = &filter_select<false, false>, .is_variadic = true},
    {.name = "selectattr", .call = &filter_select<true, true>, .is_variadic = true},
    {.name = "rejectattr", .call = &filter_select<false, true>, .is_variadic = true},
}};

}  // namespace

std::span<const Builtin> select_filters() {
  return kSelectFilters;
}

}  // namespace tgi::jinja
