// Copies of expressions from one pool to another.
#include <unordered_map>
#include <vector>

#include "engine/guide/expr_pool.h"

namespace tgi::guide {

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
