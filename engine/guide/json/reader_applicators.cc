// Schemas beside each other, chosen between, negated, or on conditions.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/guide/json/schema_reader.h"

namespace tgi::guide {
namespace {

bool has_evaluated(const Alternatives& values) {
  return std::any_of(values.begin(), values.end(), [](const Alternative& value) {
    const ArraySet& array = value.array_set();
    const ObjectSet& object = value.object_set();
    return array.all_evaluated || array.num_evaluated > 0 || !array.evaluated_kinds.empty() ||
           object.all_evaluated || !object.evaluated_names.empty() || object.evaluated_patterns;
  });
}

const OrderedJson& expect_list(const OrderedJson& list, const std::string& at) {
  if (!list.is_array() || list.empty()) {
    reject_schema(at, "expected an array of schemas, got " +
                          (list.is_array() ? std::string("an empty one") : described_json(list)));
  }
  return list;
}

}  // namespace

void SchemaReader::apply_references(const SchemaPlace& schema, Alternatives& values) {
  for (const char* keyword : {"$ref", "$dynamicRef"}) {
    const OrderedJson* reference = member(schema, keyword);
    if (reference == nullptr) continue;
    const std::string at = schema.path + "/" + keyword;
    if (!reference->is_string()) {
      reject_schema(at, "expected a string, got " + described_json(*reference));
    }
    const SchemaPlace& target =
        document_.resolve(schema, reference->get<std::string>(), keyword[1] == 'd', at);
    const Demand demand = demands_.schema(target);
    if (demand == kAnything) continue;
    values = demand == kNothing
                 ? Alternatives()
                 : algebra_.both(values, literal(demands_.literals(demand).front()), at);
  }
}

Alternatives SchemaReader::meant(Demand demand) {
  const Alternatives& all = alternatives(demand);
  for (const DemandLiteral& part : demands_.literals(demand)) {
    const DemandNode& node = demands_.node(part);
    if (part.negated || node.kind != DemandNode::Kind::kSchema || tells_types(*node.place))
      return all;
  }
  return algebra_.as_meant(all);
}

// Also by a choice between schemas.
bool SchemaReader::tells_types(const SchemaPlace& schema, int depth) {
  constexpr int kMaxDepth = 8;
  if (depth > kMaxDepth || !schema.json->is_object()) return true;
  for (const char* keyword :
       {"type", "enum", "const", "anyOf", "oneOf", "not", "if", "nullable", "$dynamicRef"}) {
    if (member(schema, keyword) != nullptr) return true;
  }
  if (const OrderedJson* list = member(schema, "allOf"); list != nullptr) {
    for (const OrderedJson& each : *list)
      if (tells_types(document_.place_of(each), depth + 1)) return true;
  }
  const OrderedJson* const reference = member(schema, "$ref");
  if (reference == nullptr) return false;
  return tells_types(document_.resolve(schema, reference->get<std::string>(), /*dynamic=*/false,
                                       schema.path + "/$ref"),
                     depth + 1);
}

void SchemaReader::apply_all(const SchemaPlace& schema, Alternatives& values) {
  const OrderedJson* list = member(schema, "allOf");
  if (list == nullptr) return;
  const std::string at = schema.path + "/allOf";
  expect_list(*list, at);
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string path = at + "/" + std::to_string(i);
    values = algebra_.both(values, alternatives_of((*list)[i], path), path);
  }
}

void SchemaReader::apply_any(const SchemaPlace& schema, Alternatives& values) {
  const OrderedJson* list = member(schema, "anyOf");
  if (list == nullptr) return;
  const std::string at = schema.path + "/anyOf";
  expect_list(*list, at);
  const std::string* const tag = tag_of(schema);
  Alternatives result;
  for (size_t i = 0; i < list->size(); ++i) {
    Alternatives branch = alternatives_of((*list)[i], at + "/" + std::to_string(i));
    if (tag != nullptr) {
      branch = with_tag(std::move(branch), *tag, tag_values(schema, (*list)[i]));
    }
    // Several branches together have seen more members and items than each of them.
    Alternatives more = algebra_.both(values, branch, at);
    if (document_.uses_unevaluated() && has_evaluated(branch)) {
      algebra_.add(more, algebra_.both(result, branch, at), at);
    }
    algebra_.add(result, more, at);
  }
  values = std::move(result);
}

