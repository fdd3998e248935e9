// Several adapters as one that does what they do together. What is merged is what each adds to a
// linear, scale * B A, by the rules of merge_rules.h:
//
//   linear  exact: the factors of all of them side by side, the rank is the sum of theirs. Trained
//           biases are added up, too.
//   others  the merged sum has full rank, and is factorised again (low_rank_factors.h) to the sum
//           of the ranks, at most kMaxAdapterRank: PEFT's ties_svd, dare_linear_svd, dare_ties_svd.
//
// A linear that only some adapters change is merged of those. Or, as LoRAX does it, A and B are
// merged each by itself, and multiplied by the first adapter's scale: their product has terms of
// one adapter's A with another one's B, and weights count twice.
#pragma once

#include <span>
#include <stop_token>
#include <string>

#include "engine/lora/adapter_files.h"
#include "engine/lora/merge_rules.h"

namespace tgi {

struct MergeInput {
  std::string name;  // what is drawn depends on it
  const AdapterFiles* adapter = nullptr;
  float weight = 1.0F;
};

struct MergeOptions {
  MergeRule rule{};
  bool on_factors = false;  // LoRAX's arithmetic
  int num_threads = 1;
  std::stop_token stop{};  // ends it with kCancelled, between two linears
};

// Holds its tensors itself. Throws kUnsupported naming the adapter and the linear that can't be
// merged: of DoRA; of another kind than a product unless the strategy is linear; of ranks that
// differ, with `on_factors`; where the ranks add up to more than devices have room for. REQUIRES:
// one adapter or more, all opened for the same model.
AdapterFiles merge_adapters(std::span<const MergeInput> inputs, const MergeOptions& options);

}  // namespace tgi
