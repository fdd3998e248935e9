// What is found by following derivatives: whether a language has a text, and how long the shortest
// is.
#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/guide/expr_pool.h"

namespace tgi::guide {

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

ByteSet ExprPool::possible_bytes(int32_t id) {
  ByteSet all;
  for (; node(id).kind == ExprKind::kConcat; id = node(id).b) all |= possible_bytes(node(id).a);
  const ExprNode& of = node(id);
  if (of.kind == ExprKind::kBytes) return all | set(of.a);
  if (const auto known = possible_bytes_.find(id); known != possible_bytes_.end())
    return all | known->second;
  ByteSet own;
  switch (of.kind) {
    case ExprKind::kSwitch:
      for (int32_t i = 0; i < of.num_parts; i += 2) {
        own |= set(parts(of)[static_cast<size_t>(i)]);
        own |= possible_bytes(parts(of)[static_cast<size_t>(i) + 1]);
      }
      break;
    case ExprKind::kEither:
      for (const int32_t part : parts(of)) own |= possible_bytes(part);
      break;
    case ExprKind::kBoth:
      own.set();
      for (const int32_t part : parts(of)) own &= possible_bytes(part);
      break;
    case ExprKind::kRepeat:
      own = possible_bytes(of.a);
      break;
    case ExprKind::kNothing:
    case ExprKind::kEmpty:
      break;
    default:
      own.set();
  }
  possible_bytes_.emplace(id, own);
  return all | own;
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
  if (of.kind == ExprKind::kEscaped && of.min == 0) return alive(of.a);
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

}  // namespace tgi::guide
