// Which parts of a grammar can be reached, derive the empty text, derive any text at all, and how
// short: by iteration until nothing changes.
#include <algorithm>
#include <ranges>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/guide/grammar_program.h"

namespace tgi::guide {
namespace {

using Kind = Grammar::Kind;

class FactFinder {
 public:
  FactFinder(Grammar& grammar, GrammarProgram& program) : grammar_(grammar), program_(program) {
    facts_.nodes.resize(grammar.nodes().size());
    facts_.rules.resize(grammar.rules().size());
    facts_.is_used.resize(grammar.nodes().size(), 0);
    facts_.num_calls.resize(grammar.rules().size(), 0);
    facts_.is_recursive.resize(grammar.rules().size(), 0);
    facts_.terminals.resize(grammar.nodes().size(), ExprPool::kNothing);
    used_by_rule_.resize(grammar.rules().size());
  }

  GrammarFacts find() {
    if (grammar_.start().id < 0)
      throw Error(Code::kInvalidArgument, "the grammar has no start rule");
    order_rules();
    import_terminals();
    for (bool changed = true; changed;) {
      changed = false;
      for (const int32_t rule : facts_.rule_order) changed |= update_rule(rule);
    }
    const auto start = static_cast<size_t>(grammar_.start().id);
    if (facts_.rules[start].min_length >= ExprPool::kMaxLength) refuse_empty();
    return std::move(facts_);
  }

 private:
  const Grammar::Node& node(int32_t id) const { return grammar_.nodes()[static_cast<size_t>(id)]; }
  int32_t part(const Grammar::Node& node, int32_t i) const {
    return grammar_.parts()[static_cast<size_t>(node.first_part + i)];
  }
  int32_t body(int32_t rule) const { return grammar_.rules()[static_cast<size_t>(rule)].body; }

  // Collects the nodes of a rule's body that no rule before has, and the rules it calls.
  std::vector<int32_t> collect(int32_t rule) {
    std::vector<int32_t> callees;
    std::vector<int32_t> work{body(rule)};
    std::vector<int32_t>& used = used_by_rule_[static_cast<size_t>(rule)];
    while (!work.empty()) {
      const int32_t id = work.back();
      work.pop_back();
      if (std::exchange(facts_.is_used[static_cast<size_t>(id)], uint8_t{1}) != 0) {
        // Shared with a rule before: what it calls still counts.
        if (node(id).kind == Kind::kCall) callees.push_back(node(id).rule);
        continue;
      }
      used.push_back(id);
      const Grammar::Node& of = node(id);
      if (of.kind == Kind::kCall) callees.push_back(of.rule);
      for (int32_t i = 0; i < of.num_parts; ++i) work.push_back(part(of, i));
    }
    std::ranges::sort(used);  // parts come before what holds them
    for (const int32_t callee : callees) {
      ++facts_.num_calls[static_cast<size_t>(callee)];
      if (body(callee) < 0) {
        throw Error(Code::kInvalidArgument, "the rule \"" + name(callee) + "\" is used by \"" +
                                                name(rule) + "\" and not defined");
      }
    }
    return callees;
  }

  const std::string& name(int32_t rule) const {
    return grammar_.rules()[static_cast<size_t>(rule)].name;
  }

  // Depth first, without recursion.
  void order_rules() {
    struct Open {
      int32_t rule;
      std::vector<int32_t> callees;
      size_t next = 0;
    };
    enum : uint8_t { kNew, kOpen, kDone };
    std::vector<uint8_t> state(grammar_.rules().size(), kNew);
    std::vector<Open> open;
    const auto enter = [&](int32_t rule) {
      state[static_cast<size_t>(rule)] = kOpen;
      open.push_back({rule, collect(rule)});
    };
    if (body(grammar_.start().id) < 0) {
      throw Error(Code::kInvalidArgument,
                  "the start rule \"" + name(grammar_.start().id) + "\" is not defined");
    }
    enter(grammar_.start().id);
    while (!open.empty()) {
      Open& top = open.back();
      if (top.next == top.callees.size()) {
        state[static_cast<size_t>(top.rule)] = kDone;
        facts_.rule_order.push_back(top.rule);
        open.pop_back();
        continue;
      }
      const int32_t callee = top.callees[top.next++];
      if (state[static_cast<size_t>(callee)] == kNew) {
        enter(callee);
      } else if (state[static_cast<size_t>(callee)] == kOpen) {
        // One rule of each cycle is enough: where that is not inlined, the cycle is no trouble.
        facts_.is_recursive[static_cast<size_t>(callee)] = 1;
      }
    }
  }

