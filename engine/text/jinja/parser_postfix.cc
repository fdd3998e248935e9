#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/text/jinja/filters.h"
#include "engine/text/jinja/parser_base.h"
#include "engine/text/jinja/tests.h"

namespace tgi::jinja {

ExprPtr ExpressionParser::parse_postfix(ExprPtr node) {
  while (true) {
    if (current().is_operator(".") || current().is_operator("[")) {
      node = parse_subscript(std::move(node));
    } else if (current().is_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr ExpressionParser::parse_subscript(ExprPtr object) {
  const int line = current().line;
  if (!take_operator_if(".")) return parse_bracket_subscript(std::move(object));
  if (current().type == TokenType::kName) {
    auto node = std::make_unique<AttributeExpr>(line);
    node->object = std::move(object);
    node->name = take().text;
    deepen(*node, node->object.get());
    return node;
  }
  if (current().type != TokenType::kNumber || !current().number.is(Type::kInt)) {
    fail_at(line, fmt::format("expected a name or number, got {}", describe(current())));
  }
  auto node = std::make_unique<ItemExpr>(line);
  node->object = std::move(object);
  node->key = std::make_unique<ConstExpr>(line, take().number);
  deepen(*node, node->object.get());
  return node;
}

ExprPtr ExpressionParser::parse_bracket_subscript(ExprPtr object) {
  const int line = take().line;
  const auto at_part_end = [&] { return current().is_operator("]") || current().is_operator(","); };
  ExprPtr start =
      current().is_operator(":") || current().is_operator("]") ? nullptr : parse_expression();
  if (take_operator_if(":")) {
    auto node = std::make_unique<SliceExpr>(line);
    node->object = std::move(object);
    node->start = std::move(start);
    if (!at_part_end() && !current().is_operator(":")) node->stop = parse_expression();
    if (take_operator_if(":") && !at_part_end()) node->step = parse_expression();
    for (const ExprPtr* child : {&node->object, &node->start, &node->stop, &node->step}) {
      deepen(*node, child->get());
    }
    expect_operator("]");
    return node;
  }
  auto node = std::make_unique<ItemExpr>(line);
  node->object = std::move(object);
  if (start != nullptr && !current().is_operator(",")) {
    node->key = std::move(start);
  } else {
    auto tuple = std::make_unique<SequenceExpr>(line, true);
    if (start != nullptr) tuple->items.push_back(std::move(start));
    while (take_operator_if(",")) tuple->items.push_back(parse_expression());
    for (const ExprPtr& item : tuple->items) deepen(*tuple, item.get());
    node->key = std::move(tuple);
  }
  deepen(*node, node->object.get());
  deepen(*node, node->key.get());
  expect_operator("]");
  return node;
}

void ExpressionParser::parse_argument(ArgumentExprs& arguments, int line) {
  const auto require = [&](bool condition) {
    if (!condition) fail_at(line, "invalid order of arguments in a call");
  };
  const bool has_star = arguments.more_positional != nullptr;
  const bool has_double_star = arguments.more_named != nullptr;
  if (take_operator_if("*")) {
    require(!has_star && !has_double_star);
    arguments.more_positional = parse_expression();
  } else if (take_operator_if("**")) {
    require(!has_double_star);
    arguments.more_named = parse_expression();
  } else if (current().type == TokenType::kName && ahead().is_operator("=")) {
    require(!has_double_star);
    std::string name = take().text;
    take();
    for (const auto& [known, value] : arguments.named) {
      if (known == name) fail_at(line, fmt::format("argument '{}' is given twice", name));
    }
    arguments.named.emplace_back(std::move(name), parse_expression());
  } else {
    require(!has_star && !has_double_star && arguments.named.empty());
    arguments.positional.push_back(parse_expression());
  }
}

ArgumentExprs ExpressionParser::parse_arguments() {
  const int line = current().line;
  expect_operator("(");
  ArgumentExprs arguments;
  while (!current().is_operator(")")) {
    parse_argument(arguments, line);
    if (!take_operator_if(",")) break;
  }
  expect_operator(")");
  return arguments;
}

ExprPtr ExpressionParser::parse_call(ExprPtr callee) {
  auto node = std::make_unique<CallExpr>(current().line);
  node->callee = std::move(callee);
  node->arguments = parse_arguments();
  deepen(*node, node->callee.get());
  deepen(*node, node->arguments);
  return node;
}

std::string ExpressionParser::parse_dotted_name() {
  std::string name = take_any_name();
  while (take_operator_if(".")) name += "." + take_any_name();
  return name;
}

void ExpressionParser::note_unknown(int line, std::string_view kind, const std::string& name) {
  if (in_conditional_) return;
  unknown_.push_back(unknown_name_error(kind, name).in(fmt::format("line {}", line)));
}

ExprPtr ExpressionParser::parse_filters(ExprPtr operand, bool starts_inline) {
  while (starts_inline || current().is_operator("|")) {
    if (!starts_inline) take();
    starts_inline = false;
    auto node = std::make_unique<FilterExpr>(current().line);
    node->operand = std::move(operand);
    node->name = parse_dotted_name();
    node->filter = find_filter(node->name);
    if (node->filter == nullptr) note_unknown(node->line, "filter", node->name);
    if (current().is_operator("(")) node->arguments = parse_arguments();
    deepen(*node, node->operand.get());
    deepen(*node, node->arguments);
    operand = std::move(node);
  }
  return operand;
}

bool ExpressionParser::starts_test_argument() const {
  switch (current().type) {
    case TokenType::kString:
    case TokenType::kNumber:
      return true;
    case TokenType::kName:
      return !current().is_name("else") && !current().is_name("or") && !current().is_name("and");
    default:
      return current().is_operator("[") || current().is_operator("{");
  }
}

ExprPtr ExpressionParser::parse_test(ExprPtr operand) {
  auto node = std::make_unique<TestExpr>(take().line);
  node->operand = std::move(operand);
  node->is_negated = take_name_if("not");
  node->name = parse_dotted_name();
  node->test = find_test(node->name);
  if (node->test == nullptr) note_unknown(node->line, "test", node->name);
  if (current().is_operator("(")) {
    node->arguments = parse_arguments();
  } else if (starts_test_argument()) {
    if (current().is_name("is")) fail_at(node->line, "tests can't be chained with 'is'");
    node->arguments.positional.push_back(parse_postfix(parse_primary()));
  }
  deepen(*node, node->operand.get());
  deepen(*node, node->arguments);
  return node;
}

Target ExpressionParser::parse_target(bool with_attributes, EndName end) {
  const Nesting nesting(*this);
  const int line = current().line;
  Target tuple;
  tuple.kind = Target::Kind::kTuple;
  bool has_comma = false;
  while (current().type == TokenType::kName || current().is_operator("(")) {
    if (!end.empty() && current().is_name(end)) break;
    tuple.parts.push_back(parse_single_target(with_attributes));
    if (!take_operator_if(",")) break;
    has_comma = true;
  }
  if (tuple.parts.empty()) {
    fail_at(line, fmt::format("can't assign to {}", describe(current())));
  }
  return has_comma ? tuple : std::move(tuple.parts.front());
}

void ExpressionParser::store_target(const Target& target) {
  if (target.kind == Target::Kind::kName) frames_.store(target.name);
  if (target.kind == Target::Kind::kAttribute) frames_.load(target.name);
  for (const Target& part : target.parts) store_target(part);
}

void ExpressionParser::declare_target(const Target& target) {
  if (target.kind == Target::Kind::kName) frames_.declare(target.name);
  for (const Target& part : target.parts) declare_target(part);
}

Target ExpressionParser::parse_single_target(bool with_attributes) {
  if (take_operator_if("(")) {
    Target inner = parse_target(false);
    expect_operator(")");
    return inner;
  }
  const int line = current().line;
  Target target;
  const std::string name = take_any_name();
  if (with_attributes && take_operator_if(".")) {
    target.kind = Target::Kind::kAttribute;
    target.name = name_id(name);
    target.attribute = take_any_name();
  } else {
    target.name = store_name(name, line);
  }
  return target;
}

}  // namespace tgi::jinja