void SchemaReader::apply_one(const SchemaPlace& schema, Alternatives& values) {
  const OrderedJson* list = member(schema, "oneOf");
  if (list == nullptr) return;
  const std::string at = schema.path + "/oneOf";
  expect_list(*list, at);
  const std::string* const tag = tag_of(schema);
  std::vector<Alternatives> branches;
  std::vector<Alternatives> written;  // of each branch
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string path = at + "/" + std::to_string(i);
    branches.push_back(algebra_.both(values, alternatives_of((*list)[i], path), path));
    written.push_back(tag == nullptr
                          ? branches.back()
                          : with_tag(branches.back(), *tag, tag_values(schema, (*list)[i])));
  }
  try {
    values = one_of(written, branches, *list, at);
  } catch (const Error&) {
    if (!tell_apart(written, branches)) throw;
    values.clear();
    for (const Alternatives& branch : written) algebra_.add(values, branch, at);
  }
}

// What is written of one branch and is of no other.
Alternatives SchemaReader::one_of(const std::vector<Alternatives>& written,
                                  const std::vector<Alternatives>& branches,
                                  const OrderedJson& list,
                                  const std::string& at) {
  Alternatives result;
  for (size_t i = 0; i < branches.size(); ++i) {
    Alternatives only = written[i];
    for (size_t j = 0; j < branches.size() && !only.empty(); ++j) {
      if (j == i || algebra_.are_surely_disjoint(only, branches[j])) continue;
      const std::string path = at + "/" + std::to_string(j);
      only = without(only, alternatives_of(list[j], path), path);
    }
    algebra_.add(result, only, at);
  }
  return result;
}

void SchemaReader::apply_not(const SchemaPlace& schema, Alternatives& values) {
  const OrderedJson* json = member(schema, "not");
  if (json == nullptr) return;
  const std::string at = schema.path + "/not";
  values = without(values, alternatives_of(*json, at), at);
}

void SchemaReader::apply_condition(const SchemaPlace& schema, Alternatives& values) {
  const OrderedJson* json = member(schema, "if");
  const OrderedJson* then = member(schema, "then");
  const OrderedJson* otherwise = member(schema, "else");
  if (json == nullptr) return;
  const std::string at = schema.path + "/if";
  if (then == nullptr && otherwise == nullptr && !document_.uses_unevaluated()) return;
  const Alternatives& condition = alternatives_of(*json, at);
  Alternatives holds = algebra_.both(values, condition, at);
  Alternatives fails = without(values, condition, at);
  if (then != nullptr) {
    const std::string path = schema.path + "/then";
    holds = algebra_.both(holds, alternatives_of(*then, path), path);
  }
  if (otherwise != nullptr) {
    const std::string path = schema.path + "/else";
    fails = algebra_.both(fails, alternatives_of(*otherwise, path), path);
  }
  algebra_.add(holds, fails, at);
  values = std::move(holds);
}

// Objects with the member satisfy `then`.
void SchemaReader::depend_on(const std::string& name,
                             const Alternatives& then,
                             const std::string& at,
                             Alternatives& values) {
  ObjectSet with;
  with.add({name, kAnything, true});
  ObjectSet without;
  without.add({name, kNothing, false});
  Alternatives objects;
  Alternatives result;
  for (const Alternative& value : values) {
    (value.type == JsonType::kObject ? objects : result).push_back(value);
  }
  algebra_.add(result, algebra_.both(objects, {alternative_of(without)}, at), at);
  const Alternatives present = algebra_.both(objects, {alternative_of(with)}, at);
  algebra_.add(result, algebra_.both(present, then, at), at);
  values = std::move(result);
}

