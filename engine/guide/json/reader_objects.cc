// Members: names, values, counts.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "engine/guide/json/schema_reader.h"

namespace tgi::guide {
namespace {

constexpr std::array<const char*, 7> kObjectKeywords = {
    "properties", "patternProperties", "additionalProperties", "propertyNames",
    "required",   "minProperties",     "maxProperties"};

const OrderedJson& expect_object(const OrderedJson& value, const std::string& at) {
  if (!value.is_object()) reject_schema(at, "expected an object, got " + described_json(value));
  return value;
}

}  // namespace

void SchemaReader::limit_objects(const SchemaPlace& schema, Alternatives& values) {
  const bool is_limited =
      std::any_of(kObjectKeywords.begin(), kObjectKeywords.end(),
                  [&](const char* keyword) { return schema.json->contains(keyword); });
  if (!is_limited) return;
  ObjectSet set;
  read_properties(schema, set);
  read_required(schema, set);
  set.min_properties = count(schema, "minProperties").value_or(0);
  set.max_properties = count(schema, "maxProperties").value_or(kUnbounded);
  set.count_at = schema.path + "/minProperties";
  read_names(schema, set, values);
}

void SchemaReader::read_properties(const SchemaPlace& schema, ObjectSet& set) {
  std::vector<NameClass> patterns;
  if (const OrderedJson* members = member(schema, "patternProperties")) {
    const std::string at = schema.path + "/patternProperties";
    for (auto entry = expect_object(*members, at).begin(); entry != members->end(); ++entry) {
      const std::string path = path_step(at, entry.key());
      patterns.push_back({pattern(entry.key(), path), subschema(entry.value(), path)});
    }
  }
  Demand additional = kAnything;
  const OrderedJson* others = member(schema, "additionalProperties");
  if (others != nullptr) {
    additional = subschema(*others, schema.path + "/additionalProperties");
  }
  if (const OrderedJson* members = member(schema, "properties")) {
    // More would be too much for the states of a matcher, which have a choice of all of them.
    constexpr size_t kMaxProperties = 2000;
    const std::string at = schema.path + "/properties";
    if (members->size() > kMaxProperties) {
      reject_schema(at, "has " + std::to_string(members->size()) + " members; at most " +
                            std::to_string(kMaxProperties) + " can be told apart");
    }
    for (auto entry = expect_object(*members, at).begin(); entry != members->end(); ++entry) {
      Property property{entry.key(), subschema(entry.value(), path_step(at, entry.key())), false};
      for (const NameClass& names : patterns) {
        if (pool_.matches(names.names, property.name)) {
          property.value = demands_.both(property.value, names.value);
        }
      }
      set.add(std::move(property));
    }
  }
  if (!patterns.empty() || others != nullptr) {
    constexpr size_t kMaxClasses = 64;
    // Every pattern cuts the kinds of names into those that it matches and the others.
    set.classes = {{pool_.any_text(), additional, /*is_described=*/others != nullptr}};
    std::vector<bool> is_matched = {false};
    for (const NameClass& names : patterns) {
      std::vector<NameClass> classes;
      std::vector<bool> matched;
      for (size_t i = 0; i < set.classes.size(); ++i) {
        const NameClass& before = set.classes[i];
        const Regex inside = pool_.both(before.names, names.names);
        const Regex outside = pool_.without(before.names, names.names);
        if (!pool_.is_empty(inside)) {
          classes.push_back(
              {inside, is_matched[i] ? demands_.both(before.value, names.value) : names.value});
          matched.push_back(true);
        }
        if (!pool_.is_empty(outside)) {
          classes.push_back({outside, before.value, before.is_described});
          matched.push_back(is_matched[i]);
        }
      }
      if (classes.size() > kMaxClasses) {
        refuse_schema(schema.path + "/patternProperties",
                      "the patterns come to more than " + std::to_string(kMaxClasses) +
                          " kinds of names that match some of them and not others");
      }
      set.classes = std::move(classes);
      is_matched = std::move(matched);
    }
  }
  if (!document_.uses_unevaluated()) return;
  for (const Property& property : set.properties()) set.evaluated_names.insert(property.name);
  for (const NameClass& names : patterns) {
    set.evaluated_patterns =
        set.evaluated_patterns ? pool_.either({*set.evaluated_patterns, names.names}) : names.names;
  }
  set.all_evaluated = others != nullptr;
}

void SchemaReader::read_required(const SchemaPlace& schema, ObjectSet& set) {
  const OrderedJson* names = member(schema, "required");
  if (names == nullptr) return;
  const std::string at = schema.path + "/required";
  if (!names->is_array()) {
    reject_schema(
        at, "expected an array of names, got " + described_json(*names) +
                (names->is_boolean() ? "; the object that has the member lists its name" : ""));
  }
  for (const OrderedJson& name : *names) {
    if (!name.is_string()) reject_schema(at, "expected names, got " + described_json(name));
    const std::string text = name.get<std::string>();
    if (const Property* known = set.find(text)) {
      set.property(static_cast<size_t>(known - set.properties().data())).required = true;
    } else {
      set.add({text, algebra_.value_of_other(set, text), true});
    }
  }
}

void SchemaReader::read_names(const SchemaPlace& schema, ObjectSet& set, Alternatives& values) {
  const std::string at = schema.path + "/propertyNames";
  if (const OrderedJson* names = member(schema, "propertyNames")) {
    bool is_every = false;
    bool is_finite = true;
    std::vector<std::string> listed;
    std::vector<Regex> languages;
    for (const Alternative& name : alternatives_of(*names, at)) {
      if (name.type != JsonType::kString) continue;
      Strings::check_exact(name.string);
      if (set.names_narrowed_at.empty()) set.names_narrowed_at = name.string.narrowed_at;
      is_every = is_every || name.is_every();
      is_finite = is_finite && name.string.finite;
      if (name.string.finite) {
        listed.insert(listed.end(), name.string.finite->begin(), name.string.finite->end());
      }
      languages.push_back(algebra_.strings.language_of(name.string));
    }
    if (!is_every) {
      const Regex language = pool_.either(languages);
      for (size_t i = 0; i < set.properties().size(); ++i) {
        if (!pool_.matches(language, set.properties()[i].name)) set.property(i).value = kNothing;
      }
      if (is_finite) {
        for (const std::string& name : listed) {
          if (set.find(name) == nullptr) {
            set.add({name, algebra_.value_of_other(set, name), false});
          }
        }
        set.classes = {{pool_.any_text(), kNothing}};
      } else {
        // Beside patterns it only limits their names.
        const bool is_described = std::ranges::all_of(set.classes, &NameClass::is_described);
        ObjectSet limit;
        limit.classes = {{language, kAnything, is_described},
                         {pool_.without(pool_.any_text(), language), kNothing}};
        values = algebra_.both(
            values,
            [&] {
              Alternatives limited;
              for (const JsonType type : kJsonTypes) {
                limited.push_back(type == JsonType::kObject ? alternative_of(limit)
                                                            : every_value(type));
              }
              return limited;
            }(),
            at);
      }
    }
  }
  Alternatives limited;
  for (const JsonType type : kJsonTypes) {
    limited.push_back(type == JsonType::kObject ? alternative_of(set) : every_value(type));
  }
  values = algebra_.both(values, limited, schema.path);
  SetAlgebra::drop_impossible(values);
}

}  // namespace tgi::guide
