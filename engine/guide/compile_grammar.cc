// From the tree of a grammar to expressions with calls. What is small is put in place of its calls.
// Loops over many characters ("any JSON string", "[a-z]*") become rules of their own, so that what
// the vocabulary has to say about them is found once and not once for each place that has one; what
// such a loop is made of is one expression, however the grammar spells it.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/guide/grammar_program.h"

namespace tgi::guide {
namespace {

using Kind = Grammar::Kind;

constexpr size_t kThinSet = 2;           // bytes: "a", [aA]
constexpr size_t kNarrowSet = 6;         // ... white space
constexpr int32_t kLoop = 4;             // from so many rounds on, a repetition is a loop
constexpr int32_t kMaxCode = 12;         // ... but not of just so many: the digits of \u0000
constexpr int32_t kMaxBorder = 4;        // bytes of literals around a loop: its quotes
constexpr int32_t kMaxInlinedSize = 24;  // of an expression as a tree
constexpr int32_t kMaxInlinedDepth = 40;

class GrammarCompiler {
 public:
  GrammarCompiler(Grammar& grammar, GrammarProgram& program)
      : grammar_(grammar), program_(program), facts_(find_facts(grammar, program)) {
    converted_.resize(grammar.nodes().size(), kNotYet);
    plain_.resize(grammar.nodes().size(), kNotRegular);
  }

  void compile() {
    program_.token_sets = grammar_.token_sets();
    program_.num_lists = grammar_.num_lists();
    program_.has_scarce_items = std::ranges::any_of(
        grammar_.rules(), [](const auto& rule) { return rule.list >= 0 && !rule.is_endless; });
    if (program_.num_lists > 0) {
      // Values that are used up may have any bytes, and the classes are those of the machine.
      for (size_t byte = 0; byte < 256; ++byte) program_.pool.bytes(ByteSet{}.set(byte));
    }
    for (size_t i = 0; i < facts_.rules.size(); ++i) {
      program_.rules.push_back({grammar_.rules()[i].name, ExprPool::kNothing,
                                facts_.rules[i].nullable, facts_.rules[i].min_length,
                                grammar_.rules()[i].list});
    }
    for (const int32_t rule : facts_.rule_order) convert_rule(rule);
    program_.start = call_of(grammar_.start().id);
  }

 private:
  static constexpr int32_t kNotYet = -1;
  static constexpr int32_t kNotRegular = -1;

  ProgramRule& rule_at(int32_t rule) { return program_.rules[static_cast<size_t>(rule)]; }

  void convert_rule(int32_t rule) {
    const int32_t body = grammar_.rules()[static_cast<size_t>(rule)].body;
    std::vector<int32_t> work{body};
    std::vector<int32_t> found;
    while (!work.empty()) {
      const int32_t id = work.back();
      work.pop_back();
      if (converted_[static_cast<size_t>(id)] != kNotYet) continue;
      found.push_back(id);
      const Grammar::Node& node = grammar_.nodes()[static_cast<size_t>(id)];
      for (int32_t i = 0; i < node.num_parts; ++i)
        work.push_back(grammar_.parts()[static_cast<size_t>(node.first_part + i)]);
    }
    std::ranges::sort(found);  // parts come before what holds them
    for (const int32_t id : found) {
      int32_t& result = converted_[static_cast<size_t>(id)];
      if (result != kNotYet) continue;
      plain_[static_cast<size_t>(id)] = make_plain(id);
      result = convert(id);
    }
    const bool is_item = grammar_.rules()[static_cast<size_t>(rule)].list >= 0;
    rule_at(rule).body = (is_item ? plain_ : converted_)[static_cast<size_t>(body)];
    is_converted_.insert(rule);
  }

  const Grammar::Node& node_at(int32_t id) const {
    return grammar_.nodes()[static_cast<size_t>(id)];
  }
  bool is_dead(int32_t id) const {
    return facts_.nodes[static_cast<size_t>(id)].min_length >= ExprPool::kMaxLength;
  }
  std::vector<int32_t> of_parts(const Grammar::Node& node, const std::vector<int32_t>& of) const {
    std::vector<int32_t> result;
    for (int32_t i = 0; i < node.num_parts; ++i) {
      const int32_t part = grammar_.parts()[static_cast<size_t>(node.first_part + i)];
      result.push_back(of[static_cast<size_t>(part)]);
    }
    return result;
  }

  // The expression without any calls, where there is one.
  int32_t make_plain(int32_t id) {
    const Grammar::Node& node = node_at(id);
    if (is_dead(id)) return ExprPool::kNothing;
    if (node.kind == Kind::kTerminal) return facts_.terminals[static_cast<size_t>(id)];
    if (node.kind == Kind::kToken || node.kind == Kind::kItemEnd) return kNotRegular;
    if (node.kind == Kind::kCall) {
      if (grammar_.rules()[static_cast<size_t>(node.rule)].is_whole) return kNotRegular;
      const bool is_known = is_converted_.contains(node.rule) &&
                            facts_.is_recursive[static_cast<size_t>(node.rule)] == 0;
      if (!is_known) return kNotRegular;
      const int32_t body = grammar_.rules()[static_cast<size_t>(node.rule)].body;
      const int32_t plain = plain_[static_cast<size_t>(body)];
      const bool fits = plain != kNotRegular && program_.pool.node(plain).depth <= kMaxInlinedDepth;
      return fits ? plain : kNotRegular;
    }
    const std::vector<int32_t> parts = of_parts(node, plain_);
    if (std::ranges::find(parts, kNotRegular) != parts.end()) return kNotRegular;
    return combine(node, parts);
  }

