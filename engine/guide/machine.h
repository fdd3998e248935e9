// The pushdown automaton of a grammar while it runs: states, stacks and configurations are made and
// numbered as texts reach them, their steps are remembered.
//
//   state          an expression of a rule: what is still to come in it
//   stack          where to go on when the rule is done: a set of (state of a caller, its stack)
//   configuration  a set of (state, stack), one for each state: all the ways to read the text so
//   far
//
// Stacks are never changed, and equal ones are one. That a stack is a set, in which callers in the
// same state share what is below them, keeps ambiguous grammars small (as the graph-structured
// stacks of M. Tomita, 1985).
//
// Not thread-safe: callers hold mutex(). When the tables pass a bound, begin_work() drops them;
// numbers of before mean nothing then, which generation() tells.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/guide/expr_pool.h"
#include "engine/guide/grammar_program.h"
#include "engine/guide/item_set.h"
#include "engine/guide/state_mask.h"
#include "engine/guide/vocabulary.h"

namespace tgi::guide {

class Machine {
 public:
  // Throws kInvalidArgument when the vocabulary lacks a special token of the grammar. The
  // vocabulary must outlive the machine's use.
  Machine(const GrammarProgram& program, const Vocabulary& vocabulary);

  static constexpr int32_t kDead = -1;  // the configuration that nothing satisfies

  std::mutex& mutex() { return mutex_; }
  int64_t generation() const { return generation_; }
  // Before each call from outside: drops the tables if they are too large. What is done from then
  // on is bounded: all below throws kInvalidArgument when it takes too many steps, too many
  // expressions, or ways to read the text; reset() must follow before the machine is used again.
  void begin_work();
  void reset();
  // Before each token of several that one call takes.
  void start_counting();
  // After the tokens of an answer were taken once more, for the tables had been dropped: what is
  // there now is no reason to drop them again, or a long answer would be taken anew at each call.
  void replayed();

  int32_t start();
  int32_t step(int32_t config, uint8_t byte) { return step_class(config, pool_.class_of(byte)); }
  int32_t step_bytes(int32_t config, std::string_view bytes);
  int32_t step_token(int32_t config, int32_t token_id);  // as the grammar asks for it as such
  int32_t either_of(int32_t one, int32_t other);         // what may follow the one or the other

  // Where items have to differ. step() takes what follows an item as if that could come again:
  // after each byte after which an item may end, settle() has to follow, with the text so far.
  bool has_items() const { return num_lists_ > 0; }
  bool ends_item(int32_t config) const { return configs_[static_cast<size_t>(config)].ends_item; }
  int32_t settle(int32_t config, std::string_view text);
  // step_bytes() with that: `text` is what was before, and has the bytes added.
  int32_t settled_step(int32_t config, std::string_view bytes, std::string& text);
  // Tokens of mask() after which settled_step() may lead elsewhere than step_bytes(): inside of
  // them an item ends and the next begins.
  struct Crossing {
    int32_t token = 0;
    int32_t end = 0;   // of the first item, in the token
    int32_t next = 0;  // where the next begins
  };
  const std::vector<Crossing>& crossings(int32_t config);
  bool may_matter(const Crossing& crossing, std::string& text) const;  // text: as it was, after
  // An item is at most so much longer because another value is used up. Where items are not endless
  // the next value may have any length, so that the way to the end behind each crossing counts.
  int64_t spare_bytes() const { return !has_items() ? 0 : has_scarce_items_ ? kMaxTokens : 8; }
  bool accepts(int32_t config) const { return configs_[static_cast<size_t>(config)].accepts; }
  bool is_stuck(int32_t config);  // nothing may follow

  // The tokens that may follow, without end tokens, and the longest way to the end from where one
  // of them leads, in bytes.
  struct Mask {
    std::vector<uint32_t> bits;
    int32_t max_rest = 0;
  };
  const Mask& mask(int32_t config);

  // The same for those after which the shortest end takes at most `max_tokens` tokens.
  void mask_within(int32_t config, int64_t max_tokens, std::span<uint32_t> bits);

  int32_t shortest_end(int32_t config);  // bytes
  // Of the shortest text, cut into the longest tokens; kMaxTokens when the vocabulary can't write
  // it.
  int32_t num_tokens_to_end(int32_t config);
  static constexpr int32_t kMaxTokens = 1'000'000'000;
  // What every continuation begins with, at most so many bytes of it.
  std::string forced_text(int32_t config, size_t max_bytes);