void SchemaReader::apply_dependencies(const SchemaPlace& schema, Alternatives& values) {
  for (const char* keyword : {"dependentRequired", "dependentSchemas", "dependencies"}) {
    const OrderedJson* dependencies = member(schema, keyword);
    if (dependencies == nullptr) continue;
    const std::string at = schema.path + "/" + keyword;
    if (!dependencies->is_object()) {
      reject_schema(at, "expected an object, got " + described_json(*dependencies));
    }
    for (auto entry = dependencies->begin(); entry != dependencies->end(); ++entry) {
      const std::string path = path_step(at, entry.key());
      if (!entry.value().is_array()) {
        if (keyword == std::string("dependentRequired")) {
          reject_schema(path, "expected an array of names, got " + described_json(entry.value()));
        }
        depend_on(entry.key(), alternatives_of(entry.value(), path), path, values);
        continue;
      }
      ObjectSet set;
      for (const OrderedJson& name : entry.value()) {
        if (!name.is_string()) reject_schema(path, "expected names, got " + described_json(name));
        const std::string text = name.get<std::string>();
        if (set.find(text) == nullptr) set.add({text, kAnything, true});
      }
      if (!set.properties().empty()) {
        depend_on(entry.key(), {alternative_of(std::move(set))}, path, values);
      }
    }
  }
}

void SchemaReader::evaluate_rest(Demand demand, Alternative& value) {
  if (value.object_set().all_evaluated) return;
  ObjectSet set = value.object_set();
  for (size_t i = 0; i < set.properties().size(); ++i) {
    Property& property = set.property(i);
    const bool is_evaluated =
        set.evaluated_names.count(property.name) > 0 ||
        (set.evaluated_patterns && pool_.matches(*set.evaluated_patterns, property.name));
    if (!is_evaluated) property.value = demands_.both(property.value, demand);
  }
  std::vector<NameClass> classes;
  for (const NameClass& names : algebra_.classes_of(set)) {
    Regex others = names.names;
    if (set.evaluated_patterns) {
      const Regex inside = pool_.both(names.names, *set.evaluated_patterns);
      others = pool_.without(names.names, *set.evaluated_patterns);
      if (!pool_.is_empty(inside)) {
        classes.push_back({inside, names.value, names.is_described});
      }
      if (pool_.is_empty(others)) continue;
    }
    classes.push_back({others, demands_.both(names.value, demand)});
  }
  set.classes = std::move(classes);
  set.all_evaluated = true;
  value = alternative_of(std::move(set));
}

void SchemaReader::evaluate_items(Demand demand, Alternative& value) {
  if (value.array_set().all_evaluated) return;
  ArraySet set = value.array_set();
  std::vector<Demand> kinds = set.evaluated_kinds;
  kinds.push_back(demand);
  const Demand item = demands_.any_of(std::move(kinds));
  while (set.prefix.size() < set.num_evaluated) set.prefix.push_back(set.rest);
  for (size_t i = set.num_evaluated; i < set.prefix.size(); ++i) {
    set.prefix[i] = demands_.both(set.prefix[i], item);
  }
  set.rest = demands_.both(set.rest, item);
  set.all_evaluated = true;
  value = alternative_of(std::move(set));
}

void SchemaReader::apply_unevaluated(const SchemaPlace& schema, Alternatives& values) {
  const OrderedJson* members = member(schema, "unevaluatedProperties");
  const OrderedJson* items = member(schema, "unevaluatedItems");
  if (members == nullptr && items == nullptr) return;
  for (Alternative& value : values) {
    if (members != nullptr && value.type == JsonType::kObject) {
      evaluate_rest(subschema(*members, schema.path + "/unevaluatedProperties"), value);
    }
    if (items != nullptr && value.type == JsonType::kArray) {
      evaluate_items(subschema(*items, schema.path + "/unevaluatedItems"), value);
    }
  }
  SetAlgebra::drop_impossible(values);
}

}  // namespace tgi::guide
