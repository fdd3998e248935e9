// The kernels of one instruction set as function pointers: chosen once at start, same bits from
// every set. Arguments are plain structs; kernels check nothing and allocate nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/device/backend.h"
#include "engine/sample/sampler_math.h"
#include "engine/tensor/tensor.h"

namespace tgi {

// out[r][n] = sum over k in order of x[r][k] * w[n][k], + bias[n], for some panels of w.
struct MatmulBlock {
  const float* x = nullptr;  // (num_rows, k)
  int64_t x_stride = 0;
  int64_t num_rows = 0;
  int64_t k = 0;
  const std::byte* panels = nullptr;  // the first panel
  int64_t panel_bytes = 0;
  int64_t num_panels = 0;
  const float* bias = nullptr;  // (optional) (num_outputs)
  float* out = nullptr;         // (num_rows, num_outputs)
  int64_t out_stride = 0;
  int64_t num_outputs = 0;  // <= 16 * num_panels; the rest of the last panel is padding
};

// A run of query rows that share one KV head of one sequence. Row r is query (first_row + r) /
// group_size, head (first_row + r) % group_size of the KV head's group.
struct AttentionBlock {
  const float* q = nullptr;  // of query 0, first head of the group
  int64_t q_stride = 0;      // between queries
  float* out = nullptr;
  int64_t out_stride = 0;
  int32_t group_size = 0;
  int32_t head_dim = 0;
  int32_t first_row = 0;
  int32_t num_rows = 0;        // <= kMaxAttentionRows
  int64_t first_position = 0;  // of query 0

  // The cache of this layer and KV head: block b's keys at k + b * block_stride_bytes.
  const std::byte* k = nullptr;  // per 16 positions: a panel, rows positions, cols head_dim
  const std::byte* v = nullptr;  // per 16 positions: panels, rows 16 of head_dim, cols positions
  int64_t k_block_stride_bytes = 0;
  int64_t v_block_stride_bytes = 0;
  const int32_t* block_table = nullptr;
  int32_t block_size = 0;

  float scale = 1.0F;
  float softcap = 0.0F;
  int32_t sliding_window = 0;
  float* scratch = nullptr;  // attention_scratch_floats(head_dim), 64-byte aligned
};

inline constexpr int64_t kMaxAttentionRows = 24;
inline constexpr int64_t kAttentionTile = 64;  // positions; tiles begin at multiples of it

constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

constexpr int64_t attention_scratch_floats(int64_t head_dim) {
  // q, accumulators, scores, lane sums of the softmax
  return kMaxAttentionRows * (2 * round_up(head_dim, 16) + kAttentionTile + 16);
}

struct NormRow {
  float eps = 0.0F;
  float weight_offset = 0.0F;
  const float* weight = nullptr;
  const float* bias = nullptr;  // (optional)
  const float* x = nullptr;
  float* residual = nullptr;  // (optional) residual += x first
  float* out = nullptr;
  int64_t cols = 0;
};

// A row as a checkpoint stores it.
struct SourceRow {
  const std::byte* data = nullptr;  // null: zeros
  DType dtype = DType::kF32;
  int64_t col_stride = 1;  // elements
};

struct PackPanel {
  std::array<SourceRow, 16> rows;
  int64_t cols = 0;
  std::byte* out = nullptr;  // (panel_bytes)
};

struct KernelTable {
  std::string_view isa;

  // Indexed by static_cast<size_t>(DType) of the weights, of the KV cache, of the packed matrix.
  std::array<void (*)(const MatmulBlock&), 3> matmul;
  std::array<void (*)(const AttentionBlock&), 3> attention;
  std::array<void (*)(const PackPanel&), 3> pack;

  void (*rms_norm)(const NormRow&);
  void (*layer_norm)(const NormRow&);
  // in (2 * cols) or (cols); indexed by Activation.
  std::array<void (*)(const float* in, float* out, int64_t cols), 5> gated_activation;
  std::array<void (*)(const float* in, float* out, int64_t cols), 5> activation;
  void (*add)(const float* x, const float* y, float* out, int64_t count);
  // In place: x * scale, then cap * tanh(x / cap) unless cap is 0.
  void (*scale_and_cap)(float* x, int64_t count, float scale, float cap);
  // In place on one head. cos_sin: (rotary_dim / 2) cosines, then as many sines.
  void (*rotate_half)(float* head, const float* cos_sin, int64_t rotary_dim);
  void (*rotate_interleaved)(float* head, const float* cos_sin, int64_t rotary_dim);

  SamplerMath sampler_math;

  // Elementwise, for tests: out[i] = f(x[i]).
  struct Math {
    void (*exp)(const float* x, float* out, int64_t count);
    void (*tanh)(const float* x, float* out, int64_t count);
    void (*erf)(const float* x, float* out, int64_t count);
  } math;
};

const KernelTable& generic_kernels();
#if defined(__x86_64__)
const KernelTable& avx2_kernels();    // needs avx2, fma, f16c
const KernelTable& avx512_kernels();  // needs avx512f, bw, dq, vl
#endif

}  // namespace tgi
