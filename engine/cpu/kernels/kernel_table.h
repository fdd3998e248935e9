// The kernels of one instruction set as function pointers: chosen once at start, same bits from
// every set. Arguments are plain structs; kernels check nothing and allocate nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "engine/cpu/panel_layout.h"
#include "engine/device/backend.h"
#include "engine/sample/sampler_math.h"
#include "engine/tensor/tensor.h"

namespace tgi {

// out[r][n] = x[r] . w[n] + bias[n], for some panels of w.
struct MatmulBlock {
  const std::byte* x = nullptr;  // (num_rows), prepared
  int64_t x_stride_bytes = 0;
  int64_t num_rows = 0;
  int64_t k = 0;
  int64_t group_size = 0;             // of panels of integers
  GroupHead head{};                   // of panels of integers
  const std::byte* panels = nullptr;  // the first panel
  int64_t panel_bytes = 0;
  int64_t num_panels = 0;
  const std::byte* next_panels = nullptr;  // (optional) what the thread will probably work on next
  const float* bias = nullptr;             // (optional) (num_outputs)
  float* out = nullptr;                    // (num_rows, num_outputs)
  int64_t out_stride = 0;
  int64_t num_outputs = 0;  // <= 16 * num_panels; the rest of the last panel is padding
};

// So much of a prepared row kernels for many rows take at a time, and some panels pass by that: of
// long rows too what many have stays in the second-level cache.
inline constexpr int64_t kMatmulPartBytes = 4096;

struct MatmulKernel {
  // The size of one prepared row of x; 64-byte alignment of rows is enough.
  int64_t (*x_bytes)(int64_t k, int64_t group_size) = nullptr;
  void (*prepare)(const float* x, int64_t k, int64_t group_size, std::byte* out) = nullptr;
  void (*block)(const MatmulBlock&) = nullptr;
};

// Whether what prepare makes of an even number of columns is a copy.
constexpr bool takes_plain_x(PanelType type) {
  return type == PanelType::kF32 || type == PanelType::kF16;
}

// What a KV cache of bf16 panels holds in their place: a byte for each number, in the same order,
// and behind each panel of keys, and those of the values of 16 positions, the 16 scales (f32) of
// int8.
enum class CacheCodes : uint8_t { kNone, kF8E4M3, kInt8 };

// A run of query rows that share one KV head of one sequence. Row r is query (first_row + r) /
// group_size, head (first_row + r) % group_size of the KV head's group.
struct AttentionBlock {
  const float* q = nullptr;  // of query 0, first head of the group
  int64_t q_stride = 0;      // between queries
  float* out = nullptr;
  int64_t out_stride = 0;
  int32_t group_size = 0;
  int32_t head_dim = 0;
  int32_t value_dim = 0;  // head_dim where values are apart
  int32_t first_row = 0;
  int32_t num_rows = 0;        // <= kMaxAttentionRows
  int64_t first_position = 0;  // of query 0

  // The cache of this layer and KV head: block b's keys at k + b * block_stride_bytes.
  const std::byte* k = nullptr;  // per 16 positions: a panel, rows positions, cols head_dim
  // Per 16 positions: panels, rows 16 of head_dim, cols positions. Null: a key's first value_dim
  // columns are its value.
  const std::byte* v = nullptr;
  CacheCodes codes = CacheCodes::kNone;
  int64_t k_block_stride_bytes = 0;
  int64_t v_block_stride_bytes = 0;
  const int32_t* block_table = nullptr;
  int32_t block_size = 0;

  float scale = 1.0F;
  float softcap = 0.0F;
  int32_t sliding_window = 0;
  int32_t attention_chunk = 0;
  const float* alibi_slopes = nullptr;  // (optional) (group_size)
  // Where queries see what is after them too: the tokens of the whole context. 0: causal.
  int64_t num_visible = 0;
  const float* distance_bias = nullptr;  // (optional) (group_size, 2 * bias_reach + 1)
  int64_t distance_bias_stride = 0;
  int32_t bias_reach = 0;
  // (optional) Products with distances: of query 0's first head, and of the key at position 0 with
  // the KV head; then the next row's. A group has one head.
  const float* query_products = nullptr;
  const float* key_products = nullptr;
  int64_t query_products_stride = 0;
  int64_t key_products_stride = 0;
  const int32_t* distance_kinds = nullptr;  // of distance 0, those before and after it beside
  const float* sinks = nullptr;             // (optional) (group_size)
  // (optional) What query 0 sees of the context: of each choice a bit for each position, 64 in a
  // word, the lowest first; then the next query's. Of a head as SeenChoice says.
  const uint64_t* chosen = nullptr;
  int64_t chosen_words = 0;  // of a choice
  int32_t num_choices = 0;
  int32_t heads_per_choice = 1;
  int32_t first_head = 0;  // the model's number of the group's first head
  // (optional) The positions that all rows see, ascending, where values are columns of keys that
  // are no codes: they go through in tiles of 64 as if they were all that there is.
  const int32_t* gathered = nullptr;
  int32_t num_gathered = 0;
  // The first of them that is an entry (engine/device/compress_ops.h), which lies elsewhere: a row
  // by itself, in the lines of a panel of one.
  int32_t first_entry = std::numeric_limits<int32_t>::max();
  const std::byte* entries = nullptr;  // of block b at entries + b * entry_block_stride_bytes
  int64_t entry_block_stride_bytes = 0;
  int64_t entry_bytes = 0;
  const int32_t* entry_blocks = nullptr;
  int32_t tokens_per_entry = 1;
  std::byte* scratch = nullptr;  // attention_scratch_bytes(head_dim, …), 64-byte aligned

