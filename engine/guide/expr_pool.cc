#include "engine/guide/expr_pool.h"

#include <algorithm>
#include <limits>
#include <random>

#include "base/error.h"

namespace tgi::guide {
namespace {

// Digests are compared across grammars of different users, who should not be able to make two that
// collide: they depend on a number that is drawn once per process.
uint64_t process_secret() {
  static const uint64_t secret = [] {
    std::random_device device;
    return static_cast<uint64_t>(device()) << 32 | device();
  }();
  return secret;
}

uint64_t mix(uint64_t value) {
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93;
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93;
  value ^= value >> 32;
  return value;
}

class Digest {
 public:
  void add(uint64_t value) {
    low_ = mix(low_ ^ value);
    high_ = mix(high_ + value * 0x9e3779b97f4a7c15);
  }
  void add(const std::array<uint64_t, 2>& digest) {
    add(digest[0]);
    add(digest[1]);
  }
  std::array<uint64_t, 2> value() const { return {low_, high_}; }

 private:
  uint64_t low_ = process_secret();
  uint64_t high_ = mix(process_secret() + 1);
};

void add_set(Digest& digest, const ByteSet& set) {
  static const ByteSet low_bits(std::numeric_limits<uint64_t>::max());
  for (size_t shift = 0; shift < 256; shift += 64)
    digest.add(((set >> shift) & low_bits).to_ullong());
}

int32_t add_lengths(int32_t a, int32_t b) {
  return std::min(a + b, ExprPool::kMaxLength);
}

bool is_ascii(const ByteSet& set) {
  return (set >> 128).none();
}

}  // namespace

ExprPool::ExprPool(const RegexLimits& limits) : limits_(limits), slots_(256, -1) {
  representatives_.push_back(0);
  class_members_.emplace_back().set();
  intern(
      {.kind = ExprKind::kNothing, .exact_length = true, .is_text = true, .min_length = kMaxLength},
      {});
  intern({.kind = ExprKind::kEmpty, .nullable = true, .exact_length = true, .is_text = true}, {});
  complement(kNothing);
}

void ExprPool::set_limits(int32_t max_nodes, int64_t max_steps) {
  limits_.max_nodes = max_nodes;
  limits_.max_steps = max_steps;
  max_depth_ = 4 * kMaxDepth;
}

void ExprPool::refuse_more_steps() const {
  throw Error(Code::kInvalidArgument,
              "the expression takes too much work: more than " + std::to_string(limits_.max_steps) +
                  " steps; make repetitions, alternatives and intersections smaller");
}

void ExprPool::refine_classes(const ByteSet& set) {
  // Class c splits where some of its bytes are in the set and its representative is not, or the
  // other way round.
  const size_t num_classes = representatives_.size();
  std::array<int16_t, 256> split_off;
  bool any = false;
  for (size_t c = 0; c < num_classes; ++c) {
    const ByteSet& members = class_members_[c];
    const bool is_in = set[representatives_[c]];
    const ByteSet others = is_in ? members & ~set : members & set;
    split_off[c] = others.any() ? -1 : static_cast<int16_t>(c);
    any |= others.any();
  }
  if (!any) return;
  for (size_t byte = 0; byte < 256; ++byte) {
    const uint8_t from = class_of_[byte];
    if (split_off[from] == from || set[byte] == set[representatives_[from]]) continue;
    if (split_off[from] < 0) {
      split_off[from] = static_cast<int16_t>(representatives_.size());
      representatives_.push_back(static_cast<uint8_t>(byte));
      class_members_.emplace_back();
    }
    const auto to = static_cast<uint8_t>(split_off[from]);
    class_of_[byte] = to;
    class_members_[from].reset(byte);
    class_members_[to].set(byte);
  }
}

int32_t ExprPool::intern_set(const ByteSet& set) {
  const auto [entry, is_new] = set_ids_.try_emplace(set, static_cast<int32_t>(sets_.size()));
  if (is_new) {
    sets_.push_back(set);
    refine_classes(set);
  }
  return entry->second;
}

bool ExprPool::same(const ExprNode& a, const ExprNode& b, std::span<const int32_t> parts) const {
  return a.kind == b.kind && a.a == b.a && a.b == b.b && a.min == b.min && a.max == b.max &&
         a.is_text == b.is_text && std::ranges::equal(this->parts(a), parts);
}

void ExprPool::rehash() {
  slots_.assign(std::max<size_t>(256, slots_.size()), -1);
  while (slots_.size() < nodes_.size() * 2) slots_.assign(slots_.size() * 2, -1);
  for (size_t id = 0; id < nodes_.size(); ++id) {
    size_t slot = nodes_[id].digest[0] & (slots_.size() - 1);
    while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = static_cast<int32_t>(id);
  }
}

int32_t ExprPool::intern(ExprNode node, std::span<const int32_t> parts) {
  count_steps(1 + parts.size());
  Digest digest;
  digest.add(static_cast<uint64_t>(node.kind) << 1 | static_cast<uint64_t>(node.is_text));
  digest.add(static_cast<uint64_t>(static_cast<uint32_t>(node.min)) << 32 |
             static_cast<uint32_t>(node.max));
  switch (node.kind) {
    case ExprKind::kBytes:
      add_set(digest, set(node.a));
      break;
    case ExprKind::kSwitch:
      for (size_t i = 0; i < parts.size(); i += 2) {
        add_set(digest, set(parts[i]));
        digest.add(this->node(parts[i + 1]).digest);
      }
      break;
    case ExprKind::kEither:
    case ExprKind::kBoth: {
      // Parts are sorted by id, which differs from pool to pool: the sum does not.
      std::array<uint64_t, 2> sum{};
      for (const int32_t part : parts) {
        sum[0] += this->node(part).digest[0];
        sum[1] += this->node(part).digest[1];
      }
      digest.add(sum);
      break;
    }
    case ExprKind::kCall:
    case ExprKind::kToken:
    case ExprKind::kItemEnd:
      digest.add(static_cast<uint64_t>(node.a));
      break;
    default:
      if (node.a >= 0) digest.add(this->node(node.a).digest);
      if (node.b >= 0) digest.add(this->node(node.b).digest);
  }
  node.digest = digest.value();
  size_t slot = node.digest[0] & (slots_.size() - 1);
  for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1)) {
    if (same(this->node(slots_[slot]), node, parts)) return slots_[slot];
  }
  if (size() + parts.size() >= static_cast<size_t>(limits_.max_nodes)) {
    throw Error(Code::kInvalidArgument, "the expression is too large: more than " +
                                            std::to_string(limits_.max_nodes) +
                                            " nodes; make repetitions and alternatives smaller");
  }
  if (node.depth > max_depth_) {
    throw Error(Code::kInvalidArgument, "the expression is nested too deeply: more than " +
                                            std::to_string(max_depth_) + " levels");
  }
  node.first_part = static_cast<int32_t>(parts_.size());
  node.num_parts = static_cast<int32_t>(parts.size());
  parts_.insert(parts_.end(), parts.begin(), parts.end());
  const auto id = static_cast<int32_t>(nodes_.size());
  nodes_.push_back(node);
  slots_[slot] = id;
  if (nodes_.size() * 2 > slots_.size()) rehash();
  return id;
}

