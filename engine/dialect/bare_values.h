// Values in a notation that writes texts without quotes. Its reader takes a text for JSON where it
// is a value of another type that the schema allows, else for a string (json_of_parameter()), so
// that a string which would be taken for such a value can't be written; what can be is read as a
// value that satisfies the schema.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/dialect/tools.h"
#include "engine/guide/grammar.h"
#include "engine/guide/json_schema.h"

namespace tgi::dialect {

class BareValues {
 public:
  // `schema`: a part of the tool's. Throws what can't be enforced when the tool is strict, else
  // leaves it open. All must outlive it.
  BareValues(guide::Grammar& grammar, const Tool& tool, const OrderedJson& schema);

  // Texts as they stand, without `mark` (empty: any); nothing where there are none. `is_told`:
  // something before them tells that they are strings.
  std::optional<guide::Regex> texts(bool is_told, const std::string& mark);
  // The values of these types as JSON; nothing where there are none. Without `types`: of all.
  std::optional<guide::Expr> json(uint8_t types = kAllBits);
  // The types whose values have to stand as JSON beside texts that are not told: of others these
  // texts have all values.
  uint8_t types_beside_texts() const;
  // Texts that are not told, or JSON. What has neither is refused of a strict tool, else it is any
  // text.
  guide::Expr texts_or_json(const std::string& mark);

 private:
  void refuse_if_strict() const;
  guide::Regex read_otherwise();

  guide::Grammar& grammar_;
  const Tool& tool_;
  const OrderedJson& part_;
  const uint8_t types_;  // what the reader may take a value for (TypeBits)
  OrderedJson schema_;
  guide::SchemaValues values_;
  uint8_t some_ = 0;   // the types other than strings of which there are values
  uint8_t every_ = 0;  // ... every value
};

// Texts of the language without the mark.
guide::Regex without_mark(guide::Grammar& grammar, guide::Regex texts, const std::string& mark);

}  // namespace tgi::dialect