  // Values of a whole tile are in the workspace.
  [[gnu::always_inline]] bool values_are_taken() const {
    return v == nullptr || codes != CacheCodes::kNone;
  }
};

inline constexpr int64_t kMaxAttentionRows = 64;
inline constexpr int64_t kAttentionTile = 64;  // positions; tiles begin at multiples of it

constexpr int64_t attention_scratch_bytes(int64_t head_dim, bool values_are_taken) {
  // prepared q, accumulators, scores, prepared weights, lane sums of the softmax per row; values of
  // a chunk that is not full, or of a tile that are taken out of its keys or out of codes; keys
  // that were codes or are gathered, and the scales of a tile
  const int64_t width = round_up(head_dim, kPairBlock);
  const int64_t positions = values_are_taken ? kAttentionTile : 16;
  const int64_t decoded = values_are_taken ? (width * 4 + 2 * 4) * kAttentionTile : 0;
  return kMaxAttentionRows * (2 * width + 2 * kAttentionTile + 16) * 4 + width * positions * 4 +
         decoded;
}

struct NormRow {
  float eps = 0.0F;
  const float* weight = nullptr;
  const float* bias = nullptr;  // (optional)
  const float* x = nullptr;
  float* residual = nullptr;  // (optional) residual += x_multiplier * x first
  float x_multiplier = 1.0F;
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
  PanelLayout layout;
  std::byte* out = nullptr;  // (layout.bytes())
};

// In place: softplus(x + bias), held between min and max.
struct StepRow {
  float* x = nullptr;
  const float* bias = nullptr;  // (optional)
  float min = 0.0F;
  float max = 0.0F;
  int64_t cols = 0;
};

struct ConvRow {
  std::array<const float*, kMaxConvKernel> x{};  // the rows it sees, the oldest first
  int32_t kernel = 0;
  const float* weight = nullptr;    // (kernel, cols)
  const float* bias = nullptr;      // (optional) (cols)
  const float* out_gate = nullptr;  // (optional) (cols)
  bool silu = false;
  float* out = nullptr;
  int64_t cols = 0;
};

// Up to kStateLanes channels of a head, or of all, over the tokens of a sequence in a step.
struct ScanBlock {
  float* state = nullptr;  // (state_size, kStateLanes)
  int64_t num_tokens = 0;
  int64_t num_channels = 0;
  int64_t state_size = 0;
  const float* decay = nullptr;  // of the head; or (state_size, decay_stride)
  int64_t decay_stride = 0;
  const float* skip = nullptr;  // of the head; or of each channel
  const float* x = nullptr;
  int64_t x_stride = 0;
  const float* step = nullptr;  // of the head; or of each channel
  int64_t step_stride = 0;
  const float* b = nullptr;
  int64_t b_stride = 0;
  const float* c = nullptr;
  int64_t c_stride = 0;
  float* out = nullptr;
  int64_t out_stride = 0;
};

// In place: what is kept of a state after a token, of what DeltaRuleArgs calls dt.
struct KeptRow {
  float* x = nullptr;
  const float* bias = nullptr;
  const float* decay = nullptr;  // one for all columns, or one for each
  bool shares_decay = false;
  float floor = 0.0F;
  int64_t cols = 0;
};

struct DeltaBlock {
  float* state = nullptr;  // (state_size, kStateLanes)
  int64_t num_tokens = 0;
  int64_t num_channels = 0;
  int64_t state_size = 0;
  float strength = 1.0F;
  const float* q = nullptr;
  int64_t q_stride = 0;
  const float* k = nullptr;
  int64_t k_stride = 0;
  const float* v = nullptr;
  int64_t v_stride = 0;
  const float* beta = nullptr;
  int64_t beta_stride = 0;
  const float* kept = nullptr;  // of the head; or of each number of it
  int64_t kept_stride = 0;
  float* out = nullptr;
  int64_t out_stride = 0;
};

struct RgLruBlock {
  float* state = nullptr;  // (kStateLanes)
  bool begins = false;     // the first token is its sequence's
  int64_t num_tokens = 0;
  int64_t num_channels = 0;
  const float* decay = nullptr;
  const float* input_bias = nullptr;
  const float* decay_bias = nullptr;
  const float* x = nullptr;
  int64_t x_stride = 0;
  const float* input_gate = nullptr;
  int64_t input_gate_stride = 0;
  const float* decay_gate = nullptr;
  int64_t decay_gate_stride = 0;
  float* out = nullptr;
  int64_t out_stride = 0;
};

// Of layers that carry a state.
struct StateKernels {
  void (*softplus)(const StepRow&);
  void (*sigmoid)(float* x, int64_t cols);
  std::array<void (*)(float* x, const float* gate, int64_t cols), 3> gate;  // by GateKind
  void (*multiply)(float* x, const float* y, int64_t cols);
  void (*divide_by_length)(float* x, int64_t cols, float scale);
  void (*conv)(const ConvRow&);
  void (*scan_channels)(const ScanBlock&);
  void (*scan_head)(const ScanBlock&);
  void (*kept)(const KeptRow&);
  void (*delta)(const DeltaBlock&);
  void (*delta_of_numbers)(const DeltaBlock&);  // where each decays by itself
  void (*rg_lru)(const RgLruBlock&);
};

// Of engine/device/stream_ops.h.
struct RoutedRow {
  int32_t count = 0;
  float scale = 1.0F;
  const float* routed = nullptr;  // (count)
  const float* matrix = nullptr;  // (coefficients, count)
};

struct StreamsRow {
  RoutedRow routing;
  int32_t active = 0;
  const float* x = nullptr;       // (cols)
  const float* scales = nullptr;  // (optional) (cols)
  float* streams = nullptr;       // (count, cols)
  float* out = nullptr;           // (cols)
  int64_t cols = 0;
};

struct ConnectedRow {
  int32_t count = 0;
  float norm_eps = 0.0F;
  float eps = 0.0F;
  const float* made = nullptr;
  const float* base = nullptr;
  const float* scales = nullptr;
  float* streams = nullptr;  // (count, cols)
  int64_t cols = 0;
  float* out = nullptr;  // (cols), of collapse
  float magnitude = 1.0F;
  float branch_eps = 0.0F;
  int32_t mixing_turns = 0;
  const float* x = nullptr;  // (cols), of expand
};

struct StreamKernels {
  void (*predict)(const StreamsRow&);
  void (*collapse)(const ConnectedRow&);
  void (*expand)(const ConnectedRow&);
  void (*correct)(const StreamsRow&);
  void (*match_rms)(const float* like, float* x, int64_t cols, float least_square);
  void (*statistical_top_k)(float* x, int64_t cols, float deviations);
};

struct KernelTable {
  std::string_view isa;

