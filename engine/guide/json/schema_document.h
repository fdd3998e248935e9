// A document of JSON Schema and the schemas in it: where each is, how it is called, and what a
// reference leads to. References to other documents are refused by name.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/guide/json/refusal.h"

namespace tgi::guide {

enum class Draft {
  k7,  // and those before it: a $ref hides what is beside it
  k2019,
  k2020,
};

// One schema of a document.
struct SchemaPlace {
  const OrderedJson* json = nullptr;
  std::string path;                       // "#/properties/age"
  std::string base;                       // the URI of its resource, without a fragment
  const OrderedJson* resource = nullptr;  // the root of it
  Draft draft = Draft::k2020;
  std::string dialect;  // as $schema has it; empty: not said, old and new keywords are understood
};

// Immutable but for places that references find. Holds a reference to the document.
class SchemaDocument {
 public:
  explicit SchemaDocument(const OrderedJson& root);

  const SchemaPlace& root() const { return *root_; }
  // REQUIRES: a schema in a keyword that holds schemas.
  const SchemaPlace& place_of(const OrderedJson& schema) const { return places_.at(&schema); }
  // What `reference` at `keyword_path` leads to; `dynamic`: as $dynamicRef.
  const SchemaPlace& resolve(const SchemaPlace& from,
                             const std::string& reference,
                             bool dynamic,
                             const std::string& keyword_path);

  // Throws for the first keyword of the document that is refused (keywords.h).
  void check_all_keywords() const;

  // Whether it matters what properties and items a schema has seen.
  bool uses_unevaluated() const { return uses_unevaluated_; }

 private:
  void visit(std::vector<SchemaPlace>& open);
  void enter_resource(SchemaPlace& place);
  void add_anchor(const SchemaPlace& place, const std::string& name);
  const SchemaPlace& by_pointer(const SchemaPlace& resource,
                                std::string_view pointer,
                                const std::string& reference,
                                const std::string& keyword_path);

  std::unordered_map<const OrderedJson*, SchemaPlace> places_;
  std::map<std::string, const OrderedJson*> resources_;
  std::map<std::string, const OrderedJson*> anchors_;                       // by "URI#name"
  std::map<std::string, std::vector<const OrderedJson*>> dynamic_anchors_;  // by name
  const SchemaPlace* root_ = nullptr;
  bool uses_unevaluated_ = false;
};

}  // namespace tgi::guide
