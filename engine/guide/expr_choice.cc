// Choices and intersections of expressions, simplified as they are made.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engine/guide/expr_pool.h"

namespace tgi::guide {

void ExprPool::flatten(ExprKind kind,
                       std::span<const int32_t> parts,
                       std::vector<int32_t>& out) const {
  for (const int32_t part : parts) {
    if (node(part).kind == kind) {
      const std::span<const int32_t> inner = this->parts(node(part));
      out.insert(out.end(), inner.begin(), inner.end());
    } else {
      out.push_back(part);
    }
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
}

void ExprPool::merge_sets(std::vector<int32_t>& parts, bool unite) {
  const auto is_set = [&](int32_t id) { return node(id).kind == ExprKind::kBytes; };
  if (std::ranges::count_if(parts, is_set) < 2) return;
  ByteSet merged;
  if (!unite) merged.set();
  for (const int32_t part : parts) {
    if (!is_set(part)) continue;
    if (unite) {
      merged |= set(node(part).a);
    } else {
      merged &= set(node(part).a);
    }
  }
  std::erase_if(parts, is_set);
  parts.push_back(bytes(merged));
  std::ranges::sort(parts);
}

// a{m,n}x | a{p,q}x is a{min(m,p),max(n,q)}x where the intervals overlap or touch: what keeps
// counted repetitions of ambiguous bodies small.
void ExprPool::merge_repetitions(std::vector<int32_t>& parts) {
  struct Counted {
    int32_t body, tail, min, max;
    auto key() const { return std::array{body, tail, min}; }
  };
  std::vector<Counted> counted;
  const auto counted_of = [&](int32_t id) -> Counted {
    const ExprNode& whole = node(id);
    const bool has_tail = whole.kind == ExprKind::kConcat;
    const ExprNode& head = has_tail ? node(whole.a) : whole;
    if (head.kind != ExprKind::kRepeat) return {-1, -1, 0, 0};
    const int32_t max = head.max == kUnbounded ? std::numeric_limits<int32_t>::max() : head.max;
    return {head.a, has_tail ? whole.b : kEmpty, head.min, max};
  };
  for (const int32_t part : parts) {
    if (const Counted entry = counted_of(part); entry.body >= 0) counted.push_back(entry);
  }
  if (counted.size() < 2) return;
  std::ranges::sort(counted, {}, &Counted::key);
  std::vector<Counted> merged;
  for (const Counted& entry : counted) {
    Counted* last = merged.empty() ? nullptr : &merged.back();
    if (last != nullptr && last->body == entry.body && last->tail == entry.tail &&
        static_cast<int64_t>(entry.min) <= static_cast<int64_t>(last->max) + 1) {
      last->max = std::max(last->max, entry.max);
    } else {
      merged.push_back(entry);
    }
  }
  if (merged.size() == counted.size()) return;
  std::erase_if(parts, [&](int32_t part) { return counted_of(part).body >= 0; });
  for (const Counted& entry : merged) {
    const bool unbounded = entry.max == std::numeric_limits<int32_t>::max();
    const int32_t head = repeat(entry.body, entry.min, unbounded ? kUnbounded : entry.max);
    parts.push_back(concat(head, entry.tail));
  }
  std::ranges::sort(parts);
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
}

int32_t ExprPool::either(std::span<const int32_t> parts) {
  std::vector<int32_t> flat;
  flatten(ExprKind::kEither, parts, flat);
  std::erase(flat, kNothing);
  // A pattern that was found goes on with any text, and with itself once more.
  if (std::ranges::binary_search(flat, any_text_))
    std::erase_if(flat, [&](int32_t id) { return id != any_text_ && node(id).is_text; });
  if (flat.size() > 1) {
    merge_sets(flat, true);
    merge_repetitions(flat);
    const auto is_nullable = [&](int32_t id) { return id != kEmpty && nullable(id); };
    if (std::ranges::any_of(flat, is_nullable)) std::erase(flat, kEmpty);
  }
  if (flat.empty()) return kNothing;
  if (flat.size() == 1) return flat[0];
  ExprNode result{
      .kind = ExprKind::kEither, .exact_length = true, .is_text = true, .min_length = kMaxLength};
  bool has_live_part = false;
  for (const int32_t id : flat) {
    if (id == kAllBytes) return kAllBytes;
    const ExprNode& part = node(id);
    if (part.kind == ExprKind::kComplement && std::ranges::binary_search(flat, part.a))
      return kAllBytes;
    result.nullable |= part.nullable;
    has_live_part |= !part.may_be_dead;
    result.exact_length &= part.exact_length;
    result.has_leaves |= part.has_leaves;
    result.is_text &= part.is_text;
    result.min_length = std::min(result.min_length, part.min_length);
    result.depth = std::max(result.depth, part.depth + 1);
  }
  result.may_be_dead = !has_live_part && !result.nullable;
  result.exact_length |= result.nullable;
  return intern(result, flat);
}

int32_t ExprPool::both(std::span<const int32_t> parts) {
  std::vector<int32_t> flat;
  flatten(ExprKind::kBoth, parts, flat);
  std::erase(flat, kAllBytes);
  const auto is_other_text = [&](int32_t id) { return id != any_text_ && node(id).is_text; };
  if (std::ranges::any_of(flat, is_other_text)) std::erase(flat, any_text_);
  merge_sets(flat, false);
  if (flat.empty()) return kAllBytes;
  if (flat.size() == 1) return flat[0];
  ExprNode result{.kind = ExprKind::kBoth, .nullable = true};
  for (const int32_t id : flat) {
    if (id == kNothing) return kNothing;
    const ExprNode& part = node(id);
    if (part.kind == ExprKind::kComplement && std::ranges::binary_search(flat, part.a))
      return kNothing;
    result.nullable &= part.nullable;
    result.has_leaves |= part.has_leaves;
    result.is_text |= part.is_text;
    result.min_length = std::max(result.min_length, part.min_length);
    result.depth = std::max(result.depth, part.depth + 1);
  }
  if (std::ranges::binary_search(flat, kEmpty)) return result.nullable ? kEmpty : kNothing;
  result.may_be_dead = !result.nullable;
  result.exact_length = result.nullable;
  return intern(result, flat);
}

}  // namespace tgi::guide
