// How several tensors of one shape become one: the rules by which LoRAX and PEFT merge adapters.
//
//   linear       sum of weight * tensor
//   ties         of each tensor the largest share of its elements, by size; at each place those of
//                the sign that prevails, their sum divided by how many they are
//                (https://arxiv.org/abs/2306.01708)
//   dare_linear  of each tensor a random share of its elements, divided by the share; then linear
//   dare_ties    likewise, then the signs of ties (https://arxiv.org/abs/2311.03099)
//
// The numbers are those of peft.utils.merge_utils (peft 0.21), but for what is drawn: here it
// depends on the tensor's seed and an element's place alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/known_names.h"

namespace tgi {

// In the order of kMergeStrategyNames and kMajoritySignNames.
enum class MergeStrategy : uint8_t { kLinear, kTies, kDareLinear, kDareTies };
enum class MajoritySign : uint8_t { kTotal, kFrequency };

std::optional<MergeStrategy> merge_strategy_from_name(std::string_view name);
std::optional<MajoritySign> majority_sign_from_name(std::string_view name);

struct MergeRule {
  MergeStrategy strategy = MergeStrategy::kLinear;
  double density = 1.0;  // the share that is kept; linear has none
  // Which sign prevails: of the sum of the elements, or that of most of them.
  MajoritySign majority_sign = MajoritySign::kTotal;
  bool rescales = true;  // dare: what is left is divided by the share

  constexpr bool is_pruned_at_random() const {
    return strategy == MergeStrategy::kDareLinear || strategy == MergeStrategy::kDareTies;
  }
  constexpr bool elects_signs() const {
    return strategy == MergeStrategy::kTies || strategy == MergeStrategy::kDareTies;
  }
};

struct MergeTerm {
  std::vector<float> values;
  float weight = 1.0F;
  uint64_t seed = 0;  // of what is drawn
};

// Of the sizes that are equal the first ones are kept. The same for any number of threads.
// REQUIRES: one term or more, of one size.
std::vector<float> merge_terms(std::vector<MergeTerm> terms,
                               const MergeRule& rule,
                               int num_threads = 1);

}  // namespace tgi
