// Rules that call themselves before any byte, rewritten. With A = (A1 ... An) the rules that begin
// with one another, Cij what follows Aj where Ai begins with it, and Bi all else of Ai, the system
// Ai = Bi | Aj Cji ... has the solution A = B C*, where C* is the closure of a matrix (S. Kleene,
// 1956).
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/guide/grammar_program.h"

namespace tgi::guide {
namespace {

constexpr size_t kMaxCycle = 12;  // the closure of a matrix grows with the cube

class LeftRecursion {
 public:
  explicit LeftRecursion(GrammarProgram& program) : program_(program), pool_(program.pool) {}

  // The cycles among the rules that begin with each other.
  std::vector<std::vector<int32_t>> cycles() {
    const size_t count = program_.rules.size();
    begins_with_.assign(count, {});
    for (size_t rule = 0; rule < count; ++rule) {
      for (const ExprPool::Lead& lead : pool_.leads(program_.rules[rule].body)) {
        if (!lead.is_token) begins_with_[rule].push_back(lead.symbol);
      }
    }
    index_.assign(count, -1);
    low_.assign(count, 0);
    on_path_.assign(count, 0);
    next_index_ = 0;
    found_.clear();
    for (size_t rule = 0; rule < count; ++rule) {
      if (index_[rule] < 0) find_component(static_cast<int32_t>(rule));
    }
    return std::move(found_);
  }

  void rewrite(const std::vector<int32_t>& cycle) {
    const size_t n = cycle.size();
    if (n > kMaxCycle) refuse(cycle[0]);
    cycle_ = &cycle;
    std::vector<int32_t> follow(n * n, ExprPool::kNothing);  // Cij at j * n + i
    std::vector<int32_t> rest(n);
    for (size_t i = 0; i < n; ++i) {
      const int32_t body = program_.rules[static_cast<size_t>(cycle[i])].body;
      for (const ExprPool::Lead& lead : pool_.leads(body)) {
        const auto found = std::ranges::find(cycle, lead.symbol);
        if (lead.is_token || found == cycle.end()) continue;
        int32_t& entry = follow[static_cast<size_t>(found - cycle.begin()) * n + i];
        entry = either(entry, lead.rest);
      }
      rest[i] = without_leads(body, cycle[i]);
    }
    close(follow, n);
    for (size_t i = 0; i < n; ++i) {
      int32_t body = ExprPool::kNothing;
      for (size_t j = 0; j < n; ++j) {
        if (follow[j * n + i] != ExprPool::kNothing)
          body = either(body, pool_.concat(rest[j], follow[j * n + i]));
      }
      program_.rules[static_cast<size_t>(cycle[i])].body = body;
    }
  }

  [[noreturn]] void refuse(int32_t rule) const {
    throw Error(Code::kInvalidArgument,
                "the rule \"" + program_.rules[static_cast<size_t>(rule)].name +
                    "\" calls itself before any text in a way that can't be rewritten; write the "
                    "repetition as one (x (op x)*)");
  }

 private:
  int32_t either(int32_t a, int32_t b) { return pool_.either(std::array{a, b}); }

  // R. Tarjan's components, without recursion.
  void find_component(int32_t root) {
    std::vector<std::pair<int32_t, size_t>> open{{root, 0}};
    enter(root);
    while (!open.empty()) {
      auto& [rule, next] = open.back();
      const auto at = static_cast<size_t>(rule);
      if (next < begins_with_[at].size()) {
        const int32_t callee = begins_with_[at][next++];
        const auto to = static_cast<size_t>(callee);
        if (index_[to] < 0) {
          enter(callee);
          open.emplace_back(callee, 0);
        } else if (on_path_[to] != 0) {
          low_[at] = std::min(low_[at], index_[to]);
        }
        continue;
      }
      if (low_[at] == index_[at]) leave(rule);
      const int32_t low = low_[at];
      open.pop_back();
      if (!open.empty()) {
        int32_t& above = low_[static_cast<size_t>(open.back().first)];
        above = std::min(above, low);
      }
    }
  }

  void enter(int32_t rule) {
    const auto at = static_cast<size_t>(rule);
    index_[at] = low_[at] = next_index_++;
    on_path_[at] = 1;
    path_.push_back(rule);
  }

  void leave(int32_t root) {
    std::vector<int32_t> component;
    do {
      component.push_back(path_.back());
      on_path_[static_cast<size_t>(path_.back())] = 0;
      path_.pop_back();
    } while (component.back() != root);
    const std::vector<int32_t>& callees = begins_with_[static_cast<size_t>(root)];
    if (component.size() > 1 || std::ranges::find(callees, root) != callees.end())
      found_.push_back(std::move(component));
  }

