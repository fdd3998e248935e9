// Derivatives of expressions, and what is found by following them: whether a language has a text,
// and how long the shortest is.
#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/guide/expr_pool.h"

namespace tgi::guide {
namespace {

// Where in the JSON spelling of a character an expression of kind kEscaped is: its `min`. The value
// of the hexadecimal digits so far stands above the lowest eight bits.
enum Phase : int32_t {
  kPlain = 0,
  kAfterBackslash = 1,
  kHexDigits = 2,  // 2 to 5: so many plus two digits of \uXXXX were seen
};

int32_t hex_digit(uint8_t byte) {
  if (byte >= '0' && byte <= '9') return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
  return -1;
}

// The bytes that are still to come in this spelling, at least.
int32_t rest_of_escape(int32_t phase) {
  constexpr int32_t kRest[] = {0, 1, 4, 3, 2, 1};
  return kRest[phase & 0xFF];
}

bool has_to_be_escaped(int32_t character) {
  return character < 0x20 || character == '"' || character == '\\';
}

// Whether \u00XX may go on with `value`, which so many of its digits come to.
bool may_be_escaped(int32_t value, int32_t num_digits) {
  if (num_digits < 3) return value == 0;
  if (num_digits == 3) return value < 2 || value == '"' >> 4 || value == '\\' >> 4;
  return has_to_be_escaped(value);
}

// What an escape of one letter stands for; only of characters that have to be escaped.
int32_t simple_escape(uint8_t byte) {
  constexpr std::string_view kFrom = "\"\\bfnrt";
  constexpr std::string_view kTo = "\"\\\b\f\n\r\t";
  const size_t at = kFrom.find(static_cast<char>(byte));
  return at == std::string_view::npos ? -1 : static_cast<uint8_t>(kTo[at]);
}

}  // namespace

// Every byte that means something in an escape sequence is a class of its own.
void ExprPool::know_escapes() {
  if (knows_escapes_) return;
  knows_escapes_ = true;
  ByteSet control;
  for (size_t byte = 0; byte < 0x20; ++byte) control.set(byte);
  intern_set(control);
  for (const char c : std::string_view("\"\\bfnrtu0123456789abcdefABCDEF"))
    intern_set(ByteSet{}.set(static_cast<uint8_t>(c)));
  // ... and so is every byte that is written as one.
  for (const char c : std::string_view("\b\f\n\r\t"))
    intern_set(ByteSet{}.set(static_cast<uint8_t>(c)));
}

int32_t ExprPool::escaped(int32_t a, int32_t phase) {
  if (a == kNothing) return kNothing;
  if (phase == kPlain && a == kEmpty) return kEmpty;
  know_escapes();
  const ExprNode& inner = node(a);
  // One byte of UTF-8 takes one byte at least, and an escape sequence stands for one.
  const int32_t rest = phase == kPlain ? inner.min_length
                                       : rest_of_escape(phase) + std::max(0, inner.min_length - 1);
  return intern({.kind = ExprKind::kEscaped,
                 .nullable = phase == kPlain && inner.nullable,
                 .may_be_dead = phase != kPlain || inner.may_be_dead,
                 .exact_length = phase == kPlain && inner.nullable,
                 .is_text = phase == kPlain && inner.is_text,
                 .a = a,
                 .min = phase,
                 .min_length = rest,
                 .depth = inner.depth + 1},
                {});
}

int32_t ExprPool::derive_escaped(const ExprNode& of, uint8_t byte) {
  const ExprNode node = of;  // the pool grows
  const int32_t phase = node.min & 0xFF;
  if (phase == kPlain) {
    if (byte == '\\') return escaped(node.a, kAfterBackslash);
    if (has_to_be_escaped(byte)) return kNothing;
    return escaped(derive(node.a, byte), kPlain);
  }
  if (phase == kAfterBackslash) {
    if (byte == 'u') return escaped(node.a, kHexDigits);
    const int32_t meant = simple_escape(byte);
    if (meant < 0) return kNothing;
    return escaped(derive(node.a, static_cast<uint8_t>(meant)), kPlain);
  }
  const int32_t digit = hex_digit(byte);
  if (digit < 0) return kNothing;
  const int32_t value = (node.min >> 8) << 4 | digit;
  const int32_t num_left = rest_of_escape(phase) - 1;
  if (!may_be_escaped(value, 4 - num_left)) return kNothing;
  if (num_left > 0) return escaped(node.a, (phase + 1) | value << 8);
  return escaped(derive(node.a, static_cast<uint8_t>(value)), kPlain);
}

int32_t ExprPool::derive_concat(int32_t id, uint8_t byte) {
  std::vector<int32_t> alternatives;
  while (node(id).kind == ExprKind::kConcat) {
    const int32_t head = node(id).a;
    const int32_t tail = node(id).b;
    const int32_t derived = derive(head, byte);
    if (derived != kNothing) alternatives.push_back(concat(derived, tail));
    if (!nullable(head)) return either(alternatives);
    id = tail;
  }
  alternatives.push_back(derive(id, byte));
  return either(alternatives);
}

int32_t ExprPool::derive(int32_t id, uint8_t byte) {
  count_steps(1);
  const ExprNode& node = this->node(id);
  switch (node.kind) {
    case ExprKind::kBytes:
      return set(node.a)[byte] ? kEmpty : kNothing;
    case ExprKind::kSwitch: {
      const std::span<const int32_t> branches = parts(node);
      for (size_t i = 0; i < branches.size(); i += 2) {
        if (set(branches[i])[byte]) return branches[i + 1];
      }
      return kNothing;
    }
    case ExprKind::kConcat:
      return derive_concat(id, byte);
    case ExprKind::kEither:
    case ExprKind::kBoth: {
      const bool is_either = node.kind == ExprKind::kEither;
      const std::vector<int32_t> old(parts(node).begin(), parts(node).end());
      std::vector<int32_t> derived;
      for (const int32_t part : old) {
        const int32_t next = derive(part, byte);
        if (next == kNothing && !is_either) return kNothing;
        if (next != kNothing) derived.push_back(next);
      }
      return is_either ? either(derived) : both(derived);
    }
    case ExprKind::kComplement:
      return complement(derive(node.a, byte));
    case ExprKind::kRepeat: {
      const int32_t body = node.a;
      const int32_t min = std::max(0, node.min - 1);
      const int32_t max = node.max == kUnbounded ? kUnbounded : node.max - 1;
      const int32_t derived = derive(body, byte);
      return derived == kNothing ? kNothing : concat(derived, repeat(body, min, max));
    }
    case ExprKind::kEscaped:
      return derive_escaped(node, byte);
    case ExprKind::kNothing:
    case ExprKind::kEmpty:
    case ExprKind::kCall:
    case ExprKind::kToken:
      break;
  }
  return kNothing;
}

template <typename IsIn>
void ClassGroups::tell_apart(IsIn is_in) {
  std::array<bool, 256> has_others{};  // by group
  for (size_t c = 0; c < group_.size(); ++c)
    has_others[group_[c]] |= !is_in(static_cast<int32_t>(c));
  std::array<int32_t, 256> apart{};  // 0: no class of the group is there yet
  for (size_t c = 0; c < group_.size(); ++c) {
    if (!has_others[group_[c]] || !is_in(static_cast<int32_t>(c))) continue;
    int32_t& group = apart[group_[c]];
    if (group == 0) group = static_cast<int32_t>(num_groups_++);
    group_[c] = static_cast<uint8_t>(group);
  }
}

void ClassGroups::tell_all_apart() {
  for (size_t c = 0; c < group_.size(); ++c) group_[c] = static_cast<uint8_t>(c);
  num_groups_ = group_.size();
}

// As derive() goes: what it looks at in the byte is told apart.
void ExprPool::tell_apart(int32_t id, ClassGroups& groups) const {
  for (; this->node(id).kind == ExprKind::kConcat; id = this->node(id).b) {
    tell_apart(this->node(id).a, groups);
    if (!nullable(this->node(id).a)) return;
  }
  if (groups.is_finest()) return;
  const ExprNode& node = this->node(id);
  const auto by_set = [&](int32_t number) {
    const ByteSet& bytes = set(number);
    groups.tell_apart([&](int32_t c) { return bytes[representative(c)]; });
  };
  switch (node.kind) {
    case ExprKind::kBytes:
      by_set(node.a);
      return;
    case ExprKind::kSwitch: {
      const std::span<const int32_t> branches = parts(node);
      for (size_t i = 0; i < branches.size() && !groups.is_finest(); i += 2) by_set(branches[i]);
      return;
    }
    case ExprKind::kEither:
    case ExprKind::kBoth:
      for (const int32_t part : parts(node)) tell_apart(part, groups);
      return;
    case ExprKind::kComplement:
    case ExprKind::kRepeat:
      tell_apart(node.a, groups);
      return;
    case ExprKind::kEscaped:
      if ((node.min & 0xFF) != kPlain) {
        groups.tell_all_apart();
        return;
      }
      groups.tell_apart([&](int32_t c) { return representative(c) == '\\'; });
      groups.tell_apart([&](int32_t c) { return representative(c) == '"'; });
      groups.tell_apart([&](int32_t c) { return representative(c) < 0x20; });
      tell_apart(node.a, groups);
      return;
    case ExprKind::kNothing:
    case ExprKind::kEmpty:
    case ExprKind::kConcat:
    case ExprKind::kCall:
    case ExprKind::kToken:
      return;
  }
}

// A search along derivatives, those first that promise the shortest texts. `exact`: by the length
// of the whole text (A*), else only by what is to come, which finds some text sooner.
struct ExprPool::Search {
  bool too_hard = false;
  int32_t length = kMaxLength;     // of the text found
  std::vector<int32_t> path;       // the expressions on the way, the last is nullable
  std::vector<int32_t> exhausted;  // when there is none: all that were seen
};

ExprPool::Search ExprPool::search(int32_t id, bool exact) {
  struct Seen {
    int32_t from = -1;
    int32_t depth = 0;
    bool done = false;
  };
  std::unordered_map<int32_t, Seen> seen{{id, {}}};
  // (bound, order, expression): the order makes the search the same every time. Where bounds are
  // equal, what came last is the nearest to the end.
  using Entry = std::tuple<int64_t, int64_t, int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  int64_t arrivals = 0;
  const auto known_length = [&](int32_t expr) {
    if (node(expr).exact_length) return node(expr).min_length;
    const auto known = shortest_.find(expr);
    return known != shortest_.end() ? known->second : -1;
  };
  const auto is_known_alive = [&](int32_t expr) {
    const auto at = static_cast<size_t>(expr);
    return !node(expr).may_be_dead || (at < alive_.size() && alive_[at] == Alive::kYes);
  };
  const auto push = [&](int32_t expr, int32_t depth) {
    ++arrivals;
    if (exact) {
      const int64_t rest = std::max(node(expr).min_length, known_length(expr));
      queue.emplace(depth + rest, -arrivals, expr);
    } else {
      queue.emplace(node(expr).min_length, arrivals, expr);
    }
  };
  push(id, 0);
  Search result;
  while (!queue.empty()) {
    const int32_t expr = std::get<2>(queue.top());
    queue.pop();
    Seen& entry = seen[expr];
    if (entry.done) continue;
    entry.done = true;
    const int32_t depth = entry.depth;
    // What may not be dead has a text, and the search goes straight to it; only the exact length
    // needs the whole way.
    const int32_t rest = known_length(expr);
    const bool found = nullable(expr) || (exact ? rest >= 0 : is_known_alive(expr));
    if (found) {
      const int64_t length = int64_t{depth} + std::max(node(expr).min_length, rest);
      result.length = static_cast<int32_t>(std::min<int64_t>(length, kMaxLength));
      for (int32_t at = expr; at >= 0; at = seen[at].from) result.path.push_back(at);
      std::ranges::reverse(result.path);
      return result;
    }
    if (seen.size() > static_cast<size_t>(limits_.max_dfa_states)) {
      result.too_hard = true;
      return result;
    }
    ClassGroups groups(num_classes());
    tell_apart(expr, groups);
    std::array<bool, 256> is_done{};  // by group
    for (int32_t c = 0; c < num_classes(); ++c) {
      if (std::exchange(is_done[groups.group_of(c)], true)) continue;
      const int32_t next = derive(expr, representative(c));
      if (next == kNothing) continue;
      const auto [known, is_new] = seen.try_emplace(next, Seen{expr, depth + 1, false});
      if (!is_new) {
        if (!exact || known->second.done || known->second.depth <= depth + 1) continue;
        known->second = {expr, depth + 1, false};
      }
      push(next, depth + 1);
    }
  }
  for (const auto& [expr, entry] : seen) result.exhausted.push_back(expr);
  return result;
}

ExprPool::Alive ExprPool::alive(int32_t id) {
  // What a sequence, a choice or a repetition is made of is asked one by one: only intersections,
  // complements and escapes need a search.
  for (; node(id).kind == ExprKind::kConcat; id = node(id).b) {
    if (!node(id).may_be_dead) return Alive::kYes;
    if (const Alive head = alive(node(id).a); head != Alive::kYes) return head;
  }
  if (id == kNothing) return Alive::kNo;
  const ExprNode& of = node(id);
  if (!of.may_be_dead || of.nullable) return Alive::kYes;
  if (of.kind == ExprKind::kRepeat) return alive(of.a);
  // Every text has a spelling.
  if (of.kind == ExprKind::kEscaped && of.min == kPlain) return alive(of.a);
  if (of.kind == ExprKind::kEither || of.kind == ExprKind::kSwitch) {
    const std::vector<int32_t> all(parts(of).begin(), parts(of).end());
    const size_t step = of.kind == ExprKind::kSwitch ? 2 : 1;
    Alive best = Alive::kNo;
    for (size_t i = step - 1; i < all.size() && best != Alive::kYes; i += step) {
      if (const Alive one = alive(all[i]); one != Alive::kNo) best = one;
    }
    return best;
  }
  const auto at = static_cast<size_t>(id);
  if (at < alive_.size() && alive_[at] != Alive::kUnknown) return alive_[at];
  const Search found = search(id, false);
  alive_.resize(nodes_.size(), Alive::kUnknown);
  for (const int32_t expr : found.path) alive_[static_cast<size_t>(expr)] = Alive::kYes;
  for (const int32_t expr : found.exhausted) alive_[static_cast<size_t>(expr)] = Alive::kNo;
  if (found.too_hard) alive_[at] = Alive::kTooHard;
  return alive_[at];
}

int32_t ExprPool::live_part(int32_t id) {
  if (node(id).kind != ExprKind::kEither) return id;
  const std::vector<int32_t> all(parts(node(id)).begin(), parts(node(id)).end());
  std::vector<int32_t> live = all;
  std::erase_if(live, [&](int32_t part) { return alive(part) != Alive::kYes; });
  return live.size() == all.size() ? id : either(live);
}

int32_t ExprPool::shortest(int32_t id) {
  int64_t before = 0;
  for (; node(id).kind == ExprKind::kConcat && !node(id).exact_length; id = node(id).b)
    before += shortest(node(id).a);
  const auto with_head = [&](int64_t length) {
    return static_cast<int32_t>(std::min<int64_t>(before + length, kMaxLength));
  };
  const ExprNode& of = node(id);
  if (of.exact_length || id == kNothing) return with_head(of.min_length);
  if (of.kind == ExprKind::kRepeat) {
    const int64_t times = of.min;
    return with_head(times * shortest(of.a));
  }
  if (of.kind == ExprKind::kEither || of.kind == ExprKind::kSwitch) {
    const std::vector<int32_t> all(parts(of).begin(), parts(of).end());
    const size_t step = of.kind == ExprKind::kSwitch ? 2 : 1;
    int64_t least = kMaxLength;
    for (size_t i = step - 1; i < all.size(); i += step)
      least = std::min<int64_t>(least, shortest(all[i]) + static_cast<int64_t>(step) - 1);
    return with_head(least);
  }
  if (const auto known = shortest_.find(id); known != shortest_.end())
    return with_head(known->second);
  const Search found = search(id, true);
  for (size_t i = 0; i < found.path.size(); ++i)
    shortest_[found.path[i]] = found.length - static_cast<int32_t>(i);
  shortest_[id] = found.length;
  return with_head(found.length);
}

int32_t ExprPool::import(const ExprPool& other,
                         int32_t id,
                         std::unordered_map<int32_t, int32_t>& known) {
  if (id <= kAllBytes) return id;  // the same in all pools
  if (const auto found = known.find(id); found != known.end()) return found->second;
  // Sequences may be long: they are walked, not descended.
  std::vector<int32_t> spine;
  int32_t tail = id;
  while (other.node(tail).kind == ExprKind::kConcat && !known.contains(tail)) {
    spine.push_back(tail);
    tail = other.node(tail).b;
  }
  if (!spine.empty()) {
    int32_t result = import(other, tail, known);
    for (; !spine.empty(); spine.pop_back()) {
      result = concat(import(other, other.node(spine.back()).a, known), result);
      known[spine.back()] = result;
    }
    return result;
  }
  ExprNode node = other.node(id);
  std::vector<int32_t> parts;
  for (size_t i = 0; i < static_cast<size_t>(node.num_parts); ++i) {
    const int32_t part = other.parts(other.node(id))[i];
    const bool is_set = node.kind == ExprKind::kSwitch && i % 2 == 0;
    parts.push_back(is_set ? intern_set(other.set(part)) : import(other, part, known));
  }
  int32_t result = -1;
  switch (node.kind) {
    case ExprKind::kBytes:
      node.a = intern_set(other.set(node.a));
      result = intern(node, {});
      break;
    case ExprKind::kEither:
      result = either(parts);
      break;
    case ExprKind::kBoth:
      result = both(parts);
      break;
    case ExprKind::kEscaped:
      result = escaped(import(other, node.a, known), node.min);
      break;
    case ExprKind::kComplement:
    case ExprKind::kRepeat:
      node.a = import(other, node.a, known);
      [[fallthrough]];
    default:
      result = intern(node, parts);
  }
  return known[id] = result;
}

}  // namespace tgi::guide