  int32_t combine(const Grammar::Node& node, std::span<const int32_t> parts) {
    if (node.kind == Kind::kEither) return program_.pool.either(parts);
    if (node.kind == Kind::kRepeat) return program_.pool.repeat(parts[0], node.min, node.max);
    int32_t result = ExprPool::kEmpty;
    for (size_t end = parts.size(); end > 0; --end)
      result = program_.pool.concat(parts[end - 1], result);
    return result;
  }

  int32_t convert(int32_t id) {
    const Grammar::Node& node = node_at(id);
    if (is_dead(id)) return ExprPool::kNothing;
    const int32_t plain = plain_[static_cast<size_t>(id)];
    switch (node.kind) {
      case Kind::kTerminal:
        return node.is_in_place ? plain : terminal(plain);
      case Kind::kItemEnd:
        return program_.pool.item_end(node.list);
      case Kind::kToken:
        return program_.pool.token(node.token_set);
      case Kind::kCall:
        return call_of(node.rule);
      default:
        break;
    }
    if (node.is_side_by_side) return side_by_side(node);
    if (plain != kNotRegular && is_one_piece(node)) return terminal(plain);
    return combine(node, of_parts(node, converted_));
  }

  // Without calls where the alternatives begin: one state stands in all of them, and one walk over
  // the vocabulary finds what they allow together.
  int32_t side_by_side(const Grammar::Node& node) {
    std::vector<int32_t> alternatives;
    for (int32_t i = 0; i < node.num_parts; ++i) {
      const int32_t id = grammar_.parts()[static_cast<size_t>(node.first_part + i)];
      const Grammar::Node& part = node_at(id);
      int32_t head = id;
      int32_t tail = ExprPool::kEmpty;
      if (part.kind == Kind::kSequence) {
        const std::vector<int32_t> rest = of_parts(part, converted_);
        for (size_t k = rest.size() - 1; k > 0; --k) tail = program_.pool.concat(rest[k], tail);
        head = grammar_.parts()[static_cast<size_t>(part.first_part)];
      }
      const int32_t plain = plain_[static_cast<size_t>(head)];
      alternatives.push_back(program_.pool.concat(
          plain != kNotRegular ? plain : converted_[static_cast<size_t>(head)], tail));
    }
    return terminal(program_.pool.either(alternatives));
  }

  // Whether an expression without calls is better not divided: around one loop at most there is
  // nothing but its borders.
  bool is_one_piece(const Grammar::Node& node) {
    int32_t num_loops = 0;
    int32_t num_wide = 0;
    int64_t border = 0;
    for (const int32_t part : of_parts(node, plain_)) {
      const Width width = width_of(part);
      num_loops += num_loops_of(width);
      num_wide += static_cast<int32_t>(width != Width::kNarrow);
      if (width == Width::kNarrow) border += program_.pool.node(part).min_length;
    }
    if (num_loops == 0) return true;
    return node.kind == Kind::kSequence && num_loops == 1 && num_wide == 1 && border <= kMaxBorder;
  }

  // In rising order. kLoop: one, with its borders; kLoops: several, or one beside other things.
  enum class Width : uint8_t { kNarrow, kWide, kLoop, kLoops };

  static int32_t num_loops_of(Width width) {
    return width == Width::kLoops ? 2 : static_cast<int32_t>(width == Width::kLoop);
  }

  // Whether an expression without calls has large sets of bytes, and loops over them.
  Width width_of(int32_t expr) {
    if (const auto known = widths_.find(expr); known != widths_.end()) return known->second;
    const ExprPool& pool = program_.pool;
    Width width = Width::kNarrow;
    int64_t border = 0;
    int32_t at = expr;
    const auto add_part = [&](int32_t part, Width its) {
      if (its == Width::kNarrow) border += pool.node(part).min_length;
      const bool has_more = width != Width::kNarrow && its != Width::kNarrow;
      width = std::max(width, its);
      if (has_more && width == Width::kLoop) width = Width::kLoops;
    };
    for (; pool.node(at).kind == ExprKind::kConcat; at = pool.node(at).b)
      add_part(pool.node(at).a, width_of(pool.node(at).a));
    add_part(at, at == expr ? own_width(at) : width_of(at));
    if (width == Width::kLoop && at != expr && border > kMaxBorder) width = Width::kLoops;
    widths_[expr] = width;
    return width;
  }

