// Kernels of layers with experts: the choice, the sort by expert, the experts' matmuls, and what a
// token gets. Launches only. Definitions: engine/device/backend.h.
//
// Everything that is known only once the router has spoken stays on the GPU. Grids depend on the
// number of rows alone; CUDA blocks that find no work leave. So a captured step can be replayed.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "engine/device/backend.h"

namespace tgi::cuda {

// Up to ExpertRoutes::tile_rows neighbouring rows of one expert; none: no work.
struct ExpertTile {
  int32_t expert = 0;
  int32_t first_row = 0;
  int32_t num_rows = 0;
};

// Of one choice, on the GPU. A choice is one of a token's experts, in ascending order or in that of
// RouteArgs.experts_by_token; a row is what the choices are sorted to: by expert, then by token.
struct ExpertMemory {
  float* scores = nullptr;     // (max_batch_tokens, num_experts): what is chosen by
  int32_t* experts = nullptr;  // of each choice
  float* weights = nullptr;    // of each choice
  int32_t* rows = nullptr;     // of each choice
  int32_t* tokens = nullptr;   // of each row
  ExpertTile* tiles = nullptr;
};

struct ExpertRoutes {
  ExpertMemory memory;
  int32_t num_experts = 0;
  int32_t num_matrices = 0;  // experts past them give what they read
  int32_t num_tokens = 0;
  int32_t top_k = 0;
  bool has_blocks = false;  // tiles are those of matmul_block.cuh, else those of matmul_tile.cuh
  int32_t tile_rows = 0;    // 8, 16, 32 or 64; of blocks 64 or 128
  int32_t num_tiles = 0;    // whatever is chosen; at most num_rows()

  int32_t num_rows() const { return num_tokens * top_k; }
};

// What a choice among so many takes, for rows spread evenly. `one_kernel`: the same one multiplies
// however many tokens there are, so that their bits do not depend on that.
ExpertRoutes plan_routes(const ExpertMemory& memory,
                         int64_t num_tokens,
                         int64_t num_experts,
                         const RouteRule& rule,
                         bool one_kernel);

inline constexpr int32_t kMaxExpertGroups = 64;
// Fills what `routes` points to. `token_ids`: of each row, for experts that are those of tokens.
// REQUIRES: it is planned for these tokens.
void launch_route(cudaStream_t stream,
                  const RouteArgs& args,
                  const int32_t* token_ids,
                  const ExpertRoutes& routes);

struct ExpertPointers {
  const void* w = nullptr;
  const float* bias = nullptr;  // (optional)
};

struct ExpertMatmulLaunch {
  const ExpertPointers* experts = nullptr;  // (num_experts), on the GPU
  int64_t w_stride = 0;                     // elements
  int64_t outputs = 0;
  bool x_is_routed = false;
  Tensor x;
  Tensor out;
};
// Once for a GPU, before the first launch.
void prepare_expert_kernels();
// The bits of a row of out depend on the kernel that the routes were planned for, not on other
// rows.
void launch_expert_matmul(cudaStream_t stream,
                          const ExpertMatmulLaunch& launch,
                          const ExpertRoutes& routes);

void launch_weigh_experts(cudaStream_t stream, const WeighArgs& args, const ExpertRoutes& routes);
void launch_combine_experts(cudaStream_t stream,
                            const CombineArgs& args,
                            const ExpertRoutes& routes);

}  // namespace tgi::cuda
