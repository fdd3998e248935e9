#include "engine/guide/json/schema_document.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "engine/guide/json/keywords.h"
#include "engine/guide/json/uri.h"

namespace tgi::guide {
namespace {

constexpr size_t kMaxDepth = 200;  // of schemas within schemas

constexpr std::array<std::string_view, 12> kSchemaKeywords = {"additionalProperties",
                                                              "additionalItems",
                                                              "items",
                                                              "contains",
                                                              "propertyNames",
                                                              "not",
                                                              "if",
                                                              "then",
                                                              "else",
                                                              "unevaluatedItems",
                                                              "unevaluatedProperties",
                                                              "contentSchema"};
constexpr std::array<std::string_view, 5> kListKeywords = {"allOf", "anyOf", "oneOf", "prefixItems",
                                                           "items"};
constexpr std::array<std::string_view, 6> kMapKeywords = {
    "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"};

const std::string* string_member(const OrderedJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string()
             ? found->get_ptr<const OrderedJson::string_t*>()
             : nullptr;
}

Draft draft_of(const std::string& dialect, const std::string& at) {
  // Those of others are one of these with words that describe.
  constexpr std::array<std::pair<std::string_view, Draft>, 9> kDialects = {
      {{"json-schema.org/draft/2020-12/schema", Draft::k2020},
       {"json-schema.org/schema", Draft::k2020},  // "the newest"
       {"spec.openapis.org/oas/3.1/dialect/base", Draft::k2020},
       {"spec.openapis.org/oas/3.1/dialect/2024-11-10", Draft::k2020},
       {"iglucentral.com/schemas/com.snowplowanalytics.self-desc/schema/jsonschema/1-0-0",
        Draft::k7},
       {"json-schema.org/draft/2019-09/schema", Draft::k2019},
       {"json-schema.org/draft-07/schema", Draft::k7},
       {"json-schema.org/draft-06/schema", Draft::k7},
       {"json-schema.org/draft-04/schema", Draft::k7}}};
  std::string_view name = dialect;
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (name.substr(0, scheme.size()) == scheme) name.remove_prefix(scheme.size());
  }
  if (!name.empty() && name.back() == '#') name.remove_suffix(1);
  for (const auto& [known, draft] : kDialects) {
    if (name == known) return draft;
  }
  refuse_schema(at, "the dialect \"" + dialect +
                        "\" is not known; known are those of json-schema.org: draft 2020-12, "
                        "2019-09, draft-07, draft-06 and draft-04");
}

bool is_schema(const OrderedJson& value) {
  return value.is_object() || value.is_boolean();
}

std::string pointer_token(std::string_view token) {
  std::string result;
  for (size_t i = 0; i < token.size(); ++i) {
    if (token[i] == '~' && i + 1 < token.size() && (token[i + 1] == '0' || token[i + 1] == '1')) {
      result += token[++i] == '0' ? '~' : '/';
    } else {
      result += token[i];
    }
  }
  return result;
}

const OrderedJson* member_of(const OrderedJson& value, const std::string& token) {
  if (value.is_object()) {
    const auto found = value.find(token);
    return found == value.end() ? nullptr : &*found;
  }
  size_t index = 0;
  const char* const end = token.data() + token.size();
  if (!value.is_array() || token.empty() || std::from_chars(token.data(), end, index).ptr != end ||
      index >= value.size()) {
    return nullptr;
  }
  return &value[index];
}

}  // namespace

SchemaDocument::SchemaDocument(const OrderedJson& root) {
  SchemaPlace place;
  place.json = place.resource = &root;
  place.path = "#";
  resources_[""] = &root;
  std::vector<SchemaPlace> open = {place};
  visit(open);
  root_ = &places_.at(&root);
}

void SchemaDocument::add_anchor(const SchemaPlace& place, const std::string& name) {
  anchors_.emplace(place.base + "#" + name, place.json);
}

void SchemaDocument::enter_resource(SchemaPlace& place) {
  const OrderedJson& json = *place.json;
  const std::string* id = string_member(json, "$id");
  const std::string* const old_id = string_member(json, "id");  // of draft 4
  const std::string* dialect = string_member(json, "$schema");
  if (dialect != nullptr && (id != nullptr || old_id != nullptr || place.path == "#")) {
    place.draft = draft_of(*dialect, place.path + "/$schema");
    place.dialect = *dialect;
  }
  if (id == nullptr && place.draft == Draft::k7) id = old_id;
  const bool hidden = place.draft == Draft::k7 && json.contains("$ref");
  if (id == nullptr || hidden) return;
  const auto [uri, fragment] = split_fragment(*id);
  if (!uri.empty()) {
    place.base = resolve_uri(place.base, uri);
    place.resource = &json;
    resources_.emplace(place.base, &json);
  }
  if (!fragment.empty()) add_anchor(place, std::string(fragment));
}

