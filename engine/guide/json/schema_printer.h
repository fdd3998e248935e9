// Prints alternatives as rules of a grammar: one for each demand, so that recursive schemas become
// recursive rules.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/guide/grammar.h"
#include "engine/guide/json/any_json.h"
#include "engine/guide/json/item_texts.h"
#include "engine/guide/json/schema_reader.h"

namespace tgi::guide {

// Not thread-safe; belongs to one schema.
class SchemaPrinter {
 public:
  SchemaPrinter(Grammar& grammar, SchemaReader& reader, const JsonSchemaOptions& options);

  // Throws kInvalidArgument when no value satisfies the demand.
  Rule print(Demand demand);

 private:
  // A value that has a rule of its own, which is written when its turn comes: without recursion.
  struct Entry {
    Demand demand;
    Rule rule;
    bool has_value = false;  // known of those that can be written
  };

  Expr value(Demand demand);
  // What a value of the demand is written as: perhaps not all that satisfies it.
  Alternatives written(Demand demand);
  Expr any_of(const Alternatives& values);
  Expr alternative(const Alternative& value);
  Expr array(const ArraySet& set);
  Expr object(const ObjectSet& set);
  void check_satisfied(Demand root);
  bool has_value(const Alternative& value) const;
  bool has_value(Demand demand) const;

  // Arrays (print_arrays.cc).
  Expr plain_items(const ArraySet& set);
  Expr counted_items(const ArraySet& set);

  // Items that differ (print_unique.cc): of few values, or with the values in the state.
  Expr different_items(const ArraySet& set);
  std::optional<Expr> few_different_items(const ArraySet& set);
  std::optional<std::vector<uint64_t>> texts_of_kinds(const ArraySet& set,
                                                      const std::vector<std::string>& texts);
  Expr many_different_items(const ArraySet& set);
  Expr counted_different_items(const ArraySet& set);  // print_counted.cc
  struct ItemList {
    int32_t list = 0;             // of the grammar
    std::vector<Demand> demands;  // of all items
    std::string at;               // in the schema, for refusals
  };
  std::optional<Expr> item_of(const ItemList& list,
                              Demand demand,
                              int64_t needed,
                              int32_t length = 0);
  bool is_endless(Demand item);

  // Objects (print_objects.cc).
  Expr plain_members(const ObjectSet& given);
  Expr counted_members(const ObjectSet& set, std::optional<Expr> other);
  // A member that is no property, where there is any.
  std::optional<Expr> others(const ObjectSet& set);
  std::vector<ObjectSet> with_witnesses_placed(const ObjectSet& set);
  Expr witnesses(const ObjectSet& set, bool is_first);
  class MemberTail;  // print_counted_members.cc
  // Members that are no properties, behind so many others.
  Expr different_members(const ObjectSet& set, int64_t before);
  Expr member(const Property& property);

  Grammar& grammar_;
  SchemaReader& reader_;
  AnyJson json_;
  const bool closes_objects_;
  ItemTexts item_texts_;
  std::map<Demand, size_t> known_;  // places in entries_
  std::map<Demand, Expr> scalars_;
  std::vector<Entry> entries_;
  size_t num_printed_ = 0;
};

}  // namespace tgi::guide
