#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/text/jinja/filters.h"
#include "engine/text/jinja/parser_base.h"
#include "engine/text/jinja/tests.h"

namespace tgi::jinja {

ExpressionParser::ExpressionParser(std::vector<Token> tokens, const Limits& limits)
    : limits_(limits), tokens_(std::move(tokens)) {
  for (const std::string_view special : {"loop", "caller", "varargs", "kwargs"}) {
    name_id(std::string(special));
  }
}

ExpressionParser::Nesting::Nesting(ExpressionParser& parser) : parser_(parser) {
  if (parser_.nesting_ >= parser_.limits_.max_nesting) {
    fail_at(parser_.current().line,
            fmt::format("nested deeper than {} levels", parser_.limits_.max_nesting));
  }
  ++parser_.nesting_;
}

Token ExpressionParser::take() {
  Token token = tokens_[at_];
  if (token.type != TokenType::kEnd) ++at_;
  return token;
}

bool ExpressionParser::take_name_if(std::string_view name) {
  if (!current().is_name(name)) return false;
  take();
  return true;
}

bool ExpressionParser::take_operator_if(std::string_view symbol) {
  if (!current().is_operator(symbol)) return false;
  take();
  return true;
}

void ExpressionParser::expect(TokenType type, std::string_view description) {
  if (current().type != type) {
    fail_at(current().line, fmt::format("expected {}, got {}", description, describe(current())));
  }
  take();
}

void ExpressionParser::expect_operator(std::string_view symbol) {
  if (!take_operator_if(symbol)) {
    fail_at(current().line, fmt::format("expected '{}', got {}", symbol, describe(current())));
  }
}

void ExpressionParser::expect_name(std::string_view name) {
  if (!take_name_if(name)) {
    fail_at(current().line, fmt::format("expected '{}', got {}", name, describe(current())));
  }
}

std::string ExpressionParser::take_any_name() {
  if (current().type != TokenType::kName) {
    fail_at(current().line, fmt::format("expected a name, got {}", describe(current())));
  }
  return take().text;
}

NameId ExpressionParser::name_id(const std::string& name) {
  const auto [place, is_new] = ids_.try_emplace(name, static_cast<NameId>(symbols_.size()));
  if (is_new) symbols_.push_back(name);
  return place->second;
}

NameId ExpressionParser::store_name(const std::string& name, int line) {
  constexpr std::array<std::string_view, 6> kReserved = {"true", "false", "none",
                                                         "True", "False", "None"};
  if (std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end()) {
    fail_at(line, fmt::format("can't assign to '{}'", name));
  }
  const NameId id = name_id(name);
  if (id >= kCallerName && id <= kKwargsName) {
    for (SpecialUse& macro : macros_) macro.hidden[id - kCallerName] = true;
  }
  return id;
}

void ExpressionParser::deepen(Expr& node, const Expr* child) const {
  if (child == nullptr) return;
  node.depth = std::max(node.depth, child->depth + 1);
  if (node.depth > limits_.max_nesting) {
    fail_at(node.line, fmt::format("the expression has more than {} levels", limits_.max_nesting));
  }
}

void ExpressionParser::deepen(Expr& node, const ArgumentExprs& arguments) const {
  for (const ExprPtr& argument : arguments.positional) deepen(node, argument.get());
  for (const auto& [name, argument] : arguments.named) deepen(node, argument.get());
  deepen(node, arguments.more_positional.get());
  deepen(node, arguments.more_named.get());
}

template <typename Node>
ExprPtr ExpressionParser::finish(std::unique_ptr<Node> node,
                                 std::initializer_list<const Expr*> children) {
  for (const Expr* child : children) deepen(*node, child);
  return node;
}

ExprPtr ExpressionParser::parse_expression(bool with_conditional) {
  if (!with_conditional) return parse_or();
  const size_t unknown_before = unknown_.size();
  int line = current().line;
  ExprPtr value = parse_or();
  while (take_name_if("if")) {
    const Nesting nesting(*this);
    const bool outer = std::exchange(in_conditional_, true);
    unknown_.erase(unknown_.begin() + static_cast<std::ptrdiff_t>(unknown_before), unknown_.end());
    auto node = std::make_unique<ConditionalExpr>(line);
    node->then = std::move(value);
    node->test = parse_or();
    if (take_name_if("else")) node->otherwise = parse_expression();
    in_conditional_ = outer;
    const auto children = {static_cast<const Expr*>(node->then.get()),
                           static_cast<const Expr*>(node->test.get()),
                           static_cast<const Expr*>(node->otherwise.get())};
    value = finish(std::move(node), children);
    line = current().line;
  }
  return value;
}

ExprPtr ExpressionParser::parse_tuple(bool with_conditional, EndName end, bool in_parentheses) {
  const int line = current().line;
  auto tuple = std::make_unique<SequenceExpr>(line, true);
  bool has_comma = false;
  while (true) {
    const bool ends = current().type == TokenType::kVariableEnd ||
                      current().type == TokenType::kBlockEnd || current().is_operator(")") ||
                      (!end.empty() && current().is_name(end));
    if (ends) break;
    tuple->items.push_back(parse_expression(with_conditional));
    deepen(*tuple, tuple->items.back().get());
    if (!take_operator_if(",")) break;
    has_comma = true;
  }
  if (has_comma || (tuple->items.empty() && in_parentheses)) return tuple;
  if (tuple->items.empty()) {
    fail_at(line, fmt::format("expected an expression, got {}", describe(current())));
  }
  return std::move(tuple->items.front());
}

ExprPtr ExpressionParser::parse_or() {
  ExprPtr left = parse_and();
  while (current().is_name("or")) {
    auto node = std::make_unique<LogicExpr>(take().line);
    node->left = std::move(left);
    node->right = parse_and();
    const auto children = {static_cast<const Expr*>(node->left.get()),
                           static_cast<const Expr*>(node->right.get())};
    left = finish(std::move(node), children);
  }
  return left;
}

ExprPtr ExpressionParser::parse_and() {
  ExprPtr left = parse_not();
  while (current().is_name("and")) {
    auto node = std::make_unique<LogicExpr>(take().line);
    node->is_and = true;
    node->left = std::move(left);
    node->right = parse_not();
    const auto children = {static_cast<const Expr*>(node->left.get()),
                           static_cast<const Expr*>(node->right.get())};
    left = finish(std::move(node), children);
  }
  return left;
}

ExprPtr ExpressionParser::parse_not() {
  if (!current().is_name("not")) return parse_compare();
  const Nesting nesting(*this);
  auto node = std::make_unique<UnaryExpr>(take().line);
  node->operand = parse_not();
  const Expr* operand = node->operand.get();
  return finish(std::move(node), {operand});
}

bool ExpressionParser::take_comparison(CompareOp& op) {
  constexpr std::array<std::pair<std::string_view, CompareOp>, 6> kSymbols = {{
      {"==", CompareOp::kEqual},
      {"!=", CompareOp::kNotEqual},
      {"<", CompareOp::kLess},
      {"<=", CompareOp::kLessEqual},
      {">", CompareOp::kGreater},
      {">=", CompareOp::kGreaterEqual},
  }};
  for (const auto& [symbol, meaning] : kSymbols) {
    if (!take_operator_if(symbol)) continue;
    op = meaning;
    return true;
  }
  if (take_name_if("in")) {
    op = CompareOp::kIn;
    return true;
  }
  if (!current().is_name("not") || !ahead().is_name("in")) return false;
  take();
  take();
  op = CompareOp::kNotIn;
  return true;
}

ExprPtr ExpressionParser::parse_compare() {
  auto node = std::make_unique<CompareExpr>(current().line);
  node->first = parse_sum();
  CompareOp op = CompareOp::kEqual;
  while (take_comparison(op)) {
    node->rest.emplace_back(op, parse_sum());
    deepen(*node, node->rest.back().second.get());
  }
  if (node->rest.empty()) return std::move(node->first);
  const Expr* first = node->first.get();
  return finish(std::move(node), {first});
}

ExprPtr ExpressionParser::parse_binary_level(ExprPtr (ExpressionParser::*parse_operand)(),
                                             std::span<const BinarySymbol> level) {
  ExprPtr left = (this->*parse_operand)();
  while (current().type == TokenType::kOperator) {
    const auto row = std::find_if(level.begin(), level.end(), [&](const auto& candidate) {
      return candidate.symbol == current().text;
    });
    if (row == level.end()) break;
    auto node = std::make_unique<BinaryExpr>(take().line);
    node->op = row->op;
    node->left = std::move(left);
    node->right = (this->*parse_operand)();
    const auto children = {static_cast<const Expr*>(node->left.get()),
                           static_cast<const Expr*>(node->right.get())};
    left = finish(std::move(node), children);
  }
  return left;
}

ExprPtr ExpressionParser::parse_sum() {
  constexpr std::array<BinarySymbol, 2> kLevel = {{
      {"+", BinaryOp::kAdd},
      {"-", BinaryOp::kSubtract},
  }};
  return parse_binary_level(&ExpressionParser::parse_concat, kLevel);
}

ExprPtr ExpressionParser::parse_concat() {
  auto node = std::make_unique<ConcatExpr>(current().line);
  node->parts.push_back(parse_product());
  while (take_operator_if("~")) node->parts.push_back(parse_product());
  if (node->parts.size() == 1) return std::move(node->parts.front());
  for (const ExprPtr& part : node->parts) deepen(*node, part.get());
  return node;
}

ExprPtr ExpressionParser::parse_product() {
  constexpr std::array<BinarySymbol, 4> kLevel = {{
      {"*", BinaryOp::kMultiply},
      {"/", BinaryOp::kDivide},
      {"//", BinaryOp::kFloorDivide},
      {"%", BinaryOp::kModulo},
  }};
  return parse_binary_level(&ExpressionParser::parse_power, kLevel);
}

ExprPtr ExpressionParser::parse_power() {
  constexpr std::array<BinarySymbol, 1> kLevel = {{{"**", BinaryOp::kPower}}};
  return parse_binary_level(&ExpressionParser::parse_unary_with_filters, kLevel);
}

ExprPtr ExpressionParser::parse_unary_with_filters() {
  return parse_unary(true);
}

ExprPtr ExpressionParser::parse_unary(bool with_filters) {
  const Nesting nesting(*this);
  ExprPtr node;
  if (current().is_operator("-") || current().is_operator("+")) {
    auto sign = std::make_unique<UnaryExpr>(current().line);
    sign->op = take().text == "-" ? UnaryOp::kNegative : UnaryOp::kPositive;
    sign->operand = parse_unary(false);
    const Expr* operand = sign->operand.get();
    node = finish(std::move(sign), {operand});
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  while (with_filters) {
    if (current().is_operator("|")) {
      node = parse_filters(std::move(node));
    } else if (current().is_name("is")) {
      node = parse_test(std::move(node));
    } else if (current().is_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      break;
    }
  }
  return node;
}

ExprPtr ExpressionParser::parse_name() {
  const Token token = take();
  if (token.text == "true" || token.text == "True") {
    return std::make_unique<ConstExpr>(token.line, Value::boolean(true));
  }
  if (token.text == "false" || token.text == "False") {
    return std::make_unique<ConstExpr>(token.line, Value::boolean(false));
  }
  if (token.text == "none" || token.text == "None") {
    return std::make_unique<ConstExpr>(token.line, Value());
  }
  const NameId id = name_id(token.text);
  frames_.load(id);
  if (id >= kCallerName && id <= kKwargsName) {
    for (SpecialUse& macro : macros_) {
      if (!macro.hidden[id - kCallerName]) macro.uses[id - kCallerName] = true;
    }
  }
  return std::make_unique<NameExpr>(token.line, id);
}

ExprPtr ExpressionParser::parse_primary() {
  const int line = current().line;
  if (current().type == TokenType::kName) return parse_name();
  if (current().type == TokenType::kNumber) {
    return std::make_unique<ConstExpr>(line, take().number);
  }
  if (current().type == TokenType::kString) {
    std::string text;
    while (current().type == TokenType::kString) text += take().text;
    return std::make_unique<ConstExpr>(line, Value::string(std::move(text)));
  }
  if (take_operator_if("(")) {
    ExprPtr inner = parse_tuple(true, {}, true);
    expect_operator(")");
    return inner;
  }
  if (take_operator_if("[")) {
    auto list = std::make_unique<SequenceExpr>(line, false);
    while (!current().is_operator("]")) {
      list->items.push_back(parse_expression());
      deepen(*list, list->items.back().get());
      if (!take_operator_if(",")) break;
    }
    expect_operator("]");
    return list;
  }
  if (take_operator_if("{")) {
    auto dict = std::make_unique<DictExpr>(line);
    while (!current().is_operator("}")) {
      ExprPtr key = parse_expression();
      expect_operator(":");
      dict->entries.emplace_back(std::move(key), parse_expression());
      deepen(*dict, dict->entries.back().first.get());
      deepen(*dict, dict->entries.back().second.get());
      if (!take_operator_if(",")) break;
    }
    expect_operator("}");
    return dict;
  }
  fail_at(line, fmt::format("unexpected {}", describe(current())));
}

}  // namespace tgi::jinja
