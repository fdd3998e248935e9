// Any JSON value, and the marks between values with the white space that is allowed around them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/guide/grammar.h"
#include "engine/guide/json/strings.h"
#include "engine/guide/json_schema.h"

namespace tgi::guide {

// Not thread-safe; belongs to one grammar.
class AnyJson {
 public:
  AnyJson(Grammar& grammar, const JsonSchemaOptions& options);

  // As they are spelled.
  std::string_view null_word() const { return is_python_ ? "None" : "null"; }
  std::string_view true_word() const { return is_python_ ? "True" : "true"; }
  std::string_view false_word() const { return is_python_ ? "False" : "false"; }

  Quotes quotes() const { return is_python_ ? Quotes::kEither : Quotes::kDouble; }
  // A string, or the name of a property.
  Expr string(const std::string& value);

  Expr space() const { return space_; }
  Regex space_texts() const { return space_texts_; }
  Regex comma_texts() const { return comma_texts_; }
  Expr comma() const { return comma_; }  // with the space around it
  Expr colon() const { return colon_; }

  // What begins with '[' or '{', in them the first part and the others with their commas.
  Expr in_brackets(Expr body) { return between("[", body, "]"); }
  Expr in_braces(Expr body) { return between("{", body, "}"); }
  // The body of any number of parts.
  Expr list_of(Expr part);

  Expr value();
  Expr array();
  Expr object();

 private:
  Expr between(const char* open, Expr body, const char* close);
  void define_rules();

  Grammar& grammar_;
  const bool is_python_;
  Regex space_texts_;
  Regex comma_texts_;
  Expr space_;
  Expr comma_;
  Expr colon_;
  bool is_defined_ = false;
  Rule value_;
  Rule array_;
  Rule object_;
};

}  // namespace tgi::guide