  // The characters that lead back to where they were read, or else to places from which they lead
  // on to such places again.
  struct Loops {
    std::array<uint64_t, 2> ascii{};  // a bit for each byte
    uint64_t leads = 0;  // of characters of UTF-8 that have more bytes: by lead_bit() of the first
    int32_t max_bytes = std::numeric_limits<int32_t>::max();  // so many of them, at most
    std::vector<int32_t> inside;  // where one is in the middle of those, and the other places
    bool leads_home = true;       // there are no other places
    bool accepts_alike = true;    // all places do, or none
    int32_t longest_rest = -1;    // of all places; -1: not asked for yet
    bool cover(const TokenTrie::Node& below) const {
      return ((below.ascii[0] & ~ascii[0]) | (below.ascii[1] & ~ascii[1])) == 0 &&
             (below.leads & ~leads) == 0 && !below.is_broken && below.height <= max_bytes;
    }
  };

 private:
  static constexpr int32_t kUnknown = -2;
  static constexpr int32_t kBottom = 0;  // the stack below the start

  struct State {
    int32_t expr = 0;
    bool accepts = false;
    bool has_bytes = false;
    bool has_tokens = false;
    bool has_groups = false;  // in groups_
    bool ends_item = false;
    uint32_t first_lead = 0;  // in leads_
    uint32_t num_leads = 0;
    std::shared_ptr<const StateMask> mask;
  };
  struct Edge {
    int32_t next = -1;  // a state; -1: the end of the text
    int32_t below = -1;
    friend auto operator<=>(const Edge&, const Edge&) = default;
  };
  struct Stack {
    uint32_t first_edge = 0;
    uint32_t num_edges = 0;
    int32_t popped = kUnknown;  // the configuration that is left when the rule above is done
    int32_t rest = 0;           // bytes to the end, at least, from there
  };
  struct Config {
    uint32_t first_item = 0;
    uint32_t num_items = 0;
    bool accepts = false;
    bool ends_item = false;
    int32_t rest = kUnknown;           // shortest_end()
    int32_t tokens_to_end = kUnknown;  // num_tokens_to_end()
    int32_t loops = kUnknown;          // in loops_
    int32_t num_visits = 0;            // of walks, until its loops are known
  };

  void trim();
  size_t num_table_bytes() const;
  int32_t state_of(int32_t expr);
  int32_t next_state(int32_t state, int32_t byte_class);
  int32_t push(int32_t below, int32_t next);
  std::span<const Item> items(int32_t config) const {
    const Config& of = configs_[static_cast<size_t>(config)];
    return std::span(items_).subspan(of.first_item, of.num_items);
  }
  size_t row_of(int32_t of) const {
    return static_cast<size_t>(of) * static_cast<size_t>(num_classes_);
  }
  int32_t step_class(int32_t config, int32_t byte_class) {
    const int32_t known = rows_[row_of(config) + static_cast<size_t>(byte_class)];
    return known != kUnknown ? known : make_step(config, byte_class);
  }
  int32_t make_step(int32_t config, int32_t byte_class);
  void enter(int32_t state, int32_t stack);  // into the configuration that is being made
  int32_t finish_config();
  std::span<const Edge> edges(int32_t stack) const {
    const Stack& of = stacks_[static_cast<size_t>(stack)];
    return std::span(edges_).subspan(of.first_edge, of.num_edges);
  }
  int32_t intern_stack(std::span<const Edge> edges);
  int32_t unite(int32_t a, int32_t b, int depth);
  int32_t popped_config(int32_t stack);
  bool has_step(int32_t config);

  // machine_masks.cc
  std::shared_ptr<const StateMask> state_mask(int32_t state, bool with_leaves);
  std::shared_ptr<const StateMask> make_state_mask(int32_t state, bool with_leaves);
  using TokenRange = std::pair<int32_t, int32_t>;  // in the trie's token_ids
  void spread(const std::vector<TokenRange>& tokens, StateMask& mask) const;
  void set_bits(const std::vector<TokenRange>& tokens, std::vector<uint32_t>& bits) const;

  // machine_loops.cc
  struct Loop {
    int32_t body = -1;  // -1: no loop
    int32_t after = 0;
    int32_t min = 0;
    int32_t max = 0;
  };
  Loop loop_of(int32_t state);
  std::shared_ptr<const StateMask> loop_state_mask(int32_t state);  // null: to be walked
  std::shared_ptr<const LoopMask> loop_mask(const Loop& loop);
  std::shared_ptr<const LoopMask> make_loop_mask(const Loop& loop, int32_t endless);

