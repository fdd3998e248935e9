// Items: by place, the rest, counts, what some have to be.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "engine/guide/json/schema_reader.h"

namespace tgi::guide {
namespace {

constexpr std::array<const char*, 9> kArrayKeywords = {
    "prefixItems", "items",    "additionalItems", "contains",   "minContains",
    "maxContains", "minItems", "maxItems",        "uniqueItems"};

}  // namespace

void SchemaReader::limit_arrays(const SchemaPlace& schema, Alternatives& values) {
  const bool is_limited =
      std::any_of(kArrayKeywords.begin(), kArrayKeywords.end(),
                  [&](const char* keyword) { return schema.json->contains(keyword); });
  if (!is_limited) return;
  ArraySet set;
  read_items(schema, set);
  set.min_items = count(schema, "minItems").value_or(0);
  set.max_items = count(schema, "maxItems").value_or(kUnbounded);
  read_contains(schema, set);
  if (const OrderedJson* unique = member(schema, "uniqueItems")) {
    const std::string at = schema.path + "/uniqueItems";
    if (!unique->is_boolean()) {
      reject_schema(at, "expected true or false, got " + described_json(*unique));
    }
    if (unique->get<bool>()) set.unique_at = at;
  }
  // No place can hold more items than there are demands for.
  for (size_t i = 0; i < set.prefix.size(); ++i) {
    if (set.prefix[i] != kNothing) continue;
    const auto most = static_cast<int64_t>(i);
    set.max_items = set.max_items == kUnbounded ? most : std::min(set.max_items, most);
    break;
  }
  if (set.rest == kNothing) {
    const auto most = static_cast<int64_t>(set.prefix.size());
    set.max_items = set.max_items == kUnbounded ? most : std::min(set.max_items, most);
  }
  const bool is_possible = set.max_items == kUnbounded || set.min_items <= set.max_items;
  const ArraySet every;
  Alternatives limited;
  for (const JsonType type : kJsonTypes) {
    if (type != JsonType::kArray) {
      limited.push_back(every_value(type));
    } else if (is_possible) {
      limited.push_back(set == every ? every_value(type) : alternative_of(set));
    }
  }
  values = algebra_.both(values, limited, schema.path);
}

void SchemaReader::read_items(const SchemaPlace& schema, ArraySet& set) {
  const OrderedJson* prefix = member(schema, "prefixItems");
  const OrderedJson* items = member(schema, "items");
  const OrderedJson* rest = items;
  std::string prefix_at = schema.path + "/prefixItems";
  std::string rest_at = schema.path + "/items";
  if (items != nullptr && items->is_array()) {  // before 2020-12
    if (prefix != nullptr) {
      reject_schema(rest_at, "expected a schema beside prefixItems, got an array");
    }
    prefix = items;
    prefix_at = rest_at;
    rest = member(schema, "additionalItems");
    rest_at = schema.path + "/additionalItems";
  }
  if (prefix != nullptr) {
    if (!prefix->is_array()) {
      reject_schema(prefix_at, "expected an array of schemas, got " + described_json(*prefix));
    }
    for (size_t i = 0; i < prefix->size(); ++i) {
      set.prefix.push_back(subschema((*prefix)[i], prefix_at + "/" + std::to_string(i)));
    }
  }
  if (rest != nullptr) set.rest = subschema(*rest, rest_at);
  if (!document_.uses_unevaluated()) return;
  set.num_evaluated = set.prefix.size();
  set.all_evaluated = rest != nullptr;
}

void SchemaReader::read_contains(const SchemaPlace& schema, ArraySet& set) {
  const OrderedJson* json = member(schema, "contains");
  const std::string at = schema.path + "/contains";
  const int64_t min = count(schema, "minContains").value_or(1);
  const int64_t max = count(schema, "maxContains").value_or(kUnbounded);
  if (json == nullptr) return;
  const Demand item = subschema(*json, at);
  if (document_.uses_unevaluated() && schema.draft == Draft::k2020) {
    set.evaluated_kinds.push_back(item);
  }
  if (item == kAnything) {
    set.min_items = std::max(set.min_items, min);
    if (max != kUnbounded) {
      set.max_items = set.max_items == kUnbounded ? max : std::min(set.max_items, max);
    }
  } else if (item == kNothing) {
    if (min > 0) {
      set.min_items = 1;  // more than there can be
      set.max_items = 0;
    }
  } else if (min > 0 || max != kUnbounded) {
    set.contains.push_back({item, min, max, 0, at});
  }
}

}  // namespace tgi::guide
