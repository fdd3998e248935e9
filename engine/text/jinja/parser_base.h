// What the two halves of the parser share: the token stream, the names and the nesting. Private to
// parser.cc and parser_expressions.cc.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "engine/text/jinja/ast.h"
#include "engine/text/jinja/lexer.h"
#include "engine/text/jinja/symbols.h"

namespace tgi::jinja {

class ExpressionParser {
 public:
  ExpressionParser(std::vector<Token> tokens, const Limits& limits);

 protected:
  // What tells where a list of expressions without brackets ends, besides the end of the tag.
  using EndName = std::string_view;

  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take();
  bool take_name_if(std::string_view name);
  bool take_operator_if(std::string_view symbol);
  void expect(TokenType type, std::string_view description);
  void expect_operator(std::string_view symbol);
  void expect_name(std::string_view name);
  std::string take_any_name();

  ExprPtr parse_expression(bool with_conditional = true);
  // One expression, or several with commas between: a tuple.
  ExprPtr parse_tuple(bool with_conditional, EndName end = {}, bool in_parentheses = false);
  // `operand` may be null. With `starts_inline` the first name has no bar before it.
  ExprPtr parse_filters(ExprPtr operand, bool starts_inline = false);
  // Does not report the names to `frames_`: see store_target and declare_target.
  Target parse_target(bool with_attributes, EndName end = {});
  NameId store_name(const std::string& name, int line);
  void store_target(const Target& target);
  void declare_target(const Target& target);
  NameId name_id(const std::string& name);

  // Unknown filters and tests are errors at once, except below an `if`, where templates ask for
  // what may not exist.
  bool in_conditional_ = false;
  std::vector<Error> unknown_;

  // For each macro around this place: which special names its body has mentioned.
  struct SpecialUse {
    bool uses[3] = {false, false, false};    // in the order of SpecialName, from kCallerName
    bool hidden[3] = {false, false, false};  // assigned before: an ordinary name from there on
  };
  std::vector<SpecialUse> macros_;
  int for_depth_ = 0;  // `for` statements around, in which `loop` can't be assigned

  SymbolFrames frames_;
  std::vector<std::string> symbols_;
  const Limits& limits_;

  // REQUIRES: lives on the stack. Bounds the recursion of the parser.
  class Nesting {
   public:
    explicit Nesting(ExpressionParser& parser);
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    ExpressionParser& parser_;
  };

 private:
  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_compare();
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filters);
  ExprPtr parse_unary_with_filters();
  ExprPtr parse_primary();
  ExprPtr parse_name();
  ExprPtr parse_postfix(ExprPtr node);
  ExprPtr parse_subscript(ExprPtr object);
  ExprPtr parse_bracket_subscript(ExprPtr object);
  ExprPtr parse_call(ExprPtr callee);
  ExprPtr parse_test(ExprPtr operand);
  ArgumentExprs parse_arguments();
  void parse_argument(ArgumentExprs& arguments, int line);
  std::string parse_dotted_name();
  bool starts_test_argument() const;
  Target parse_single_target(bool with_attributes);
  struct BinarySymbol {
    std::string_view symbol;
    BinaryOp op;
  };
  // Operators that bind alike, from the left.
  ExprPtr parse_binary_level(ExprPtr (ExpressionParser::*parse_operand)(),
                             std::span<const BinarySymbol> level);
  void note_unknown(int line, std::string_view kind, const std::string& name);
  bool take_comparison(CompareOp& op);

  // Sets the depth of a node from those of its children, and checks it.
  template <typename Node>
  ExprPtr finish(std::unique_ptr<Node> node, std::initializer_list<const Expr*> children);
  void deepen(Expr& node, const Expr* child) const;
  void deepen(Expr& node, const ArgumentExprs& arguments) const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
  std::unordered_map<std::string, NameId> ids_;
};

}  // namespace tgi::jinja