  void import_terminals() {
    std::unordered_map<int32_t, int32_t> known;
    for (size_t id = 0; id < facts_.is_used.size(); ++id) {
      const Grammar::Node& of = grammar_.nodes()[id];
      if (facts_.is_used[id] == 0 || of.kind != Kind::kTerminal) continue;
      ExprPool& pool = program_.pool;
      const int32_t expr = pool.import(grammar_.regex().expressions(), of.terminal.id, known);
      if (pool.alive(expr) == ExprPool::Alive::kTooHard) {
        throw Error(Code::kInvalidArgument,
                    "whether any text satisfies a part of the grammar takes more than " +
                        std::to_string(pool.max_dfa_states()) +
                        " states to find out; make repetitions and intersections smaller");
      }
      const bool is_alive = pool.alive(expr) == ExprPool::Alive::kYes;
      if (is_alive && pool.shortest(expr) >= ExprPool::kMaxLength) {
        throw Error(Code::kInvalidArgument,
                    "the shortest text of a part of the grammar takes more than " +
                        std::to_string(pool.max_dfa_states()) +
                        " states to find; make repetitions and intersections smaller");
      }
      facts_.terminals[id] = is_alive ? expr : ExprPool::kNothing;
    }
    const auto any_text = known.find(grammar_.regex().any_text().id);
    if (any_text != known.end()) program_.pool.set_any_text(any_text->second);
  }

  // Nodes that rules share belong to the first of them, so that what changes there counts too.
  bool update_rule(int32_t rule) {
    bool changed = false;
    const auto update = [&](GrammarFacts::Fact& known, const GrammarFacts::Fact& now) {
      changed |= now.nullable != known.nullable || now.min_length != known.min_length;
      known = now;
    };
    for (const int32_t id : used_by_rule_[static_cast<size_t>(rule)])
      update(facts_.nodes[static_cast<size_t>(id)], fact_of(id));
    GrammarFacts::Fact fact = facts_.nodes[static_cast<size_t>(body(rule))];
    fact.min_length = std::max(fact.min_length, grammar_.rules()[static_cast<size_t>(rule)].length);
    update(facts_.rules[static_cast<size_t>(rule)], fact);
    return changed;
  }

  GrammarFacts::Fact fact_of(int32_t id) {
    const Grammar::Node& of = node(id);
    const auto fact_of_part = [&](int32_t i) {
      return facts_.nodes[static_cast<size_t>(part(of, i))];
    };
    const auto saturated = [](int64_t length) {
      return static_cast<int32_t>(std::min<int64_t>(length, ExprPool::kMaxLength));
    };
    switch (of.kind) {
      case Kind::kTerminal: {
        const int32_t expr = facts_.terminals[static_cast<size_t>(id)];
        return {program_.pool.nullable(expr), program_.pool.shortest(expr)};
      }
      case Kind::kToken:
        return {false, 1};
      case Kind::kItemEnd:
        return {true, 0};
      case Kind::kCall:
        return facts_.rules[static_cast<size_t>(of.rule)];
      case Kind::kSequence: {
        GrammarFacts::Fact all{true, 0};
        for (int32_t i = 0; i < of.num_parts; ++i) {
          const GrammarFacts::Fact one = fact_of_part(i);
          all.nullable &= one.nullable;
          all.min_length = saturated(int64_t{all.min_length} + one.min_length);
        }
        return all;
      }
      case Kind::kEither: {
        GrammarFacts::Fact any;
        for (int32_t i = 0; i < of.num_parts; ++i) {
          const GrammarFacts::Fact one = fact_of_part(i);
          any.nullable |= one.nullable;
          any.min_length = std::min(any.min_length, one.min_length);
        }
        return any;
      }
      case Kind::kRepeat: {
        const GrammarFacts::Fact one = fact_of_part(0);
        return {one.nullable || of.min == 0, saturated(int64_t{one.min_length} * of.min)};
      }
    }
    return {};
  }

