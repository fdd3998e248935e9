// The expressions behind RegexPool and CompiledGrammar: hash-consed nodes, simplified as they are
// made, with derivatives by bytes. Beside what is regular there are two kinds of leaves that only
// grammars have: calls of rules and special tokens; a derivative by a byte drops both.
//
// Not thread-safe. Ids are stable until truncate().
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/guide/regex.h"

namespace tgi::guide {

enum class ExprKind : uint8_t {
  kNothing,
  kEmpty,
  kBytes,       // a: a set
  kSwitch,      // parts: set, expression, set, expression...; the sets are disjoint
  kConcat,      // a, b; a is no concatenation itself
  kEither,      // parts, sorted
  kBoth,        // parts, sorted
  kComplement,  // a
  kRepeat,      // a, min, max
  kEscaped,     // a: texts; min: where in an escape sequence the JSON spelling is
  kCall,        // a: a rule
  kToken,       // a: a special token
  kItemEnd,     // a: a set of used values; of no bytes, where an item ends that has to be a new one
};

struct ExprNode {
  ExprKind kind = ExprKind::kNothing;
  bool nullable = false;
  bool may_be_dead = false;   // the language may be empty although the expression is not kNothing
  bool exact_length = false;  // min_length is the length of a text, not only a lower bound
  bool has_leaves = false;    // calls or special tokens
  bool is_text = false;       // every text of the language is valid UTF-8
  int32_t a = -1;
  int32_t b = -1;
  int32_t min = 0;
  int32_t max = 0;
  int32_t first_part = 0;
  int32_t num_parts = 0;
  int32_t min_length = 0;  // bytes
  int32_t depth = 0;       // of nesting; what follows in a sequence is no deeper
  // Of the content, the same in every pool of this process and unknown outside of it.
  std::array<uint64_t, 2> digest{};
};

// Classes of bytes in groups, the finer the more is told apart.
class ClassGroups {
 public:
  explicit ClassGroups(int32_t num_classes) : group_(static_cast<size_t>(num_classes)) {}

  bool is_finest() const { return num_groups_ == group_.size(); }
  uint8_t group_of(int32_t byte_class) const { return group_[static_cast<size_t>(byte_class)]; }
  void tell_apart(const ByteSet& inside);  // a bit for each class: these from the others
  void tell_all_apart();

 private:
  std::vector<uint8_t> group_;  // by class
  size_t num_groups_ = 1;
};

class ExprPool {
 public:
  explicit ExprPool(const RegexLimits& limits);

  static constexpr int32_t kNothing = 0;
  static constexpr int32_t kEmpty = 1;
  static constexpr int32_t kAllBytes = 2;               // every byte string
  static constexpr int32_t kMaxLength = 1'000'000'000;  // where lengths saturate
  static constexpr int32_t kMaxDepth = 500;

  int32_t bytes(const ByteSet& set);
  int32_t branches(std::span<const std::pair<ByteSet, int32_t>> branches);  // disjoint sets
  int32_t concat(int32_t a, int32_t b);
  int32_t either(std::span<const int32_t> parts);
  int32_t both(std::span<const int32_t> parts);
  int32_t complement(int32_t a);
  int32_t repeat(int32_t a, int32_t min, int32_t max);
  int32_t escaped(int32_t a, int32_t phase);
  int32_t call(int32_t rule, bool nullable, int32_t min_length);
  int32_t token(int32_t set);
  int32_t item_end(int32_t used);
  int32_t mark_text(int32_t a);  // the caller knows that it is
  // All texts of UTF-8, so that an intersection with it can be seen to change nothing.
  void set_any_text(int32_t a) { any_text_ = a; }

  const ExprNode& node(int32_t id) const { return nodes_[static_cast<size_t>(id)]; }
  std::span<const int32_t> parts(const ExprNode& node) const {
    return std::span(parts_).subspan(static_cast<size_t>(node.first_part),
                                     static_cast<size_t>(node.num_parts));
  }
  const ByteSet& set(int32_t id) const { return sets_[static_cast<size_t>(id)]; }
  bool nullable(int32_t id) const { return node(id).nullable; }

  // The texts t for which byte + t is in the language.
  int32_t derive(int32_t id, uint8_t byte);

  // The calls and special tokens that a text of the language may begin with, and what follows each.
  struct Lead {
    bool is_token = false;
    int32_t symbol = 0;  // a rule or a token
    int32_t rest = 0;
  };
  std::vector<Lead> leads(int32_t id);
  // What follows the ends of items that a text begins with; empty: it begins with none.
  std::vector<int32_t> after_item_ends(int32_t id) const;
  // The expression with other leaves: replaced(node) is what comes for one, -1: it stays.
  int32_t with_leaves(int32_t id, const std::function<int32_t(const ExprNode&)>& replaced);
  // Whether a text may begin with a byte outside of all calls.
  bool begins_with_byte(int32_t id) const;