void ExprPool::truncate(const Mark& mark) {
  // Sets stay: their number is small, and classes depend on them.
  nodes_.resize(mark.num_nodes);
  parts_.resize(mark.num_parts);
  if (alive_.size() > nodes_.size()) alive_.resize(nodes_.size());
  std::erase_if(possible_bytes_, [&](const auto& entry) {
    return static_cast<size_t>(entry.first) >= mark.num_nodes;
  });
  std::erase_if(shortest_, [&](const auto& entry) {
    return static_cast<size_t>(entry.first) >= mark.num_nodes;
  });
  slots_.assign(256, -1);
  rehash();
}

int32_t ExprPool::bytes(const ByteSet& set) {
  if (set.none()) return kNothing;
  return intern({.kind = ExprKind::kBytes,
                 .exact_length = true,
                 .is_text = is_ascii(set),
                 .a = intern_set(set),
                 .min_length = 1},
                {});
}

int32_t ExprPool::branches(std::span<const std::pair<ByteSet, int32_t>> branches) {
  std::vector<std::pair<ByteSet, int32_t>> merged;
  for (const auto& [set, target] : branches) {
    if (target == kNothing || set.none()) continue;
    const auto found = std::ranges::find_if(
        merged, [&, to = target](const auto& branch) { return branch.second == to; });
    if (found == merged.end()) {
      merged.emplace_back(set, target);
    } else {
      found->first |= set;
    }
  }
  if (merged.empty()) return kNothing;
  if (merged.size() == 1) return concat(bytes(merged[0].first), merged[0].second);
  ExprNode node{.kind = ExprKind::kSwitch, .exact_length = true, .min_length = kMaxLength};
  std::vector<int32_t> parts;
  for (const auto& [set, target] : merged) {
    parts.push_back(intern_set(set));
    parts.push_back(target);
    const ExprNode& next = this->node(target);
    node.may_be_dead |= next.may_be_dead;
    node.has_leaves |= next.has_leaves;
    node.exact_length &= next.exact_length;
    node.min_length = std::min(node.min_length, add_lengths(next.min_length, 1));
    node.depth = std::max(node.depth, next.depth + 1);
  }
  return intern(node, parts);
}

