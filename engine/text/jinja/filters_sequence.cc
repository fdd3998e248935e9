#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/text/jinja/filters.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/print.h"

namespace tgi::jinja {
namespace {

Value filter_list(Interpreter& in, const Value& value, const Bound&) {
  return Value::list(to_vector(value, in.budget()));
}

Value filter_first(Interpreter& in, const Value& value, const Bound&) {
  Iteration source(value, in.budget());
  Value first;
  return source.next(first) ? first : Value::undefined("no first item, sequence was empty");
}

void require_reversible(const Value& value) {
  if (value.is(Type::kIterator) || !is_iterable(value)) {
    fail(fmt::format("'{}' object is not reversible", type_name(value)));
  }
}

Value filter_last(Interpreter& in, const Value& value, const Bound&) {
  require_reversible(value);
  if (value.is_sequence() && !value.items().empty()) return value.items().back();
  const std::vector<Value> items = to_vector(value, in.budget());
  return items.empty() ? Value::undefined("no last item, sequence was empty") : items.back();
}

Value filter_reverse(Interpreter& in, const Value& value, const Bound&) {
  if (value.is_string()) {
    return slice(value, Value(), Value(), Value::integer(-1), in.budget());
  }
  std::vector<Value> items = to_vector(value, in.budget());
  std::reverse(items.begin(), items.end());
  if (value.is(Type::kIterator)) return Value::list(std::move(items));
  return Value::iterator("reversed object", std::move(items));
}

Value filter_join(Interpreter& in, const Value& value, const Bound& arguments) {
  const std::string separator = arguments.has(0) ? to_text(arguments[0], in.budget()) : "";
  const AttributePath path(arguments[1]);
  Iteration source(value, in.budget());
  std::string text;
  Value item;
  for (bool is_first = true; source.next(item); is_first = false) {
    if (!is_first) text += separator;
    text += to_text(path.get(in, item), in.budget());
    if (text.size() > in.budget().max_text_bytes()) in.budget().charge_text(text.size());
    in.budget().charge(1 + separator.size() / 16);
  }
  in.budget().charge_text(text.size());
  return Value::string(std::move(text));
}

Value filter_items(Interpreter& in, const Value& value, const Bound&) {
  if (value.is_undefined()) return Value::iterator("generator object do_items", {});
  if (!value.is(Type::kDict)) fail("can only get item pairs from a mapping");
  const Value view = Value::from(std::make_shared<DictViewObject>(DictViewKind::kItems, value));
  return Value::iterator("generator object do_items", to_vector(view, in.budget()));
}

Value filter_batch(Interpreter& in, const Value& value, const Bound& arguments) {
  const Int size = arguments.integer(0);
  const Value& fill = arguments[1];
  std::vector<Value> batches;
  std::vector<Value> batch;
  for (Value& item : to_vector(value, in.budget())) {
    // As jinja2 does: a size of 0 gives an empty batch first, and is never reached again.
    if (static_cast<Int>(batch.size()) == size) {
      batches.push_back(Value::list(std::exchange(batch, {})));
    }
    batch.push_back(std::move(item));
  }
  if (!batch.empty()) {
    if (!fill.is_none() && static_cast<Int>(batch.size()) < size) {
      const Int missing = std::min<Int>(size - static_cast<Int>(batch.size()), Int{1} << 40);
      in.budget().charge_elements(static_cast<size_t>(missing));
      batch.resize(batch.size() + static_cast<size_t>(missing), fill);
    }
    batches.push_back(Value::list(std::move(batch)));
  }
  return Value::iterator("generator object do_batch", std::move(batches));
}

Value filter_slice(Interpreter& in, const Value& value, const Bound& arguments) {
  const Int num_slices = arguments.integer(0);
  if (num_slices == 0) fail("slice(): division by zero");
  const std::vector<Value> items = to_vector(value, in.budget());
  std::vector<Value> slices;
  size_t start = 0;
  for (Int i = 0; i < num_slices; ++i) {
    in.budget().charge(4);
    const auto size = static_cast<Int>(items.size());
    const bool has_extra = i < size % num_slices;
    const auto end = start + static_cast<size_t>(size / num_slices) + (has_extra ? 1 : 0);
    std::vector<Value> part(items.begin() + static_cast<std::ptrdiff_t>(start),
                            items.begin() + static_cast<std::ptrdiff_t>(end));
    if (!arguments[1].is_none() && !has_extra) part.push_back(arguments[1]);
    slices.push_back(Value::list(std::move(part)));
    start = end;
  }
  return Value::iterator("generator object do_slice", std::move(slices));
}

Value filter_sum(Interpreter& in, const Value& value, const Bound& arguments) {
  const AttributePath path(arguments[0]);
  Value total = arguments.has(1) ? arguments[1] : Value::integer(0);
  if (total.is_string()) fail("sum() can't sum strings");
  Iteration source(value, in.budget());
  Value item;
  while (source.next(item)) {
    total = binary(BinaryOp::kAdd, std::move(total), path.get(in, item), in.budget());
  }
  return total;
}

constexpr std::array<Builtin, 9> kSequenceFilters = {{
    {.name = "list", .call = &filter_list},
    {.name = "first", .call = &filter_first},
    {.name = "last", .call = &filter_last},
    {.name = "reverse", .call = &filter_reverse},
    {.name = "join", .call = &filter_join, .parameters = {"d", "attribute"}},
    {.name = "items", .call = &filter_items},
    {.name = "batch",
     .call = &filter_batch,
     .num_required = 1,
     .parameters = {"linecount", "fill_with"}},
    {.name = "slice",
     .call = &filter_slice,
     .num_required = 1,
     .parameters = {"slices", "fill_with"}},
    {.name = "sum", .call = &filter_sum, .parameters = {"attribute", "start"}},
}};

}  // namespace

std::span<const Builtin> sequence_filters() {
  return kSequenceFilters;
}

}  // namespace tgi::jinja
