#include "engine/guide/json/any_json.h"

#include "engine/guide/json/numbers.h"

namespace tgi::guide {

AnyJson::AnyJson(Grammar& grammar, const JsonSchemaOptions& options)
    : grammar_(grammar), is_python_(options.python_words) {
  RegexPool& pool = grammar.regex();
  space_texts_ = pool.empty_text();
  if (options.whitespace == JsonSchemaOptions::Whitespace::kSpaced) {
    space_texts_ = pool.repeat(pool.literal(" "), 0, 1);
  } else if (options.whitespace == JsonSchemaOptions::Whitespace::kFlexible) {
    ByteSet set;
    for (const char c : {' ', '\t', '\n', '\r'}) set.set(static_cast<unsigned char>(c));
    space_texts_ = pool.repeat(pool.bytes(set), 0, JsonSchemaOptions::kMaxWhitespace);
  }
  comma_texts_ = pool.concat({space_texts_, pool.literal(","), space_texts_});
  space_ = grammar.terminal(space_texts_);
  comma_ = grammar.sequence({space_, grammar.text(","), space_});
  colon_ = grammar.sequence({space_, grammar.text(":"), space_});
}

Expr AnyJson::between(const char* open, Expr body, const char* close) {
  return grammar_.sequence({grammar_.text(open), body, space_, grammar_.text(close)});
}

Expr AnyJson::string(const std::string& value) {
  const Expr in_double = grammar_.text(quoted_json(value));
  if (quotes() == Quotes::kDouble) return in_double;
  return grammar_.either({in_double, grammar_.text(quoted_python(value))});
}

Expr AnyJson::list_of(Expr part) {
  const Expr more = grammar_.repeat(grammar_.sequence({comma_, part}), 0, kUnbounded);
  return grammar_.optional(grammar_.sequence({space_, part, more}));
}

void AnyJson::define_rules() {
  is_defined_ = true;
  value_ = grammar_.declare("value");
  array_ = grammar_.declare("array");
  object_ = grammar_.declare("object");
  const Rule number = grammar_.declare("number");
  Strings strings(grammar_.regex());
  Numbers numbers(grammar_.regex());
  const Expr string = strings.print(grammar_, {}, quotes());
  grammar_.define(number, numbers.print(grammar_, {}));
  grammar_.define(array_, in_brackets(list_of(grammar_.call(value_))));
  const Expr member = grammar_.sequence({string, colon_, grammar_.call(value_)});
  grammar_.define(object_, in_braces(list_of(member)));
  grammar_.define(value_, grammar_.either({grammar_.text(null_word()), grammar_.text(true_word()),
                                           grammar_.text(false_word()), grammar_.call(number),
                                           string, grammar_.call(array_), grammar_.call(object_)}));
}

Expr AnyJson::value() {
  if (!is_defined_) define_rules();
  return grammar_.call(value_);
}

Expr AnyJson::array() {
  if (!is_defined_) define_rules();
  return grammar_.call(array_);
}

Expr AnyJson::object() {
  if (!is_defined_) define_rules();
  return grammar_.call(object_);
}

}  // namespace tgi::guide