  bool is_dead(int32_t id) const {
    return facts_.nodes[static_cast<size_t>(id)].min_length >= ExprPool::kMaxLength;
  }

  // Whether each rule has any text, however long.
  std::vector<uint8_t> rules_with_text() const {
    std::vector<uint8_t> nodes(grammar_.nodes().size(), 0);
    std::vector<uint8_t> rules(grammar_.rules().size(), 0);
    const auto has_text = [&](int32_t id) {
      const Grammar::Node& of = node(id);
      const auto has = [&](int32_t i) { return nodes[static_cast<size_t>(part(of, i))] != 0; };
      const auto parts = std::views::iota(0, of.num_parts);
      if (of.kind == Kind::kCall) return rules[static_cast<size_t>(of.rule)] != 0;
      if (of.kind == Kind::kSequence) return std::ranges::all_of(parts, has);
      if (of.kind == Kind::kEither) return std::ranges::any_of(parts, has);
      if (of.kind == Kind::kRepeat) return of.min == 0 || has(0);
      return of.kind != Kind::kTerminal ||
             facts_.terminals[static_cast<size_t>(id)] != ExprPool::kNothing;
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (const int32_t rule : facts_.rule_order) {
        for (const int32_t id : used_by_rule_[static_cast<size_t>(rule)])
          nodes[static_cast<size_t>(id)] = has_text(id) ? 1 : 0;
        const uint8_t now = nodes[static_cast<size_t>(body(rule))];
        changed |= std::exchange(rules[static_cast<size_t>(rule)], now) != now;
      }
    }
    return rules;
  }

  // Follows what is missing down to a rule that can blame nobody else.
  [[noreturn]] void refuse_empty() {
    int32_t rule = grammar_.start().id;
    if (rules_with_text()[static_cast<size_t>(rule)] != 0) {
      throw Error(Code::kInvalidArgument, "the shortest text of the rule \"" + name(rule) +
                                              "\" has more than " +
                                              std::to_string(ExprPool::kMaxLength) + " bytes");
    }
    std::string schema;  // the innermost, whose rules begin as paths in it do
    std::vector<uint8_t> seen(grammar_.rules().size(), 0);
    bool never_ends = false;
    for (int32_t id = body(rule); id >= 0;) {
      const Grammar::Node& of = node(id);
      if (of.kind == Kind::kCall) {
        if (std::exchange(seen[static_cast<size_t>(of.rule)], uint8_t{1}) != 0) {
          never_ends = true;
          break;
        }
        rule = of.rule;
        if (name(rule).starts_with('#')) schema = name(rule);
        id = body(rule);
        continue;
      }
      int32_t next = -1;
      for (int32_t i = 0; i < of.num_parts && next < 0; ++i) {
        if (is_dead(part(of, i))) next = part(of, i);
      }
      id = next;
    }
    if (!schema.empty()) {
      throw Error(Code::kInvalidArgument,
                  "schema " + schema + ": no value satisfies all that is asked of it");
    }
    throw Error(Code::kInvalidArgument,
                "no text can satisfy the grammar: the rule \"" + name(rule) + "\" " +
                    (never_ends ? "needs itself without end" : "matches nothing"));
  }

  Grammar& grammar_;
  GrammarProgram& program_;
  GrammarFacts facts_;
  std::vector<std::vector<int32_t>> used_by_rule_;
};

}  // namespace

GrammarFacts find_facts(Grammar& grammar, GrammarProgram& program) {
  return FactFinder(grammar, program).find();
}

}  // namespace tgi::guide
