#include "engine/guide/machine.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace tgi::guide {
namespace {

// Beyond these the tables are dropped and made again; a step or a mask may pass them for a while.
constexpr size_t kMaxTableBytes = size_t{96} << 20;
// Where items have to differ most of the tables belongs to the values of one answer.
constexpr size_t kMaxItemTableBytes = size_t{24} << 20;
constexpr int32_t kMaxExprNodes = 4'000'000;
constexpr int64_t kMaxSteps = 10'000'000;  // of one mask or token
constexpr size_t kMaxItems = 20'000;  // ways to read one text: some grammars have ever more of them
constexpr int kMaxUnited = 500;       // how far down stacks are united

}  // namespace

Machine::Machine(const GrammarProgram& program, const Vocabulary& vocabulary)
    : vocabulary_(vocabulary),
      pool_(program.pool),
      base_(pool_.mark()),
      num_classes_(pool_.num_classes()),
      num_lists_(program.num_lists),
      has_scarce_items_(program.has_scarce_items),
      start_expr_(program.start) {
  pool_.set_limits(kMaxExprNodes, kMaxSteps);
  for (const ProgramRule& rule : program.rules) {
    rule_bodies_.push_back(rule.body);
    item_rules_.push_back({rule.list, static_cast<int32_t>(item_rules_.size()), rule.min_length});
  }
  num_rules_ = rule_bodies_.size();
  for (int32_t list = 0; list < num_lists_; ++list) used_.push_back({list, {}});
  for (const TokenSet& set : program.token_sets)
    token_sets_.push_back(TokenIds::of(set, vocabulary));
  class_sizes_.assign(static_cast<size_t>(num_classes_), 0);
  for (int32_t byte = 0; byte < 256; ++byte) {
    const int32_t c = pool_.class_of(static_cast<uint8_t>(byte));
    if (class_sizes_[static_cast<size_t>(c)]++ == 0) classes_by_byte_.push_back(c);
  }
  const Edge end_of_text;
  intern_stack(std::span(&end_of_text, 1));
  config_slots_.assign(1024, -1);
}

void Machine::begin_work() {
  pool_.start_counting();
  trim();
}

void Machine::start_counting() {
  pool_.start_counting();
}

size_t Machine::num_table_bytes() const {
  return 4 * rows_.size() + 5 * state_rows_.size() + sizeof(Item) * items_.size() +
         sizeof(State) * states_.size() + sizeof(Config) * configs_.size() +
         64 * (stacks_.size() + united_.size()) + sizeof(Edge) * edges_.size() + num_mask_bytes_ +
         256 * (settled_.size() + item_rule_ids_.size()) + num_item_bytes_;
}

void Machine::trim() {
  const size_t most = has_items() ? kMaxItemTableBytes : kMaxTableBytes;
  const size_t num_exprs = pool_.size();
  if (num_table_bytes() >= std::max(most, least_bytes_) ||
      num_exprs >= std::max(static_cast<size_t>(kMaxExprNodes) / 2, least_exprs_)) {
    reset();
  }
}

void Machine::replayed() {
  if (is_replayed_) return;
  is_replayed_ = true;
  least_bytes_ = 2 * num_table_bytes();
  least_exprs_ = pool_.size() + (static_cast<size_t>(kMaxExprNodes) - pool_.size()) / 2;
}

void Machine::reset() {
  ++generation_;
  is_replayed_ = false;
  least_bytes_ = 0;
  least_exprs_ = 0;
  num_item_bytes_ = 0;
  pool_.truncate(base_);
  states_.clear();
  state_of_expr_.clear();
  state_rows_.clear();
  groups_.clear();
  leads_.clear();
  stacks_.clear();
  edges_.clear();
  stack_ids_.clear();
  united_.clear();
  const Edge end_of_text;
  intern_stack(std::span(&end_of_text, 1));
  configs_.clear();
  loops_.clear();
  items_.clear();
  rows_.clear();
  config_slots_.assign(1024, -1);
  masks_.clear();
  num_mask_bytes_ = 0;
  arrivals_.clear();
  num_arrival_bytes_ = 0;
  rule_bodies_.resize(num_rules_);
  item_rules_.resize(num_rules_);
  used_.resize(static_cast<size_t>(num_lists_));
  values_.clear();
  value_ids_.clear();
  used_ids_.clear();
  item_rule_ids_.clear();
  settled_.clear();
  crossings_.clear();
  entered_.clear();
  made_accepts_ = false;
}

