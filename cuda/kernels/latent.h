// Kernels of latent attention: what LatentArgs, HeadMatmulArgs and AttentionArgs with a latent_dim
// ask for. Launches only; grids depend on the number of rows alone, so that a step can be captured.
// Definitions: engine/device/backend.h.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstdint>

#include "cuda/kernels/rows.h"
#include "cuda/kernels/step.h"
#include "engine/device/backend.h"

namespace tgi::cuda {

inline constexpr int32_t kMaxLatentDim = 512;
inline constexpr int32_t kMaxLatentKeyDim = 576;  // latent and rotated columns together
inline constexpr int32_t kMaxLatentHeads = 256;

// What there are kernels for. Throws kUnsupported with the numbers.
void check_latents(int32_t num_heads, int32_t key_dim, int32_t latent_dim);

// `kv` has the cache of keys, whose rows are cache_head_dim wide.
void launch_rotate_and_store_latent(cudaStream_t stream,
                                    const LatentArgs& args,
                                    const StoreKvLaunch& kv);

struct LatentAttentionLaunch {
  const void* keys = nullptr;  // (num_blocks + 1, block_size, cache_dim), of q's type
  int32_t cache_dim = 0;       // a multiple of 16, zeros past head_dim
  int32_t block_size = 16;
  const int32_t* block_tables = nullptr;
  int32_t max_blocks = 0;
  const TokenRow* rows = nullptr;
  int32_t num_splits = 1;     // latent_splits
  float* partials = nullptr;  // latent_partial_floats
};

// Into how many pieces a row's context is cut, so that `num_blocks` CUDA blocks have work.
int32_t latent_splits(int64_t num_rows, int32_t num_heads, int32_t num_blocks);
// The workspace for any number of rows.
int64_t latent_partial_floats(int32_t num_blocks, int32_t latent_dim);

// Once per device, before the first launch or capture.
void prepare_latent_attention();
void prepare_head_matmul();
void launch_latent_attention(cudaStream_t stream,
                             const AttentionArgs& args,
                             const LatentAttentionLaunch& launch);

struct HeadMatmulLaunch {
  std::array<const void*, kMaxLatentHeads> heads{};  // matrices of x's type, aligned to 16 bytes
  int32_t num_heads = 0;
  int64_t w_stride = 0;  // elements
  int64_t outputs = 0;   // rows of each matrix
  int64_t cols = 0;
  int64_t x_step = 0;
  int64_t out_step = 0;
  Tensor x;
  Tensor out;
  bool one_kernel = false;  // for any number of rows, so that their bits do not depend on it
};
void launch_head_matmul(cudaStream_t stream, const HeadMatmulLaunch& launch);

}  // namespace tgi::cuda
