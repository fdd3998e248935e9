// Random grammars over "a" and "b", with the sets of their short texts.
#pragma once

#include <array>
#include <random>
#include <string>
#include <vector>

#include "engine/guide/grammar.h"
#include "tests/guide/languages.h"

namespace tgi::guide {

class RandomGrammar {
 public:
  explicit RandomGrammar(uint32_t seed) : random_(seed) {
    for (size_t i = 0; i < kNumRules; ++i)
      rules_.push_back(grammar.declare("r" + std::to_string(i)));
    for (size_t i = 0; i < kNumRules; ++i) {
      bodies_.push_back(make(2));
      grammar.define(rules_[i], expr_of(bodies_.back()));
    }
    grammar.set_start(rules_[0]);
  }

  // By iteration from nothing, until no rule has a new text.
  Language language() const {
    std::array<Language, kNumRules> known;
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < kNumRules; ++i) {
        Language next = language_of(bodies_[i], known);
        changed |= next.size() != known[i].size();
        known[i] = std::move(next);
      }
    }
    return known[0];
  }

  Grammar grammar;

 private:
  static constexpr size_t kNumRules = 3;
  struct Node {
    uint32_t kind = 0;  // 0: text, 1: rule, 2: sequence, 3: either, 4: repeat
    std::string text{};
    size_t rule = 0;
    int32_t min = 0, max = 0;
    std::vector<Node> parts{};
  };

  Node make(int depth) {
    const auto kind = depth == 0 ? random_() % 2 : random_() % 6;
    if (kind == 0) {
      const std::array<std::string, 4> texts = {"a", "b", "ab", ""};
      return {.kind = 0, .text = texts[random_() % (random_() % 4 == 0 ? 4 : 2)]};
    }
    if (kind == 1) return {.kind = 1, .rule = random_() % kNumRules};
    if (kind == 4) {
      Node node{.kind = 4, .min = static_cast<int32_t>(random_() % 2)};
      node.max = random_() % 2 == 0 ? kUnbounded : node.min + static_cast<int32_t>(random_() % 2);
      node.parts.push_back(make(depth - 1));
      return node;
    }
    Node node{.kind = kind == 3 ? 3U : 2U};
    for (auto i = random_() % 2 + 2; i > 0; --i) node.parts.push_back(make(depth - 1));
    return node;
  }

  Expr expr_of(const Node& node) {
    std::vector<Expr> parts;
    for (const Node& part : node.parts) parts.push_back(expr_of(part));
    switch (node.kind) {
      case 0:
        return grammar.text(node.text);
      case 1:
        return grammar.call(rules_[node.rule]);
      case 2:
        return grammar.sequence(parts);
      case 3:
        return grammar.either(parts);
      default:
        return grammar.repeat(parts[0], node.min, node.max);
    }
  }

  static Language language_of(const Node& node, const std::array<Language, kNumRules>& rules) {
    switch (node.kind) {
      case 0:
        return {node.text};
      case 1:
        return rules[node.rule];
      case 2: {
        Language all{""};
        for (const Node& part : node.parts) all = concatenated(all, language_of(part, rules));
        return all;
      }
      case 3: {
        Language any;
        for (const Node& part : node.parts) any = united(any, language_of(part, rules));
        return any;
      }
      default:
        return repeated(language_of(node.parts[0], rules), node.min, node.max);
    }
  }

  std::mt19937 random_;
  std::vector<Rule> rules_;
  std::vector<Node> bodies_;
};

}  // namespace tgi::guide
