// Members that tell the branches of a choice apart. Programs that read the answer look at such a
// member first, OpenAPI's discriminator, and refuse values without it, although to JSON Schema they
// would be of one branch. Whatever is demanded here takes values out and lets none in.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/guide/json/schema_reader.h"

namespace tgi::guide {
namespace {

const std::string* text_of(const OrderedJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string()
             ? found->get_ptr<const OrderedJson::string_t*>()
             : nullptr;
}

bool lists_member(const Alternatives& branch, const std::string& name) {
  return std::ranges::all_of(branch, [&](const Alternative& value) {
    if (value.type != JsonType::kObject) return true;
    const Property* const property = value.object_set().find(name);
    return property != nullptr && property->value != kNothing;
  });
}

}  // namespace

const std::string* SchemaReader::tag_of(const SchemaPlace& schema) const {
  const OrderedJson* const how = member(schema, "discriminator");
  return how != nullptr && how->is_object() ? text_of(*how, "propertyName") : nullptr;
}

// The values that `mapping` has for the branch, else the name of the schema it refers to.
Demand SchemaReader::tag_values(const SchemaPlace& schema, const OrderedJson& branch) {
  const std::string* const reference = branch.is_object() ? text_of(branch, "$ref") : nullptr;
  if (reference == nullptr) return kAnything;
  const std::string name = reference->substr(reference->rfind('/') + 1);
  std::vector<Demand> values;
  const OrderedJson& how = *member(schema, "discriminator");
  const auto constant = [&](const std::string& text) {
    made_.emplace_back(text);
    values.push_back(demands_.constant(made_.back()));
  };
  const auto mapping = how.find("mapping");
  if (mapping != how.end() && mapping->is_object()) {
    for (auto entry = mapping->begin(); entry != mapping->end(); ++entry) {
      if (entry.value() == *reference || entry.value() == name) constant(entry.key());
    }
  }
  if (values.empty()) constant(name);
  return demands_.any_of(std::move(values));
}

// Objects have the member; with one of `values` where the branch lets it.
Alternatives SchemaReader::with_tag(Alternatives branch, const std::string& name, Demand values) {
  for (Alternative& value : branch) {
    if (value.type != JsonType::kObject) continue;
    ObjectSet set = value.object_set();
    const Property* const known = set.find(name);
    const Demand before = known != nullptr ? known->value : algebra_.value_of_other(set, name);
    if (before == kNothing) continue;
    const Demand narrowed = demands_.both(before, values);
    const Demand after = is_surely_empty(narrowed) ? before : narrowed;
    if (known == nullptr) {
      set.add({name, after, true});
    } else {
      set.property(static_cast<size_t>(known - set.properties().data())) = {name, after, true};
    }
    value = alternative_of(std::move(set));
  }
  return branch;
}

// Branches that need not have the member that tells them apart get it.
bool SchemaReader::tell_apart(std::vector<Alternatives>& written,
                              const std::vector<Alternatives>& branches) {
  constexpr size_t kMaxTries = 50;
  std::vector<std::string> names;
  for (const Alternative& value : branches.front()) {
    if (value.type != JsonType::kObject) continue;
    for (const Property& property : value.object_set().properties()) names.push_back(property.name);
    break;
  }
  std::erase_if(names, [&](const std::string& name) {
    return !std::ranges::all_of(
        branches, [&](const Alternatives& branch) { return lists_member(branch, name); });
  });
  names.resize(std::min(names.size(), kMaxTries));
  for (const std::string& name : names) {
    std::vector<Alternatives> tagged;
    for (const Alternatives& branch : written) {
      tagged.push_back(with_tag(branch, name, kAnything));
    }
    bool are_apart = true;
    for (size_t i = 0; i < branches.size() && are_apart; ++i) {
      for (size_t j = 0; j < branches.size() && are_apart; ++j) {
        are_apart = i == j || algebra_.are_surely_disjoint(tagged[i], branches[j]);
      }
    }
    if (!are_apart) continue;
    written = std::move(tagged);
    return true;
  }
  return false;
}

}  // namespace tgi::guide