  // REQUIRES: no concatenation.
  Width own_width(int32_t expr) {
    const ExprPool& pool = program_.pool;
    const ExprNode& node = pool.node(expr);
    switch (node.kind) {
      case ExprKind::kBytes:
        return pool.set(node.a).count() > kNarrowSet ? Width::kWide : Width::kNarrow;
      case ExprKind::kSwitch:
        return Width::kWide;
      case ExprKind::kEither: {
        Width width = Width::kNarrow;
        for (const int32_t part : pool.parts(node)) width = std::max(width, width_of(part));
        return width == Width::kLoop ? Width::kLoops : width;
      }
      case ExprKind::kRepeat: {
        const bool is_code = node.min == node.max && node.max <= kMaxCode;
        const bool is_loop = !is_code && (node.max == kUnbounded || node.max >= kLoop);
        const Width body = width_of(node.a);
        if (body == Width::kNarrow) return body;
        if (body == Width::kWide) return is_loop ? Width::kLoop : body;
        return Width::kLoops;
      }
      case ExprKind::kBoth:
      case ExprKind::kComplement:
      case ExprKind::kEscaped:
        return Width::kLoop;
      default:
        return Width::kNarrow;
    }
  }

  int32_t call_of(int32_t rule) {
    const auto at = static_cast<size_t>(rule);
    if (facts_.rules[at].min_length >= ExprPool::kMaxLength) return ExprPool::kNothing;
    const ProgramRule& callee = program_.rules[at];
    const bool may_inline = !grammar_.rules()[at].is_whole && is_converted_.contains(rule) &&
                            facts_.is_recursive[at] == 0 &&
                            program_.pool.node(callee.body).depth <= kMaxInlinedDepth;
    if (may_inline && (facts_.num_calls[at] == 1 || size_of(callee.body) <= kMaxInlinedSize))
      return callee.body;
    return program_.call(rule);
  }

  // As a tree, and at most a little more than what counts as small.
  int32_t size_of(int32_t expr) const {
    int32_t size = 0;
    std::vector<int32_t> work{expr};
    while (!work.empty() && size <= kMaxInlinedSize) {
      ++size;
      const ExprNode& node = program_.pool.node(work.back());
      work.pop_back();
      if (node.kind == ExprKind::kConcat) work.push_back(node.b);
      if (node.kind == ExprKind::kConcat || node.kind == ExprKind::kRepeat) work.push_back(node.a);
      if (node.kind == ExprKind::kEither)
        for (const int32_t part : program_.pool.parts(node)) work.push_back(part);
    }
    return size;
  }

  int32_t terminal(int32_t expr) {
    if (is_thin(expr)) return expr;
    const auto [entry, is_new] =
        terminal_rules_.try_emplace(expr, static_cast<int32_t>(program_.rules.size()));
    if (is_new) {
      ExprPool& pool = program_.pool;
      program_.rules.push_back({"a terminal", expr, pool.nullable(expr), pool.shortest(expr), -1});
    }
    return program_.call(entry->second);
  }

  // Literals, and little more: few tokens fit into them.
  bool is_thin(int32_t expr) {
    if (expr <= ExprPool::kEmpty) return true;
    if (const auto known = thin_.find(expr); known != thin_.end()) return known->second;
    const ExprPool& pool = program_.pool;
    bool thin = true;
    int32_t at = expr;
    for (; thin && pool.node(at).kind == ExprKind::kConcat; at = pool.node(at).b)
      thin = is_thin(pool.node(at).a);
    const ExprNode& node = pool.node(at);
    switch (node.kind) {
      case ExprKind::kNothing:
      case ExprKind::kEmpty:
        break;
      case ExprKind::kBytes:
        thin &= pool.set(node.a).count() <= kThinSet;
        break;
      case ExprKind::kEither:
        for (const int32_t part : pool.parts(node)) thin = thin && is_thin(part);
        break;
      case ExprKind::kRepeat:
        thin = thin && node.max == 1 && is_thin(node.a);
        break;
      default:
        thin = false;
    }
    thin_[expr] = thin;
    return thin;
  }

  Grammar& grammar_;
  GrammarProgram& program_;
  GrammarFacts facts_;
  std::vector<int32_t> converted_;                       // by node
  std::vector<int32_t> plain_;                           // by node
  std::unordered_set<int32_t> is_converted_;             // rules
  std::unordered_map<int32_t, int32_t> terminal_rules_;  // by expression
  std::unordered_map<int32_t, bool> thin_;               // by expression
  std::unordered_map<int32_t, Width> widths_;            // by expression
};

}  // namespace

std::shared_ptr<const CompiledGrammar> compile_grammar(Grammar& grammar,
                                                       const CompileLimits& limits) {
  RegexLimits regex_limits;
  regex_limits.max_nodes = limits.max_states;
  regex_limits.max_steps = limits.max_steps;
  auto program = std::make_unique<GrammarProgram>(regex_limits);
  GrammarCompiler(grammar, *program).compile();
  remove_left_recursion(*program);
  return std::make_shared<const CompiledGrammar>(std::move(program));
}

}  // namespace tgi::guide
