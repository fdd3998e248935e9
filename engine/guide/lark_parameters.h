// Rules of Lark with a parameter, a number of 64 bits, as llguidance has them: name::_ defines one,
// name::change calls it, %if condition after an alternative says for which numbers that is there.
// Used by the readers of Lark only. Source: llguidance's description of parametric grammars.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/guide/source_text.h"

namespace tgi::guide {

// The bits [first:end] of the parameter, as a number.
struct LarkBits {
  int32_t first = 0;
  int32_t end = 64;
  uint64_t mask() const;
  uint64_t of(uint64_t parameter) const { return (parameter & mask()) >> first; }
};

// The parameter of the rule that is called, from that of the rule that calls.
struct LarkChange {
  enum class Kind : uint8_t { kValue, kSame, kAnd, kOr, kIncrement, kDecrement };
  Kind kind = Kind::kSame;
  uint64_t value = 0;  // kValue, kAnd, kOr
  LarkBits bits{};     // kIncrement, kDecrement: which stay at their last number
  uint64_t of(uint64_t parameter) const;
};

struct LarkCondition {
  enum class Kind : uint8_t { kTrue, kEq, kNe, kLt, kLe, kGt, kGe, kAnd, kOr, kNot };
  Kind kind = Kind::kTrue;
  bool counts_bits = false;  // what is compared is the number of bits that are set
  LarkBits bits{};
  uint64_t value = 0;
  std::vector<LarkCondition> parts{};
  bool holds(uint64_t parameter) const;
};

// Take what stands after :: and after %if. Throw kInvalidArgument with the place.
LarkChange take_lark_change(SourceText& source);
LarkCondition take_lark_condition(SourceText& source);

}  // namespace tgi::guide
