#include "engine/guide/json/schema_printer.h"

#include <algorithm>

namespace tgi::guide {
namespace {

constexpr size_t kFewValues = 16;

bool is_structured(const Alternative& value) {
  return value.type == JsonType::kArray || value.type == JsonType::kObject;
}

// Small enough to be written at every place it is used.
bool is_small(const Alternative& value) {
  if (is_structured(value)) return false;
  if (value.type == JsonType::kString) {
    return value.is_every() || (value.string.finite && value.string.finite->size() <= kFewValues);
  }
  return value.type != JsonType::kNumber || value.number.moduli.empty();
}

}  // namespace

SchemaPrinter::SchemaPrinter(Grammar& grammar,
                             SchemaReader& reader,
                             const JsonSchemaOptions& options)
    : grammar_(grammar),
      reader_(reader),
      json_(grammar, options),
      closes_objects_(options.closes_objects),
      item_texts_(grammar, reader, json_, options.closes_objects) {}

Rule SchemaPrinter::print(Demand demand) {
  const Rule root = grammar_.declare("#");
  const Expr body = value(demand);
  while (num_printed_ < entries_.size()) {
    const Entry entry = entries_[num_printed_++];
    try {
      grammar_.define(entry.rule, any_of(written(entry.demand)));
    } catch (const Error& error) {
      throw with_place(error, reader_.demands().path(entry.demand));
    }
  }
  check_satisfied(demand);
  grammar_.define(root, body);
  return root;
}

Expr SchemaPrinter::value(Demand demand) {
  if (demand == kAnything) return json_.value();
  if (demand == kNothing) return grammar_.nothing();
  if (const auto known = scalars_.find(demand); known != scalars_.end()) return known->second;
  if (const auto known = known_.find(demand); known != known_.end()) {
    return grammar_.call(entries_[known->second].rule);
  }
  const Alternatives choices = written(demand);
  if (std::all_of(choices.begin(), choices.end(), is_small)) {
    return scalars_.emplace(demand, any_of(choices)).first->second;
  }
  const Rule rule = grammar_.declare(reader_.demands().path(demand));
  known_.emplace(demand, entries_.size());
  entries_.push_back({demand, rule, false});
  return grammar_.call(rule);
}

Alternatives SchemaPrinter::written(Demand demand) {
  return closes_objects_ ? reader_.meant(demand) : reader_.alternatives(demand);
}

Expr SchemaPrinter::any_of(const Alternatives& values) {
  std::vector<Expr> choices;
  for (const Alternative& value : values) choices.push_back(alternative(value));
  return grammar_.either(choices);
}

Expr SchemaPrinter::alternative(const Alternative& value) {
  switch (value.type) {
    case JsonType::kNull:
      return grammar_.text(json_.null_word());
    case JsonType::kBoolean: {
      std::vector<Expr> choices;
      if (value.can_be_true) choices.push_back(grammar_.text(json_.true_word()));
      if (value.can_be_false) choices.push_back(grammar_.text(json_.false_word()));
      return grammar_.either(choices);
    }
    case JsonType::kNumber:
      return reader_.algebra().numbers.print(grammar_, value.number);
    case JsonType::kString:
      return reader_.algebra().strings.print(grammar_, value.string, json_.quotes());
    case JsonType::kArray:
      return value.array ? array(*value.array) : json_.array();
    case JsonType::kObject:
      return value.object ? object(*value.object) : json_.object();
  }
  return grammar_.nothing();
}

bool SchemaPrinter::has_value(Demand demand) const {
  if (demand == kAnything) return true;
  if (demand == kNothing) return false;
  const auto known = known_.find(demand);
  if (known != known_.end() && entries_[known->second].has_value) return true;
  // Only small ones and what no rule needed to be written for are not in the list.
  return known == known_.end() && !reader_.alternatives(demand).empty();
}

bool SchemaPrinter::has_value(const Alternative& value) const {
  SetAlgebra& algebra = reader_.algebra();
  if (value.type == JsonType::kNumber) return !algebra.numbers.is_surely_empty(value.number);
  if (value.type == JsonType::kString) return !algebra.strings.is_empty(value.string);
  const ArraySet& items = value.array_set();
  const auto least = static_cast<size_t>(items.min_items);
  for (size_t i = 0; i < std::min(items.prefix.size(), least); ++i) {
    if (!has_value(items.prefix[i])) return false;
  }
  if (least > items.prefix.size() && !has_value(items.rest)) return false;
  const std::vector<Property>& members = value.object_set().properties();
  return std::all_of(members.begin(), members.end(),
                     [&](const Property& p) { return !p.required || has_value(p.value); });
}

// A recursive schema may need a value of itself for ever: found by looking until nothing is new.
void SchemaPrinter::check_satisfied(Demand root) {
  for (bool is_new = true; is_new;) {
    is_new = false;
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
      if (entry->has_value) continue;
      const Alternatives& choices = reader_.alternatives(entry->demand);
      entry->has_value = std::any_of(choices.begin(), choices.end(),
                                     [&](const Alternative& choice) { return has_value(choice); });
      is_new = is_new || entry->has_value;
    }
  }
  if (has_value(root)) return;
  std::string why = "no value satisfies the schema";
  for (const Alternative& choice : reader_.alternatives(root)) {
    for (const Property& member : choice.object_set().properties()) {
      if (member.required && !has_value(member.value)) {
        why += ": member " + quoted_json(member.name) + " is required, and no value satisfies " +
               reader_.demands().path(member.value);
        reject_schema(reader_.demands().path(root), why);
      }
    }
  }
  reject_schema(reader_.demands().path(root), why);
}

}  // namespace tgi::guide
