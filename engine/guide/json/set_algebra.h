// "And" and "not" of alternatives.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/guide/json/value_sets.h"

namespace tgi::guide {

// Not thread-safe; belongs to one schema.
class SetAlgebra {
 public:
  SetAlgebra(RegexPool& regexes, Demands& demand_table)
      : pool(regexes), demands(demand_table), numbers(regexes), strings(regexes) {}

  RegexPool& pool;
  Demands& demands;
  Numbers numbers;
  Strings strings;
  // True only where nothing satisfies the demand; says no when that is hard to tell.
  std::function<bool(Demand)> is_surely_empty;
  bool has_narrowed_strings = false;  // some set of the schema has a StringSet::narrowed_at

  // The values of both unions. Throws kInvalidArgument, with `at`, when they are too many.
  Alternatives both(const Alternatives& a, const Alternatives& b, const std::string& at);
  // The values of none of the union. Throws kUnsupported for what has no complement here.
  Alternatives complement(const Alternatives& a, const std::string& at);
  // The values of `a` that are none of `b`: only what overlaps is put together.
  Alternatives without(const Alternatives& a, const Alternatives& b, const std::string& at);
  // Takes out what obviously has no value: "and" does it only for what it puts together.
  static void drop_impossible(Alternatives& values);
  // Adds what is not there yet.
  void add(Alternatives& to, const Alternatives& from, const std::string& at);
  bool are_surely_disjoint(const Alternatives& a, const Alternatives& b);

  // What a name that is no property of the set may have as its value.
  Demand value_of_other(const ObjectSet& set, const std::string& name);
  // It describes members, each by its name or by a pattern, enough for the fewest that have to be
  // there, and says nothing of others: with JsonSchemaOptions::closes_objects it gets no others.
  bool lists_its_members(const ObjectSet& set);
  // The set without the members that are only named by what objects must not be, and, where none of
  // any name has to be there, without those that nothing is said of. REQUIRES: lists_its_members.
  ObjectSet closed(const ObjectSet& set) const;
  // Of a schema that describes the members of objects, or the items of arrays, and lets any value
  // of the other types, those objects or arrays: who leaves out `type` means it.
  Alternatives as_meant(const Alternatives& values);
  // One class of all names, where the set does not tell them apart.
  std::vector<NameClass> classes_of(const ObjectSet& set);

 private:
  std::optional<Alternative> both(const Alternative& a, const Alternative& b);
  std::optional<Alternative> both_arrays(const ArraySet& a, const ArraySet& b);
  std::optional<Alternative> both_objects(const ObjectSet& a, const ObjectSet& b);
  void intersect_classes(const ObjectSet& a, const ObjectSet& b, ObjectSet& result);
  bool has_names_for(const ObjectSet& set, int64_t count);
  bool are_surely_disjoint(const Alternative& a, const Alternative& b);
  Alternatives complement(const Alternative& a);  // within its type
  Alternatives complement_of_array(const ArraySet& a);
  Alternatives complement_of_object(const ObjectSet& a);
  bool merge_listed(Alternatives& to, const Alternative& from);
  void spend(size_t work, const std::string& at);

  size_t work_ = 0;
};

}  // namespace tgi::guide
