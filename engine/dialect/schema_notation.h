// The grammar of arguments in a notation that is not JSON's. A schema is followed as far as the
// notation and the words that are known go, for texts, numbers and the like as far as JSON's is
// (bare_values.h); of a strict tool any other word is refused with its place, of others what can't
// be enforced is left open. A notation says how values are written.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/dialect/arguments_grammar.h"

namespace tgi::dialect {

class SchemaNotation {
 public:
  SchemaNotation(guide::Grammar& grammar, const Tool& tool) : grammar_(grammar), tool_(tool) {}
  virtual ~SchemaNotation() = default;

  // The arguments of the tool, without what stands around an object.
  guide::Expr arguments() { return members(tool_.parameters, "#", 0); }

 protected:
  struct Member {
    std::string name;
    guide::Expr value;
    bool is_required = false;
  };
  static std::vector<std::string> names_of(const std::vector<Member>& members);

  // A text is known from a number that is written like it.
  virtual bool tells_texts() const = 0;
  virtual bool writes_null() const = 0;
  virtual const std::string& text_end() const = 0;  // what no text has; may be empty
  virtual guide::Expr written_text(guide::Expr text) = 0;
  virtual bool can_name(std::string_view name) const = 0;
  // Those of `known` in their order, then any number under other names (`other`: such a value).
  virtual guide::Expr written_members(std::vector<Member> known,
                                      std::optional<guide::Expr> other) = 0;
  virtual guide::Expr object(guide::Expr members) = 0;
  virtual guide::Expr array(guide::Expr item, int32_t least, int32_t most) = 0;
  virtual guide::Expr in_array(guide::Expr items) = 0;  // around items, with what is between them
  virtual guide::Expr between_items() = 0;
  virtual guide::Expr written_item(guide::Expr value) = 0;
  virtual guide::Expr literal_array(const std::vector<guide::Expr>& items) = 0;
  // Any value of the notation; `value` stands for one inside another.
  virtual guide::Expr any_value(guide::Expr value) = 0;

  guide::Grammar& grammar_;
  const Tool& tool_;

 private:
  guide::Expr members(const OrderedJson& schema, const std::string& path, int depth);
  guide::Expr value(const OrderedJson& given, const std::string& path, int depth);
  guide::Expr one_of(const std::vector<guide::Expr>& forms, const std::string& path);
  // Both add forms: of all values but arrays and objects, and of these.
  void add_scalars(const OrderedJson& schema,
                   const std::string& path,
                   std::vector<guide::Expr>& to);
  void add_structured(const OrderedJson& given,
                      const std::string& path,
                      int depth,
                      std::vector<guide::Expr>& to);
  guide::Expr referred(const OrderedJson& schema,
                       const std::string& path,
                       int depth,
                       bool is_structured);
  guide::Expr items(const OrderedJson& schema, const std::string& path, int depth);
  std::vector<guide::Expr> listed(const OrderedJson& given);
  guide::Expr different_items(const std::vector<guide::Expr>& values,
                              int32_t least,
                              int32_t most,
                              const std::string& path);
  // `types`: what its reader may take it for.
  std::optional<guide::Expr> literal(const OrderedJson& value, uint8_t types);
  guide::Expr any();

  // Words that say nothing of what a value may be are taken everywhere.
  void check_words(const OrderedJson& schema,
                   const std::string& path,
                   std::initializer_list<std::string_view> known) const;
  [[noreturn]] void refuse(const std::string& path) const;

  std::optional<guide::Rule> any_;
  std::map<std::pair<const OrderedJson*, bool>, guide::Rule> referred_;  // is_structured
};

}  // namespace tgi::dialect