  PairOrder pair_order;  // of bf16 lines
  // Rows that suit a call of attention, by panel_type of the KV cache; any number up to
  // kMaxAttentionRows will do.
  std::array<int64_t, 3> attention_rows;

  std::array<MatmulKernel, kNumPanelTypes> matmul;  // by PanelType
  // For many rows, where another unit of the processor is faster: the same bits. Null where not.
  std::array<MatmulKernel, kNumPanelTypes> matmul_many;
  std::array<void (*)(const PackPanel&), kNumRoundedTypes> pack;
  std::array<void (*)(const AttentionBlock&), 3> attention;  // by panel_type of the KV cache

  void (*rms_norm)(const NormRow&);
  void (*layer_norm)(const NormRow&);
  // in (2 * cols) or (cols); indexed by Activation, but for kXielu.
  std::array<void (*)(const float* in, float* out, int64_t cols), 5> gated_activation;
  std::array<void (*)(const float* in, float* out, int64_t cols), 5> activation;
  // The gated form of kSilu with limits.
  void (*limited_silu)(const float* in, float* out, int64_t cols, const GateLimits& limits);
  void (*xielu)(const float* in, float* out, int64_t cols, const XieluNumbers& numbers);
  // out = x + y_multiplier * y
  void (*add)(const float* x, const float* y, float y_multiplier, float* out, int64_t count);
  // In place: x * scale, then cap * tanh(x / cap) unless cap is 0.
  void (*scale_and_cap)(float* x, int64_t count, float scale, float cap);
  // In place on one head. cos_sin: (rotary_dim / 2) cosines, then as many sines.
  void (*rotate_half)(float* head, const float* cos_sin, int64_t rotary_dim);
  void (*rotate_interleaved)(float* head, const float* cos_sin, int64_t rotary_dim);

  StateKernels state;
  StreamKernels streams;

  SamplerMath sampler_math;

  // Elementwise, for tests: out[i] = f(x[i]).
  struct Math {
    void (*exp)(const float* x, float* out, int64_t count);
    void (*tanh)(const float* x, float* out, int64_t count);
    void (*erf)(const float* x, float* out, int64_t count);
    void (*exp_less_tangent)(const float* x, float* out, int64_t count);
  } math;
  // Likewise, as attention has it inlined: 64 codes of a KV cache as bf16.
  void (*decode_e4m3)(const std::byte* codes, std::byte* out);
  void (*decode_int8)(const std::byte* codes, std::byte* out);
};

const KernelTable& generic_kernels();
#if defined(__x86_64__)
const KernelTable& avx2_kernels();        // needs avx2, fma, f16c
const KernelTable& avxvnni_kernels();     // also avxvnni
const KernelTable& avx512_kernels();      // needs avx512f, bw, dq, vl
const KernelTable& avx512vnni_kernels();  // also avx512vnni
const KernelTable& avx512bf16_kernels();  // also avx512bf16
const KernelTable& amx_kernels();         // also amx-tile, amx-bf16, amx-int8
#endif

}  // namespace tgi