  bool in_cycle(int32_t rule) const { return std::ranges::find(*cycle_, rule) != cycle_->end(); }

  // All texts of the expression that don't begin with a call of the cycle's rules. What such a call
  // leaves when it stands for the empty text stays.
  int32_t without_leads(int32_t expr, int32_t rule) {
    const ExprNode node = pool_.node(expr);
    if (!node.has_leaves) return expr;
    switch (node.kind) {
      case ExprKind::kCall:
        if (!in_cycle(node.a)) return expr;
        return node.nullable ? ExprPool::kEmpty : ExprPool::kNothing;
      case ExprKind::kEither: {
        std::vector<int32_t> parts(pool_.parts(node).begin(), pool_.parts(node).end());
        for (int32_t& part : parts) part = without_leads(part, rule);
        return pool_.either(parts);
      }
      case ExprKind::kConcat:
        return sequence_without_leads(node.a, node.b, rule);
      case ExprKind::kRepeat: {
        const int32_t more = pool_.repeat(node.a, std::max(0, node.min - 1),
                                          node.max == kUnbounded ? kUnbounded : node.max - 1);
        const int32_t some = sequence_without_leads(node.a, more, rule);
        return node.min == 0 ? either(some, ExprPool::kEmpty) : some;
      }
      default:
        return expr;
    }
  }

  int32_t sequence_without_leads(int32_t head, int32_t tail, int32_t rule) {
    if (!pool_.nullable(head)) return pool_.concat(without_leads(head, rule), tail);
    const int32_t some = pool_.concat(without_leads(not_empty(head, rule), rule), tail);
    // A repetition of what may be empty: its empty rounds add nothing.
    const bool repeats = pool_.node(tail).kind == ExprKind::kRepeat && pool_.node(tail).a == head;
    return either(some, repeats ? ExprPool::kEmpty : without_leads(tail, rule));
  }

  // The texts of the expression but the empty one.
  int32_t not_empty(int32_t expr, int32_t rule) {
    const ExprNode node = pool_.node(expr);
    if (!node.nullable) return expr;
    if (!node.has_leaves) return pool_.both(std::array{expr, pool_.complement(ExprPool::kEmpty)});
    switch (node.kind) {
      case ExprKind::kCall:
        if (in_cycle(node.a)) return ExprPool::kNothing;  // a lead, which is dropped anyway
        if (const int32_t body = program_.rules[static_cast<size_t>(node.a)].body;
            !pool_.node(body).has_leaves) {
          return not_empty(body, rule);
        }
        refuse(rule);
      case ExprKind::kEither: {
        std::vector<int32_t> parts(pool_.parts(node).begin(), pool_.parts(node).end());
        for (int32_t& part : parts) part = not_empty(part, rule);
        return pool_.either(parts);
      }
      case ExprKind::kConcat:
        return either(pool_.concat(not_empty(node.a, rule), node.b), not_empty(node.b, rule));
      case ExprKind::kRepeat:
        return pool_.concat(not_empty(node.a, rule),
                            pool_.repeat(node.a, std::max(0, node.min - 1),
                                         node.max == kUnbounded ? kUnbounded : node.max - 1));
      default:
        return expr;
    }
  }

  void close(std::vector<int32_t>& matrix, size_t n) {
    for (size_t k = 0; k < n; ++k) {
      const int32_t loop = pool_.repeat(matrix[k * n + k], 0, kUnbounded);
      std::vector<int32_t> next = matrix;
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < n; ++j) {
          const int32_t through =
              pool_.concat(pool_.concat(matrix[i * n + k], loop), matrix[k * n + j]);
          next[i * n + j] = either(matrix[i * n + j], through);
        }
      }
      matrix = std::move(next);
    }
    for (size_t i = 0; i < n; ++i) matrix[i * n + i] = either(matrix[i * n + i], ExprPool::kEmpty);
  }

  GrammarProgram& program_;
  ExprPool& pool_;
  const std::vector<int32_t>* cycle_ = nullptr;
  std::vector<std::vector<int32_t>> begins_with_;
  std::vector<int32_t> index_;
  std::vector<int32_t> low_;
  std::vector<uint8_t> on_path_;
  std::vector<int32_t> path_;
  int32_t next_index_ = 0;
  std::vector<std::vector<int32_t>> found_;
};

}  // namespace

void remove_left_recursion(GrammarProgram& program) {
  LeftRecursion recursion(program);
  for (const std::vector<int32_t>& cycle : recursion.cycles()) recursion.rewrite(cycle);
  if (const auto left = recursion.cycles(); !left.empty()) recursion.refuse(left[0].back());
}

}  // namespace tgi::guide
