// Reads schemas into alternatives: every keyword is either a limit of one of them, a choice between
// them, or refused with its path.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/guide/json/schema_document.h"
#include "engine/guide/json/set_algebra.h"

namespace tgi::guide {

// Not thread-safe; belongs to one schema.
class SchemaReader {
 public:
  SchemaReader(RegexPool& pool, const OrderedJson& root);

  Demand root() { return demands_.schema(document_.root()); }
  Demands& demands() { return demands_; }
  SetAlgebra& algebra() { return algebra_; }

  // Throws for a keyword that is refused anywhere in the document, also where nothing was read yet.
  void check_all_keywords() const { document_.check_all_keywords(); }

  // The union of values that satisfy the demand.
  const Alternatives& alternatives(Demand demand);
  // Of schemas that describe members or items and tell no types: SetAlgebra::as_meant.
  Alternatives meant(Demand demand);

 private:
  // Thrown where a schema needs itself to be known first.
  struct NeedsItself {
    std::string path;
  };
  struct Entry {
    bool is_done = false;
    Alternatives alternatives;
  };

  const Alternatives& literal(DemandLiteral literal);
  Alternatives read_literal(DemandLiteral literal);
  Alternatives read_schema(const SchemaPlace& schema);
  bool is_surely_empty(Demand demand);
  bool tells_types(const SchemaPlace& schema, int depth = 0);

  // One type each (reader_*.cc).
  Alternatives types(const SchemaPlace& schema);
  void limit_numbers(const SchemaPlace& schema, Alternatives& values);
  void limit_strings(const SchemaPlace& schema, Alternatives& values);
  void limit_format(const SchemaPlace& schema, Alternatives& values);
  void limit_arrays(const SchemaPlace& schema, Alternatives& values);
  void read_items(const SchemaPlace& schema, ArraySet& set);
  void read_contains(const SchemaPlace& schema, ArraySet& set);
  void limit_objects(const SchemaPlace& schema, Alternatives& values);
  void read_properties(const SchemaPlace& schema, ObjectSet& set);
  void read_required(const SchemaPlace& schema, ObjectSet& set);
  void read_names(const SchemaPlace& schema, ObjectSet& set, Alternatives& values);
  static void check_digits(const OrderedJson& value, const std::string& at);
  Alternatives constant(const OrderedJson& value);
  Alternatives listed_values(const SchemaPlace& schema, const OrderedJson& list);

  // Schemas within the schema (reader_applicators.cc).
  void apply_references(const SchemaPlace& schema, Alternatives& values);
  void apply_all(const SchemaPlace& schema, Alternatives& values);
  void apply_any(const SchemaPlace& schema, Alternatives& values);
  void apply_one(const SchemaPlace& schema, Alternatives& values);
  void apply_not(const SchemaPlace& schema, Alternatives& values);
  void apply_condition(const SchemaPlace& schema, Alternatives& values);
  void apply_dependencies(const SchemaPlace& schema, Alternatives& values);
  void depend_on(const std::string& name,
                 const Alternatives& then,
                 const std::string& at,
                 Alternatives& values);
  // Members that tell branches apart (reader_tags.cc).
  const std::string* tag_of(const SchemaPlace& schema) const;  // null: `discriminator` names none
  Demand tag_values(const SchemaPlace& schema, const OrderedJson& branch);
  Alternatives with_tag(Alternatives branch, const std::string& name, Demand values);
  bool tell_apart(std::vector<Alternatives>& written, const std::vector<Alternatives>& branches);
  Alternatives one_of(const std::vector<Alternatives>& written,
                      const std::vector<Alternatives>& branches,
                      const OrderedJson& list,
                      const std::string& at);
  void apply_unevaluated(const SchemaPlace& schema, Alternatives& values);
  void evaluate_rest(Demand demand, Alternative& value);
  void evaluate_items(Demand demand, Alternative& value);

  // The schema that is the value of a keyword, or an element of it.
  Demand subschema(const OrderedJson& json, const std::string& at);
  const Alternatives& alternatives_of(const OrderedJson& json, const std::string& at);
  Alternatives complement_of(const Alternatives& values, const std::string& at);
  // Those of `values` that are none of `taken`, the schema at `at`.
  Alternatives without(const Alternatives& values,
                       const Alternatives& taken,
                       const std::string& at);
  Regex pattern(const std::string& text, const std::string& at);
  const OrderedJson* member(const SchemaPlace& schema, const char* keyword) const;
  std::optional<int64_t> count(const SchemaPlace& schema, const char* keyword) const;

  RegexPool& pool_;
  SchemaDocument document_;
  Demands demands_;
  SetAlgebra algebra_;
  std::map<DemandLiteral, Entry> literals_;
  std::unordered_map<int32_t, Entry> demand_entries_;
  std::deque<OrderedJson> made_;  // constants that the document lacks
  int32_t depth_ = 0;
  int32_t proofs_ = 0;  // of emptiness, one in the other
};

}  // namespace tgi::guide