int32_t Machine::state_of(int32_t expr) {
  const auto at = static_cast<size_t>(expr);
  if (at >= state_of_expr_.size()) state_of_expr_.resize(std::max(at + 1, pool_.size()), kUnknown);
  if (state_of_expr_[at] != kUnknown) return state_of_expr_[at];
  const auto id = static_cast<int32_t>(states_.size());
  state_of_expr_[at] = id;
  states_.emplace_back();
  state_rows_.resize(state_rows_.size() + static_cast<size_t>(num_classes_), kUnknown);
  groups_.resize(state_rows_.size());
  State state;
  state.expr = expr;
  state.accepts = pool_.nullable(expr);
  state.has_bytes = pool_.begins_with_byte(expr);
  state.ends_item = num_lists_ > 0 && !pool_.after_item_ends(expr).empty();
  state.first_lead = static_cast<uint32_t>(leads_.size());
  for (const ExprPool::Lead& lead : pool_.leads(expr)) {
    state.has_tokens |= lead.is_token;
    leads_.push_back(lead);
    ++state.num_leads;
  }
  TGI_CHECK(!state.ends_item || state.num_leads == 0);
  states_[static_cast<size_t>(id)] = std::move(state);
  return id;
}

int32_t Machine::next_state(int32_t state, int32_t byte_class) {
  const size_t at = static_cast<size_t>(state) * static_cast<size_t>(num_classes_) +
                    static_cast<size_t>(byte_class);
  if (state_rows_[at] != kUnknown) return state_rows_[at];
  const int32_t expr = states_[static_cast<size_t>(state)].expr;
  const int32_t next = pool_.live_part(pool_.derive(expr, pool_.representative(byte_class)));
  // What is too hard to decide counts as dead: from what is known to be alive, a way to the end is
  // known too.
  const bool alive = pool_.alive(next) == ExprPool::Alive::kYes;
  const int32_t target = alive ? state_of(next) : kDead;
  // A derivative costs much, and most bytes have the same: in the middle of a text all that do not
  // end it.
  const size_t row = at - static_cast<size_t>(byte_class);
  if (!states_[static_cast<size_t>(state)].has_groups) {
    states_[static_cast<size_t>(state)].has_groups = true;
    ClassGroups groups(num_classes_);
    pool_.tell_apart(expr, groups);
    for (int32_t c = 0; c < num_classes_; ++c)
      groups_[row + static_cast<size_t>(c)] = groups.group_of(c);
  }
  const uint8_t group = groups_[at];
  for (size_t c = row; c < row + static_cast<size_t>(num_classes_); ++c) {
    if (groups_[c] == group) state_rows_[c] = target;
  }
  return target;
}

int32_t Machine::push(int32_t below, int32_t next) {
  // x*x* is x*: ambiguous repetitions would have stacks of all heights.
  const int32_t expr = states_[static_cast<size_t>(next)].expr;
  const ExprNode& loop = pool_.node(expr);
  if (loop.kind == ExprKind::kRepeat && loop.min == 0 && loop.max == kUnbounded) {
    const auto begins_with_loop = [&](const Edge& edge) {
      if (edge.next < 0) return false;
      const int32_t then = states_[static_cast<size_t>(edge.next)].expr;
      const ExprNode& after = pool_.node(then);
      return then == expr || (after.kind == ExprKind::kConcat && after.a == expr);
    };
    if (std::ranges::all_of(edges(below), begins_with_loop)) return below;
  }
  const Edge edge{next, below};
  return intern_stack(std::span(&edge, 1));
}

// REQUIRES: sorted, no two equal.
int32_t Machine::intern_stack(std::span<const Edge> made) {
  uint64_t hash = 0;
  for (const Edge& edge : made) hash = hash_of(hash ^ hash_of(Item{edge.next, edge.below}));
  const auto [first, last] = stack_ids_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    if (std::ranges::equal(edges(known->second), made)) return known->second;
  }
  const auto id = static_cast<int32_t>(stacks_.size());
  int64_t rest = ExprPool::kMaxLength;
  for (const Edge& edge : made) {
    if (edge.next < 0) {
      rest = 0;
      continue;
    }
    const int32_t own = pool_.shortest(states_[static_cast<size_t>(edge.next)].expr);
    rest = std::min(rest, int64_t{own} + stacks_[static_cast<size_t>(edge.below)].rest);
  }
  stacks_.push_back({.first_edge = static_cast<uint32_t>(edges_.size()),
                     .num_edges = static_cast<uint32_t>(made.size()),
                     .rest = static_cast<int32_t>(rest)});
  edges_.insert(edges_.end(), made.begin(), made.end());
  stack_ids_.emplace(hash, id);
  return id;
}

