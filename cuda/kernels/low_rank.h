// What adapters add to rows (LowRankArgs in engine/device/backend.h): two kernels for any mix of
// adapters, of which they learn from memory of the GPU, so that a captured step serves all mixes.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/kernels/step.h"
#include "engine/tensor/tensor.h"

namespace tgi::cuda {

inline constexpr int32_t kMaxLowRankPieces = 8;  // of one adapter at one site

// One of the products at a site: rows [first_rank, first_rank + rank) of the stacked a, and b.
struct LowRankPiece {
  const void* b = nullptr;  // (num_outputs, rank)
  int32_t first_rank = 0;
  int32_t rank = 0;
  int32_t first_output = 0;
  int32_t num_outputs = 0;
  float scale = 1.0F;
  const float* gain = nullptr;    // (optional: 1) (num_outputs)
  const float* offset = nullptr;  // (optional: 0) (num_outputs)
};

struct LowRankSite {
  const void* a = nullptr;  // (rank, cols), of a lookup (num_tokens, rank); null: of rank 0
  int32_t rank = 0;         // of all pieces
  int32_t num_tokens = 0;   // of a lookup
  int32_t num_pieces = 0;   // 0: the adapter has nothing here
  LowRankPiece pieces[kMaxLowRankPieces];
};

// An adapter at its place; without sites: nobody's.
struct LowRankAdapter {
  const LowRankSite* sites = nullptr;  // (num_sites)
  int32_t num_sites = 0;
};

// The choices of a step's experts (ExpertMemory in experts.h); `first` on, as many as there are
// rows of shrunk.
struct LowRankChoices {
  const int32_t* rows = nullptr;     // of each choice; null: no experts
  const int32_t* experts = nullptr;  // likewise
  int32_t num_matrices = 0;          // experts past them have nothing to change
  int32_t top_k = 1;
  bool x_is_routed = false;
  int64_t first = 0;
};

// Heads whose columns lie side by side, each with a matrix of its own: x and out are those of the
// first, the site of the next is one more.
struct LowRankHeads {
  int32_t count = 1;
  int64_t x_step = 0;
  int64_t out_step = 0;
};

struct LowRankLaunch {
  const LowRankAdapter* places = nullptr;  // (max_adapters + 1); the first is nobody's
  const int32_t* slot_places = nullptr;    // (num_slots + 1)
  const TokenRow* tokens = nullptr;
  const LogitRow* logit_rows = nullptr;  // (optional) rows are those, else tokens
  LowRankChoices choices{};              // (optional) rows are theirs
  LowRankHeads heads{};
  const int32_t* token_ids = nullptr;  // (optional) of each row: it is looked up, and x has no data
  int32_t site = 0;                    // of experts that of the first
  int64_t num_rows = 0;
  float* shrunk = nullptr;  // (heads, num_rows, kMaxStackedRank)
  Tensor x;
  Tensor out;
};

void launch_low_rank(cudaStream_t stream, const LowRankLaunch& args);

}  // namespace tgi::cuda