  template <typename Visit, typename VisitAll>
  void walk(int32_t root, int32_t config, Visit visit, VisitAll visit_all);
  void find_children(int32_t node, int32_t config);
  int32_t longest_rest(int32_t config, Loops& loops);
  // Where the tokens lead that may be next, found once for all limits on what comes after them.
  struct Arrival {
    int32_t config = kDead;
    TokenRange tokens;
  };
  const std::vector<Arrival>& arrivals(int32_t config);
  void add_tokens_after(int32_t stack, const StateMask& left, Mask& mask);
  struct TokenStep {
    TokenIds tokens;
    int32_t config = 0;  // after any of them
  };
  std::vector<TokenStep> token_steps(int32_t config);

  // machine_walks.cc
  Loops loops_of_config(int32_t config);
  void add_detours(int32_t config, Loops& loops);
  void find_run(int32_t config, Loops& loops);
  Loops loops_of_round(int32_t state, const std::function<bool(int32_t state)>& is_inside);
  Loops* known_loops(int32_t config);  // null: not asked for often enough

  // machine_items.cc
  int32_t used_with(int32_t used, int32_t value);
  int32_t item_rule(int32_t rule, int32_t used);
  int32_t settled_rest(int32_t rest, int32_t used, int32_t value);

  // machine_ends.cc
  struct Way {
    int32_t config = kDead;
    bool is_token = false;
    int32_t symbol = 0;  // a byte or a token
  };
  Way shortest_way(int32_t config);

  const Vocabulary& vocabulary_;
  std::mutex mutex_;
  ExprPool pool_;
  ExprPool::Mark base_;
  int32_t num_classes_;
  std::vector<int32_t> rule_bodies_;
  size_t num_rules_ = 0;  // of the grammar; behind them in rule_bodies_ are items of used values
  int32_t num_lists_ = 0;
  bool has_scarce_items_ = false;
  std::vector<TokenIds> token_sets_;  // as the grammar numbers them
  int32_t start_expr_ = 0;
  std::vector<int32_t> classes_by_byte_;  // in the order of their least bytes
  std::vector<int32_t> class_sizes_;

  int64_t generation_ = 0;
  bool is_replayed_ = false;
  size_t least_bytes_ = 0;  // so large the tables may be at least
  size_t least_exprs_ = 0;
  std::vector<State> states_;
  std::vector<ExprPool::Lead> leads_;
  std::vector<int32_t> state_of_expr_;
  std::vector<int32_t> state_rows_;  // (num_states, num_classes)
  std::vector<uint8_t> groups_;      // the same: of classes whose steps are equal
  std::vector<Stack> stacks_;
  std::vector<Edge> edges_;
  std::unordered_multimap<uint64_t, int32_t> stack_ids_;  // by hash
  std::unordered_map<uint64_t, int32_t> united_;          // by two stacks
  std::vector<Config> configs_;
  std::vector<Loops> loops_;
  std::vector<Item> items_;
  std::vector<int32_t> rows_;          // (num_configs, num_classes)
  std::vector<int32_t> config_slots_;  // open addressing
  std::unordered_map<int32_t, Mask> masks_;
  size_t num_mask_bytes_ = 0;
  std::unordered_map<int32_t, std::vector<Arrival>> arrivals_;
  size_t num_arrival_bytes_ = 0;

  // Sets of values that the items of a list have used up, numbered; the first ones, one for each
  // list, are empty.
  struct Used {
    int32_t list = 0;
    std::vector<int32_t> values;  // in values_, sorted
  };
  struct ItemRule {
    int32_t used = -1;  // -1: no item
    int32_t first = 0;  // the rule of the grammar
    int32_t length = 0;
  };
  std::vector<Used> used_;
  std::vector<std::string> values_;  // canonical
  std::unordered_map<std::string, int32_t> value_ids_;
  std::vector<ItemRule> item_rules_;                              // by rule
  std::map<std::vector<int32_t>, int32_t> used_ids_;              // by list and values
  std::map<std::pair<int32_t, int32_t>, int32_t> item_rule_ids_;  // by rule of the grammar and set
  std::map<std::pair<int32_t, int32_t>, int32_t> settled_;        // by configuration and value
  std::unordered_map<int32_t, std::vector<Crossing>> crossings_;
  std::vector<int32_t> comma_tokens_;
  size_t num_item_bytes_ = 0;  // of the sets, values and crossings

  ItemSet entered_;  // of the configuration that is being made
  bool made_accepts_ = false;
  std::vector<Item> made_;
  std::vector<std::pair<int32_t, int32_t>> to_visit_;  // of walk(): (node, configuration after it)
};

}  // namespace tgi::guide