int32_t Machine::unite(int32_t a, int32_t b, int depth) {
  if (a == b) return a;
  if (a > b) std::swap(a, b);
  const uint64_t key =
      static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32 | static_cast<uint32_t>(b);
  if (const auto known = united_.find(key); known != united_.end()) return known->second;
  std::vector<Edge> all(edges(a).begin(), edges(a).end());
  all.insert(all.end(), edges(b).begin(), edges(b).end());
  pool_.count_steps(all.size());
  std::ranges::sort(all);
  std::vector<Edge> merged;
  for (const Edge& edge : all) {
    const bool shares = !merged.empty() && merged.back().next == edge.next;
    if (shares && (edge.next < 0 || edge == merged.back())) continue;
    if (shares && depth > 0) {
      merged.back().below = unite(merged.back().below, edge.below, depth - 1);
    } else {
      merged.push_back(edge);
    }
  }
  std::ranges::sort(merged);
  merged.erase(std::unique(merged.begin(), merged.end()), merged.end());
  const int32_t result = intern_stack(merged);
  united_.emplace(key, result);
  return result;
}

void Machine::enter(int32_t state, int32_t stack) {
  // Recursion would go as deep as rules begin with rules.
  std::vector<Item> work{{state, stack}};
  while (!work.empty()) {
    const Item item = work.back();
    work.pop_back();
    if (!entered_.insert(item)) continue;
    pool_.count_steps(1);
    if (entered_.items().size() > kMaxItems) {
      throw Error(Code::kInvalidArgument, "the text can be read in more than " +
                                              std::to_string(kMaxItems) +
                                              " ways; make the grammar less ambiguous");
    }
    const State& of = states_[static_cast<size_t>(item.state)];
    if (of.accepts) {
      for (const Edge& edge : edges(item.stack)) {
        if (edge.next < 0) {
          made_accepts_ = true;
        } else {
          work.push_back({edge.next, edge.below});
        }
      }
    }
    const uint32_t first_lead = of.first_lead;
    const uint32_t end_of_leads = first_lead + of.num_leads;
    for (uint32_t i = first_lead; i < end_of_leads; ++i) {
      const ExprPool::Lead lead = leads_[i];
      if (lead.is_token) continue;
      const int32_t callee = state_of(rule_bodies_[static_cast<size_t>(lead.symbol)]);
      // Nothing to come back to: the caller's place on the stack can be saved.
      const bool is_last = lead.rest == ExprPool::kEmpty;
      work.push_back({callee, is_last ? item.stack : push(item.stack, state_of(lead.rest))});
    }
  }
}