// Without recursion: schemas come from strangers.
void SchemaDocument::visit(std::vector<SchemaPlace>& open) {
  std::vector<size_t> depths(open.size(), 1);
  while (!open.empty()) {
    SchemaPlace place = std::move(open.back());
    const size_t depth = depths.back();
    open.pop_back();
    depths.pop_back();
    if (depth > kMaxDepth) {
      reject_schema("#", "schemas are nested deeper than " + std::to_string(kMaxDepth));
    }
    if (place.json->is_object()) enter_resource(place);
    const SchemaPlace& kept = places_.emplace(place.json, std::move(place)).first->second;
    const OrderedJson& json = *kept.json;
    if (!json.is_object()) continue;
    for (const char* keyword : {"$anchor", "$dynamicAnchor"}) {
      if (const std::string* name = string_member(json, keyword)) add_anchor(kept, *name);
    }
    if (const std::string* name = string_member(json, "$dynamicAnchor")) {
      dynamic_anchors_[*name].push_back(&json);
    }
    if (json.contains("unevaluatedProperties") || json.contains("unevaluatedItems")) {
      uses_unevaluated_ = true;
    }
    const auto add = [&](const OrderedJson& child, std::string path) {
      if (!is_schema(child)) return;
      SchemaPlace next = kept;
      next.json = &child;
      next.path = std::move(path);
      open.push_back(std::move(next));
      depths.push_back(depth + 1);
    };
    for (auto member = json.begin(); member != json.end(); ++member) {
      const std::string& key = member.key();
      const OrderedJson& value = member.value();
      const auto listed = [&](const auto& list) {
        return std::find(list.begin(), list.end(), key) != list.end();
      };
      if (listed(kSchemaKeywords)) add(value, kept.path + "/" + key);
      if (listed(kListKeywords) && value.is_array()) {
        for (size_t i = 0; i < value.size(); ++i) {
          add(value[i], kept.path + "/" + key + "/" + std::to_string(i));
        }
      }
      if (listed(kMapKeywords) && value.is_object()) {
        for (auto child = value.begin(); child != value.end(); ++child) {
          add(child.value(), path_step(kept.path + "/" + key, child.key()));
        }
      }
    }
  }
}

void SchemaDocument::check_all_keywords() const {
  std::vector<const SchemaPlace*> all;
  for (const auto& [json, place] : places_) {
    const bool is_hidden = place.draft == Draft::k7 && json->is_object() && json->contains("$ref");
    if (json->is_object() && !is_hidden) all.push_back(&place);
  }
  std::ranges::sort(all, {}, &SchemaPlace::path);
  for (const SchemaPlace* place : all) check_keywords(*place);
}

const SchemaPlace& SchemaDocument::by_pointer(const SchemaPlace& resource,
                                              std::string_view pointer,
                                              const std::string& reference,
                                              const std::string& keyword_path) {
  const OrderedJson* value = resource.json;
  SchemaPlace place = resource;
  while (!pointer.empty()) {
    const size_t end = std::min(pointer.find('/', 1), pointer.size());
    const std::string token = pointer_token(pointer.substr(1, end - 1));
    pointer.remove_prefix(end);
    value = member_of(*value, token);
    if (value == nullptr) {
      reject_schema(keyword_path, "\"" + reference + "\" leads nowhere: " + place.path +
                                      " has no \"" + token + "\"");
    }
    place.path = path_step(place.path, token);
    if (const auto known = places_.find(value); known != places_.end()) place = known->second;
  }
  if (const auto known = places_.find(value); known != places_.end()) return known->second;
  if (!is_schema(*value)) {
    reject_schema(keyword_path, "\"" + reference + "\" leads to " + described_json(*value) +
                                    ", which is no schema");
  }
  place.json = value;
  std::vector<SchemaPlace> open = {place};
  visit(open);
  return places_.at(value);
}

const SchemaPlace& SchemaDocument::resolve(const SchemaPlace& from,
                                           const std::string& reference,
                                           bool dynamic,
                                           const std::string& keyword_path) {
  const auto [uri, fragment] = split_fragment(reference);
  const std::string target = uri.empty() ? from.base : resolve_uri(from.base, uri);
  const OrderedJson* resource = from.resource;
  if (!uri.empty()) {
    const auto found = resources_.find(target);
    if (found == resources_.end()) {
      const char* const list = from.draft == Draft::k7 ? "definitions" : "$defs";
      refuse_schema(keyword_path, "\"" + reference +
                                      "\" is not in this document, and other documents are not "
                                      "fetched; put that document under \"" +
                                      list + "\" with \"$id\": \"" + target + "\"");
    }
    resource = found->second;
  }
  const std::string name = percent_decoded(fragment);
  if (name.empty()) return places_.at(resource);
  if (name[0] == '/') return by_pointer(places_.at(resource), name, reference, keyword_path);
  const auto found = anchors_.find(places_.at(resource).base + "#" + name);
  if (found == anchors_.end()) {
    reject_schema(keyword_path,
                  "\"" + reference + "\" leads nowhere: there is no $anchor \"" + name + "\"");
  }
  const SchemaPlace& place = places_.at(found->second);
  const std::string* anchor =
      place.json->is_object() ? string_member(*place.json, "$dynamicAnchor") : nullptr;
  if (!dynamic || anchor == nullptr || *anchor != name) return place;
  // The outermost resource decides: the root where it has the anchor, the only one that has it.
  const std::vector<const OrderedJson*>& all = dynamic_anchors_.at(name);
  for (const OrderedJson* candidate : all) {
    if (places_.at(candidate).resource == root_->resource) return places_.at(candidate);
  }
  if (all.size() == 1) return place;
  refuse_schema(keyword_path, "which $dynamicAnchor \"" + name +
                                  "\" is meant depends on the way here; write $ref");
}

}  // namespace tgi::guide
