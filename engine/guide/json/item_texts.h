// The texts of items that have to differ, as a regular language in which each value has one text,
// but for the zeros of numbers and the escapes of strings: what tells values apart then is their
// text.
//
// Not every value has a text here. What is nested too deeply has none; members that the schema does
// not list, and items of an inner uniqueItems, come in the order of their first characters, no two
// with the same: so none comes twice.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/guide/grammar.h"
#include "engine/guide/json/any_json.h"
#include "engine/guide/json/schema_reader.h"

namespace tgi::guide {

// Whether a place of the array can be equal to none before it, whatever stands there.
bool are_places_different(SchemaReader& reader, const ArraySet& set);

// The texts of a demand that has few values, none of them an array or object.
std::optional<std::vector<std::string>> few_texts(SchemaReader& reader,
                                                  const AnyJson& json,
                                                  Demand demand);

// The sets of bytes by which names and strings are told apart: those that are in none of the
// others, digits, letters of either case.
std::vector<ByteSet> first_characters();

// Not thread-safe; belongs to one schema.
class ItemTexts {
 public:
  ItemTexts(Grammar& grammar, SchemaReader& reader, AnyJson& json, bool closes_objects)
      : grammar_(grammar), reader_(reader), json_(json), closes_objects_(closes_objects) {}

  // Of one of `all`, which are the items that may have to differ from each other: what is equal has
  // one text whichever of them it is read by. Nothing: there are none, and why_not() says why.
  std::optional<Regex> of(Demand item, const std::vector<Demand>& all);
  const std::string& why_not() const { return why_not_; }

 private:
  // One after the other, with commas between those that are there.
  struct Part {
    Regex text;
    bool required = false;
  };

  // What may stand at one place of an item: equal items have equal values there, whichever of the
  // demands they satisfy. So the names of all of them have one order, and what is a property of one
  // is told from the other members of the next.
  struct Place {
    Alternatives values;  // of all of them
    std::vector<std::string> names;
  };
  size_t place_of(std::vector<Demand> demands);
  size_t place_of_items(size_t place);
  size_t place_of_member(size_t place, const std::string& name);
  size_t place_of_others(size_t place);
  template <typename Visit>
  void for_each_alternative(size_t place, const Visit& visit);

  // `at`: the place, of which the demand is one.
  std::optional<Regex> value(Demand demand, size_t at, int depth);
  std::optional<Regex> alternative(const Alternative& value, Demand of, size_t at, int depth);
  std::optional<Regex> array(const ArraySet& set, Demand of, size_t at, int depth);
  std::optional<Regex> different_items(const ArraySet& set, Demand of, size_t at, int depth);
  std::optional<Regex> counted_items(const ArraySet& set, size_t at, int depth);
  std::optional<Regex> object(const ObjectSet& given, Demand of, size_t at, int depth);
  std::optional<std::vector<Part>> listed_members(const ObjectSet& set,
                                                  Demand of,
                                                  size_t at,
                                                  int depth);
  std::optional<std::vector<Part>> other_members(const ObjectSet& set,
                                                 Demand of,
                                                 size_t at,
                                                 int depth);
  std::optional<Regex> in_order(const std::vector<Part>& parts,
                                int64_t least,
                                int64_t most,
                                Demand of);
  Regex in_any_order(const std::vector<std::string>& texts, int64_t least, int64_t most);
  std::optional<Regex> refuse(Demand of, const std::string& what);
  // Without the members that it does not mean, where objects are closed.
  ObjectSet meant(const ObjectSet& set) const;
  // But for its properties.
  bool has_no_others(const ObjectSet& set) const;

  Grammar& grammar_;
  SchemaReader& reader_;
  AnyJson& json_;
  const bool closes_objects_;
  std::deque<Place> places_;  // place_of() gives an index
  std::map<std::vector<Demand>, size_t> place_ids_;
  std::map<std::pair<size_t, std::string>, size_t> member_places_;
  std::map<std::tuple<Demand, size_t, int>, std::optional<Regex>> known_;
  std::string why_not_;
};

}  // namespace tgi::guide