int32_t ExprPool::mark_text(int32_t a) {
  if (node(a).is_text) return a;
  ExprNode node = this->node(a);
  const std::vector<int32_t> parts(this->parts(node).begin(), this->parts(node).end());
  node.is_text = true;
  return intern(node, parts);
}

int32_t ExprPool::concat(int32_t a, int32_t b) {
  if (a == kNothing || b == kNothing) return kNothing;
  if (a == kEmpty) return b;
  if (b == kEmpty) return a;
  std::vector<int32_t> heads;
  for (; node(a).kind == ExprKind::kConcat; a = node(a).b) heads.push_back(node(a).a);
  heads.push_back(a);
  for (; !heads.empty(); heads.pop_back()) {
    const ExprNode& head = node(heads.back());
    const ExprNode& tail = node(b);
    b = intern({.kind = ExprKind::kConcat,
                .nullable = head.nullable && tail.nullable,
                .may_be_dead = head.may_be_dead || tail.may_be_dead,
                .exact_length = head.exact_length && tail.exact_length,
                .has_leaves = head.has_leaves || tail.has_leaves,
                .is_text = head.is_text && tail.is_text,
                .a = heads.back(),
                .b = b,
                .min_length = add_lengths(head.min_length, tail.min_length),
                .depth = std::max(head.depth + 1, tail.depth)},
               {});
  }
  return b;
}

int32_t ExprPool::complement(int32_t a) {
  const ExprNode& inner = node(a);
  if (inner.kind == ExprKind::kComplement) return inner.a;
  return intern({.kind = ExprKind::kComplement,
                 .nullable = !inner.nullable,
                 .may_be_dead = a != kNothing,
                 .exact_length = a == kNothing,
                 .a = a,
                 .min_length = inner.nullable ? 1 : 0,
                 .depth = inner.depth + 1},
                {});
}

int32_t ExprPool::repeat(int32_t a, int32_t min, int32_t max) {
  if (max == 0 || a == kEmpty) return kEmpty;
  if (a == kNothing) return min == 0 ? kEmpty : kNothing;
  if (nullable(a)) min = 0;
  if (max == kUnbounded && node(a).kind == ExprKind::kRepeat && node(a).min <= 1 && min <= 1) {
    // (x?)*, (x*)*, (x+)* and the like.
    if (node(a).min == 0) min = 0;
    a = node(a).a;
  }
  if (min == 1 && max == 1) return a;
  const ExprNode& inner = node(a);
  const int64_t length = static_cast<int64_t>(inner.min_length) * min;
  return intern({.kind = ExprKind::kRepeat,
                 .nullable = min == 0,
                 .may_be_dead = inner.may_be_dead && min > 0,
                 .exact_length = inner.exact_length || min == 0,
                 .has_leaves = inner.has_leaves,
                 .is_text = inner.is_text,
                 .a = a,
                 .min = min,
                 .max = max,
                 .min_length = static_cast<int32_t>(std::min<int64_t>(length, kMaxLength)),
                 .depth = inner.depth + 1},
                {});
}

int32_t ExprPool::call(int32_t rule, bool nullable, int32_t min_length) {
  return intern({.kind = ExprKind::kCall,
                 .nullable = nullable,
                 .exact_length = true,
                 .has_leaves = true,
                 .a = rule,
                 .min_length = min_length},
                {});
}

int32_t ExprPool::token(int32_t set) {
  // A token counts as one byte where lengths are compared: it is one token at most.
  return intern({.kind = ExprKind::kToken,
                 .exact_length = true,
                 .has_leaves = true,
                 .a = set,
                 .min_length = 1},
                {});
}

int32_t ExprPool::item_end(int32_t used) {
  return intern({.kind = ExprKind::kItemEnd,
                 .nullable = true,
                 .exact_length = true,
                 .has_leaves = true,
                 .a = used},
                {});
}

}  // namespace tgi::guide