int32_t Machine::finish_config() {
  made_.clear();
  for (const Item& item : entered_.items()) {
    const State& of = states_[static_cast<size_t>(item.state)];
    if (of.has_bytes || of.has_tokens) made_.push_back(item);
  }
  entered_.clear();
  std::ranges::sort(made_);
  const auto first = static_cast<uint32_t>(items_.size());
  for (const Item& item : made_) {
    if (items_.size() > first && items_.back().state == item.state) {
      items_.back().stack = unite(items_.back().stack, item.stack, kMaxUnited);
    } else {
      items_.push_back(item);
    }
  }
  const bool accepts = std::exchange(made_accepts_, false);
  const std::span<const Item> made = std::span(items_).subspan(first);
  if (made.empty() && !accepts) return kDead;
  uint64_t hash = accepts ? 1 : 2;
  for (const Item& item : made) hash = hash_of(hash ^ hash_of(item));
  if (configs_.size() * 2 >= config_slots_.size()) {
    std::vector<int32_t> larger(config_slots_.size() * 4, -1);
    for (const int32_t config : config_slots_) {
      if (config < 0) continue;
      uint64_t its_hash = configs_[static_cast<size_t>(config)].accepts ? 1 : 2;
      for (const Item& item : items(config)) its_hash = hash_of(its_hash ^ hash_of(item));
      size_t slot = its_hash & (larger.size() - 1);
      while (larger[slot] >= 0) slot = (slot + 1) & (larger.size() - 1);
      larger[slot] = config;
    }
    config_slots_ = std::move(larger);
  }
  size_t slot = hash & (config_slots_.size() - 1);
  for (; config_slots_[slot] >= 0; slot = (slot + 1) & (config_slots_.size() - 1)) {
    const int32_t known = config_slots_[slot];
    if (configs_[static_cast<size_t>(known)].accepts == accepts &&
        std::ranges::equal(items(known), made)) {
      items_.resize(first);
      return known;
    }
  }
  const auto id = static_cast<int32_t>(configs_.size());
  config_slots_[slot] = id;
  const bool ends_item = num_lists_ > 0 && std::ranges::any_of(made, [&](const Item& item) {
                           return states_[static_cast<size_t>(item.state)].ends_item;
                         });
  configs_.push_back({.first_item = first,
                      .num_items = static_cast<uint32_t>(made.size()),
                      .accepts = accepts,
                      .ends_item = ends_item});
  rows_.resize(rows_.size() + static_cast<size_t>(num_classes_), kUnknown);
  return id;
}

int32_t Machine::start() {
  enter(state_of(start_expr_), kBottom);
  return finish_config();
}

int32_t Machine::make_step(int32_t config, int32_t byte_class) {
  for (uint32_t i = 0; i < configs_[static_cast<size_t>(config)].num_items; ++i) {
    const Item item = items_[configs_[static_cast<size_t>(config)].first_item + i];
    const int32_t next = next_state(item.state, byte_class);
    if (next != kDead) enter(next, item.stack);
  }
  const int32_t next = finish_config();
  rows_[row_of(config) + static_cast<size_t>(byte_class)] = next;
  return next;
}

int32_t Machine::step_bytes(int32_t config, std::string_view bytes) {
  for (size_t i = 0; i < bytes.size() && config != kDead; ++i)
    config = step(config, static_cast<uint8_t>(bytes[i]));
  return config;
}

int32_t Machine::step_token(int32_t config, int32_t token_id) {
  for (uint32_t i = 0; i < configs_[static_cast<size_t>(config)].num_items; ++i) {
    const Item item = items_[configs_[static_cast<size_t>(config)].first_item + i];
    if (!states_[static_cast<size_t>(item.state)].has_tokens) continue;
    const uint32_t first_lead = states_[static_cast<size_t>(item.state)].first_lead;
    const uint32_t num_leads = states_[static_cast<size_t>(item.state)].num_leads;
    for (uint32_t k = first_lead; k < first_lead + num_leads; ++k) {
      const ExprPool::Lead lead = leads_[k];
      if (lead.is_token && token_sets_[static_cast<size_t>(lead.symbol)].holds(token_id))
        enter(state_of(lead.rest), item.stack);
    }
  }
  return finish_config();
}

int32_t Machine::either_of(int32_t one, int32_t other) {
  if (one == kDead || other == kDead || one == other) return one == kDead ? other : one;
  for (const int32_t config : {one, other}) {
    const std::vector<Item> all(items(config).begin(), items(config).end());
    for (const Item& item : all) enter(item.state, item.stack);
    made_accepts_ = made_accepts_ || accepts(config);
  }
  return finish_config();
}

int32_t Machine::popped_config(int32_t stack) {
  if (const int32_t known = stacks_[static_cast<size_t>(stack)].popped; known != kUnknown)
    return known;
  const std::vector<Edge> all(edges(stack).begin(), edges(stack).end());
  for (const Edge& edge : all) {
    if (edge.next >= 0) enter(edge.next, edge.below);
  }
  const int32_t config = finish_config();
  stacks_[static_cast<size_t>(stack)].popped = config;
  return config;
}

bool Machine::has_step(int32_t config) {
  for (int32_t c = 0; c < num_classes_; ++c) {
    if (step_class(config, c) != kDead) return true;
  }
  return false;
}

bool Machine::is_stuck(int32_t config) {
  for (const Item& item : items(config)) {
    if (states_[static_cast<size_t>(item.state)].has_tokens) return false;
  }
  return !has_step(config);
}

}  // namespace tgi::guide