  // Bytes of one class have equal derivatives in all expressions of the pool.
  // Classes that stay in one group have one derivative.
  void tell_apart(int32_t id, ClassGroups& groups);
  int32_t num_classes() const { return static_cast<int32_t>(representatives_.size()); }
  int32_t class_of(uint8_t byte) const { return class_of_[byte]; }
  uint8_t representative(int32_t byte_class) const {
    return representatives_[static_cast<size_t>(byte_class)];
  }

  enum class Alive : uint8_t { kUnknown, kYes, kNo, kTooHard };
  // Whether the language has a text. kTooHard after max_dfa_states derivatives without an answer.
  Alive alive(int32_t id);
  // The same without alternatives that are not known to have a text.
  int32_t live_part(int32_t id);

  // The bytes that its texts may have, and perhaps others: found without following derivatives.
  ByteSet possible_bytes(int32_t id);

  // The length of the shortest text; kMaxLength when there is none or it is too hard.
  int32_t shortest(int32_t id);

  // A copy of an expression of another pool; `rules` and tokens keep their numbers.
  int32_t import(const ExprPool& other, int32_t id, std::unordered_map<int32_t, int32_t>& known);

  struct Mark {
    size_t num_nodes = 0;
    size_t num_parts = 0;
  };
  Mark mark() const { return {nodes_.size(), parts_.size()}; }
  void truncate(const Mark& mark);  // forgets all that was made since

  size_t size() const { return nodes_.size() + parts_.size(); }
  int32_t max_dfa_states() const { return limits_.max_dfa_states; }
  void set_limits(const RegexLimits& limits) { limits_ = limits; }
  // For derivatives while matching, which may be nested a little more deeply.
  void set_limits(int32_t max_nodes, int64_t max_steps);
  // Counts what is done. Throws kInvalidArgument when it is more than max_steps since
  // start_counting().
  void count_steps(size_t steps) {
    num_steps_ += static_cast<int64_t>(steps);
    if (num_steps_ > limits_.max_steps) refuse_more_steps();
  }
  void start_counting() { num_steps_ = 0; }
  int64_t num_steps() const { return num_steps_; }

 private:
  int32_t with_leaves(int32_t id,
                      const std::function<int32_t(const ExprNode&)>& replaced,
                      std::unordered_map<int32_t, int32_t>& known);
  int32_t intern(ExprNode node, std::span<const int32_t> parts);
  int32_t intern_set(const ByteSet& set);
  void rehash();
  bool same(const ExprNode& a, const ExprNode& b, std::span<const int32_t> parts) const;
  void flatten(ExprKind kind, std::span<const int32_t> parts, std::vector<int32_t>& out) const;
  void merge_sets(std::vector<int32_t>& parts, bool unite);
  void merge_repetitions(std::vector<int32_t>& parts);
  void add_leads(int32_t id, std::vector<Lead>& out);
  int32_t derive_concat(int32_t id, uint8_t byte);
  int32_t derive_escaped(const ExprNode& node, uint8_t byte);
  void know_escapes();
  void refine_classes(const ByteSet& set);
  const ByteSet& classes_in(int32_t set);
  [[noreturn]] void refuse_more_steps() const;

  struct Search;
  Search search(int32_t id, bool exact);

  RegexLimits limits_;
  int32_t max_depth_ = kMaxDepth;
  int64_t num_steps_ = 0;
  bool knows_escapes_ = false;
  int32_t any_text_ = -1;
  std::vector<ExprNode> nodes_;
  std::vector<int32_t> parts_;
  std::vector<int32_t> slots_;  // open addressing by digest; -1: free
  std::vector<ByteSet> sets_;
  std::unordered_map<ByteSet, int32_t> set_ids_;
  std::array<uint8_t, 256> class_of_{};
  std::vector<uint8_t> representatives_;
  std::vector<ByteSet> class_members_;
  std::vector<ByteSet> classes_in_;  // by set: a bit for each class, none: not asked for yet
  int32_t num_classes_known_ = 0;    // to classes_in_
  std::unordered_map<int32_t, ByteSet> possible_bytes_;  // of what is no sequence
  std::vector<Alive> alive_;                             // by node; may be shorter
  std::unordered_map<int32_t, int32_t> shortest_;
};

}  // namespace tgi::guide
