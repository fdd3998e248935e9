#include "engine/guide/grammar.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/error.h"

namespace tgi::guide {

Expr Grammar::add(const Node& node) {
  if (nodes_.size() + parts_.size() >= static_cast<size_t>(kMaxNodes)) {
    throw Error(Code::kInvalidArgument, "the grammar is too large: more than " +
                                            std::to_string(kMaxNodes) + " nodes; make it smaller");
  }
  nodes_.push_back(node);
  return {static_cast<int32_t>(nodes_.size()) - 1};
}

Expr Grammar::add_parts(Kind kind, std::span<const Expr> parts) {
  Node node{.kind = kind};
  node.first_part = static_cast<int32_t>(parts_.size());
  node.num_parts = static_cast<int32_t>(parts.size());
  for (const Expr part : parts) parts_.push_back(part.id);
  return add(node);
}

Expr Grammar::empty_text() {
  return terminal(regex_.empty_text());
}

Expr Grammar::nothing() {
  return terminal(regex_.nothing());
}

Expr Grammar::text(std::string_view literal) {
  return terminal(regex_.literal(literal));
}

Expr Grammar::terminal(Regex language) {
  return add({.kind = Kind::kTerminal, .terminal = language});
}

Expr Grammar::call(Rule rule) {
  TGI_CHECK(rule.id >= 0 && static_cast<size_t>(rule.id) < rules_.size());
  return add({.kind = Kind::kCall, .rule = rule.id});
}

Expr Grammar::special_token(std::string_view name) {
  return token_of({.name = std::string(name)});
}

Expr Grammar::token_of(const TokenSet& set) {
  const auto found = std::ranges::find(token_sets_, set);
  const auto id = static_cast<int32_t>(found - token_sets_.begin());
  if (found == token_sets_.end()) token_sets_.push_back(set);
  return add({.kind = Kind::kToken, .token_set = id});
}

Expr Grammar::sequence(std::span<const Expr> parts) {
  if (parts.empty()) return empty_text();
  return parts.size() == 1 ? parts[0] : add_parts(Kind::kSequence, parts);
}

Expr Grammar::sequence(std::initializer_list<Expr> parts) {
  return sequence(std::span(parts.begin(), parts.size()));
}

Expr Grammar::either(std::span<const Expr> parts) {
  if (parts.empty()) return nothing();
  return parts.size() == 1 ? parts[0] : add_parts(Kind::kEither, parts);
}

Expr Grammar::either(std::initializer_list<Expr> parts) {
  return either(std::span(parts.begin(), parts.size()));
}

Expr Grammar::either_side_by_side(std::span<const Expr> parts) {
  const Expr choice = either(parts);
  if (parts.size() > 1) nodes_[static_cast<size_t>(choice.id)].is_side_by_side = true;
  return choice;
}

Expr Grammar::repeat(Expr part, int32_t min, int32_t max) {
  TGI_CHECK(min >= 0 && (max == kUnbounded || max >= min));
  Node node{.kind = Kind::kRepeat, .min = min, .max = max};
  node.first_part = static_cast<int32_t>(parts_.size());
  node.num_parts = 1;
  parts_.push_back(part.id);
  return add(node);
}

Expr Grammar::item_end(int32_t list) {
  return add({.kind = Kind::kItemEnd, .list = list});
}

Expr Grammar::terminal_in_place(Regex language) {
  return add({.kind = Kind::kTerminal, .terminal = language, .is_in_place = true});
}

Rule Grammar::declare_item(std::string_view name, int32_t list, int32_t length, bool is_endless) {
  const Rule rule = declare_whole(name);
  rules_.back().list = list;
  rules_.back().length = length;
  rules_.back().is_endless = is_endless;
  return rule;
}

Rule Grammar::declare_whole(std::string_view name) {
  const Rule rule = declare(name);
  rules_.back().is_whole = true;
  return rule;
}

Rule Grammar::declare(std::string_view name) {
  rules_.push_back({.name = std::string(name)});
  return {static_cast<int32_t>(rules_.size()) - 1};
}

void Grammar::define(Rule rule, Expr body) {
  RuleEntry& entry = rules_.at(static_cast<size_t>(rule.id));
  TGI_CHECK(entry.body < 0);
  entry.body = body.id;
}

}  // namespace tgi::guide
