// What the texts of an expression may begin with, beside bytes.
#include <algorithm>
#include <functional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/guide/expr_pool.h"

namespace tgi::guide {

std::vector<ExprPool::Lead> ExprPool::leads(int32_t id) {
  std::vector<Lead> all;
  add_leads(id, all);
  // What follows the same call in several ways is one way with a choice: ambiguous grammars would
  // have more stacks with every call otherwise.
  const auto symbol = [](const Lead& lead) { return std::pair{lead.is_token, lead.symbol}; };
  std::ranges::stable_sort(all, {}, symbol);
  std::vector<Lead> merged;
  std::vector<int32_t> rests;
  for (size_t i = 0; i < all.size(); ++i) {
    rests.push_back(all[i].rest);
    if (i + 1 < all.size() && symbol(all[i]) == symbol(all[i + 1])) continue;
    merged.push_back({all[i].is_token, all[i].symbol, either(rests)});
    rests.clear();
  }
  return merged;
}

void ExprPool::add_leads(int32_t id, std::vector<Lead>& out) {
  while (node(id).has_leaves) {
    const ExprNode node = this->node(id);
    const size_t first = out.size();
    const auto then = [&](int32_t rest) {
      for (size_t i = first; i < out.size(); ++i) out[i].rest = concat(out[i].rest, rest);
    };
    switch (node.kind) {
      case ExprKind::kCall:
      case ExprKind::kToken:
        out.push_back({node.kind == ExprKind::kToken, node.a, kEmpty});
        return;
      case ExprKind::kConcat:
        add_leads(node.a, out);
        then(node.b);
        if (!nullable(node.a)) return;
        id = node.b;
        continue;
      case ExprKind::kEither: {
        const std::vector<int32_t> all(parts(node).begin(), parts(node).end());
        for (const int32_t part : all) add_leads(part, out);
        return;
      }
      case ExprKind::kRepeat:
        add_leads(node.a, out);
        if (out.size() > first) {
          then(repeat(node.a, std::max(0, node.min - 1),
                      node.max == kUnbounded ? kUnbounded : node.max - 1));
        }
        return;
      default:
        return;
    }
  }
}

std::vector<int32_t> ExprPool::after_item_ends(int32_t id) const {
  std::vector<int32_t> rests;
  const auto add = [&](int32_t part) {
    const ExprNode& of = node(part);
    const bool begins_so = of.kind == ExprKind::kConcat && node(of.a).kind == ExprKind::kItemEnd;
    if (begins_so) rests.push_back(of.b);
    return begins_so;
  };
  if (add(id) || node(id).kind != ExprKind::kEither) return rests;
  for (const int32_t part : parts(node(id))) add(part);
  return rests;
}

int32_t ExprPool::with_leaves(int32_t id, const std::function<int32_t(const ExprNode&)>& replaced) {
  std::unordered_map<int32_t, int32_t> known;
  return with_leaves(id, replaced, known);
}

// Parts may be shared by many ways to them, so each is done once.
int32_t ExprPool::with_leaves(int32_t id,
                              const std::function<int32_t(const ExprNode&)>& replaced,
                              std::unordered_map<int32_t, int32_t>& known) {
  const ExprNode of = node(id);
  if (!of.has_leaves) return id;
  switch (of.kind) {
    case ExprKind::kConcat: {
      std::vector<int32_t> heads;
      for (; node(id).kind == ExprKind::kConcat; id = node(id).b) heads.push_back(node(id).a);
      int32_t result = with_leaves(id, replaced, known);
      for (; !heads.empty(); heads.pop_back())
        result = concat(with_leaves(heads.back(), replaced, known), result);
      return result;
    }
    case ExprKind::kEither: {
      const auto before = known.find(id);
      if (before != known.end()) return before->second;
      std::vector<int32_t> all(parts(of).begin(), parts(of).end());
      for (int32_t& part : all) part = with_leaves(part, replaced, known);
      return known[id] = either(all);
    }
    case ExprKind::kRepeat:
      return repeat(with_leaves(of.a, replaced, known), of.min, of.max);
    default: {
      const int32_t other = replaced(of);
      return other < 0 ? id : other;
    }
  }
}

bool ExprPool::begins_with_byte(int32_t id) const {
  while (true) {
    const ExprNode& of = node(id);
    switch (of.kind) {
      case ExprKind::kNothing:
      case ExprKind::kEmpty:
      case ExprKind::kCall:
      case ExprKind::kToken:
      case ExprKind::kItemEnd:
        return false;
      case ExprKind::kConcat:
        if (begins_with_byte(of.a)) return true;
        if (!of.nullable && !nullable(of.a)) return false;
        id = of.b;
        continue;
      case ExprKind::kEither:
        return std::ranges::any_of(parts(of), [&](int32_t part) { return begins_with_byte(part); });
      case ExprKind::kRepeat:
        id = of.a;
        continue;
      default:
        return true;
    }
  }
}

}  // namespace tgi::guide
