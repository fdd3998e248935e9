#include "tests/cuda/attention_case.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "tests/catch.h"

namespace tgi::cuda {
namespace {

// Numbers of a narrow type, as bytes.
template <typename T>
std::vector<std::byte> encode_as(const std::vector<float>& from) {
  std::vector<std::byte> out(from.size() * sizeof(T));
  for (size_t i = 0; i < from.size(); ++i) {
    const auto x = static_cast<T>(from[i]);
    std::memcpy(out.data() + i * sizeof(T), &x, sizeof(T));
  }
  return out;
}
template <typename T>
std::vector<float> decode_as(const std::vector<std::byte>& from) {
  std::vector<float> out(from.size() / sizeof(T));
  for (size_t i = 0; i < out.size(); ++i) {
    T x;
    std::memcpy(&x, from.data() + i * sizeof(T), sizeof(T));
    out[i] = static_cast<float>(x);
  }
  return out;
}
std::vector<std::byte> encode(DType dtype, const std::vector<float>& from) {
  if (dtype == DType::kF8E4M3) return encode_as<__nv_fp8_e4m3>(from);
  return dtype == DType::kBF16 ? encode_as<__nv_bfloat16>(from) : encode_as<__half>(from);
}
std::vector<float> decode(DType dtype, const std::vector<std::byte>& from) {
  if (dtype == DType::kF8E4M3) return decode_as<__nv_fp8_e4m3>(from);
  return dtype == DType::kBF16 ? decode_as<__nv_bfloat16>(from) : decode_as<__half>(from);
}

class DeviceArray {
 public:
  explicit DeviceArray(size_t size_bytes) : size_bytes_(size_bytes) {
    REQUIRE(cudaMalloc(&data_, std::max<size_t>(size_bytes, 16)) == cudaSuccess);
  }
  template <typename T>
  explicit DeviceArray(const std::vector<T>& from) : DeviceArray(from.size() * sizeof(T)) {
    REQUIRE(cudaMemcpy(data_, from.data(), size_bytes_, cudaMemcpyHostToDevice) == cudaSuccess);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::vector<std::byte> read() const {
    std::vector<std::byte> out(size_bytes_);
    REQUIRE(cudaMemcpy(out.data(), data_, size_bytes_, cudaMemcpyDeviceToHost) == cudaSuccess);
    return out;
  }

 private:
  void* data_ = nullptr;
  size_t size_bytes_;
};

constexpr float kUntouched = 123.0F;  // every type holds it

}  // namespace

float AttentionCase::scale() const {
  return 1.0F / std::sqrt(static_cast<float>(setup_.head_dim));
}

AttentionCase::AttentionCase(AttentionSetup setup, uint32_t seed) : setup_(std::move(setup)) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const auto num_sequences = static_cast<int32_t>(setup_.sequences.size());
  std::vector<int32_t> slots(setup_.sequences.size());
  std::iota(slots.begin(), slots.end(), 0);
  std::shuffle(slots.begin(), slots.end(), random);
  int32_t num_blocks = 0;
  for (int32_t i = 0; i < num_sequences; ++i) {
    SequenceRows& sequence = setup_.sequences[static_cast<size_t>(i)];
    sequence.slot = slots[static_cast<size_t>(i)];
    sequence.first_row = num_tokens_;
    num_tokens_ += sequence.num_rows;
    const int32_t blocks = (sequence.context_len + setup_.block_size - 1) / setup_.block_size;
    max_blocks_ = std::max(max_blocks_, blocks);
    num_blocks += blocks;
  }

  num_tokens_ += setup_.num_padding_rows;
  max_blocks_ = std::max(max_blocks_, 1);
  q_stride_ = setup_.width() + 2 * setup_.num_kv_heads * setup_.head_dim;
  q_.assign(static_cast<size_t>(num_tokens_ * q_stride_), 0.0F);
  for (float& x : q_) x = 2.0F * normal(random);
  q_ = decode(setup_.dtype, encode(setup_.dtype, q_));

  std::vector<int32_t> blocks(static_cast<size_t>(num_blocks));
  std::iota(blocks.begin(), blocks.end(), 0);
  std::shuffle(blocks.begin(), blocks.end(), random);
  block_tables_.assign(static_cast<size_t>((num_sequences + 1) * max_blocks_), num_blocks);
  const auto cache_size = static_cast<size_t>((num_blocks + 1) * setup_.num_kv_heads *
                                              setup_.block_size * setup_.head_dim);
  keys_.assign(cache_size, std::numeric_limits<float>::quiet_NaN());
  values_ = keys_;
  size_t next_block = 0;
  for (int32_t i = 0; i < num_sequences; ++i) {
    const SequenceRows& sequence = setup_.sequences[static_cast<size_t>(i)];
    for (int32_t b = 0; b * setup_.block_size < sequence.context_len; ++b) {
      block_tables_[static_cast<size_t>(sequence.slot * max_blocks_ + b)] = blocks[next_block++];
    }
    for (int32_t head = 0; head < setup_.num_kv_heads; ++head) {
      for (int32_t token = 0; token < sequence.context_len; ++token) {
        for (int32_t dim = 0; dim < setup_.head_dim; ++dim) {
          keys_[cached_at(i, head, token, dim)] = normal(random);
          values_[cached_at(i, head, token, dim)] = normal(random);
        }
      }
    }
  }
  for (int32_t dim = 0; setup_.needle >= 0 && dim < setup_.head_dim; ++dim) {
    keys_[cached_at(0, 0, setup_.needle, dim)] =
        q_[static_cast<size_t>(last_row() * q_stride_ + dim)];
  }
  const DType stored = setup_.cache_is_f8 ? DType::kF8E4M3 : setup_.dtype;
  keys_ = decode(stored, encode(stored, keys_));
  values_ = decode(stored, encode(stored, values_));
  for (int32_t head = 0; head < setup_.num_kv_heads; ++head) {
    key_scales_.push_back(setup_.cache_is_f8 ? 0.5F + 0.3F * static_cast<float>(head) : 1.0F);
    value_scales_.push_back(setup_.cache_is_f8 ? 1.7F - 0.3F * static_cast<float>(head) : 1.0F);
  }
  // From heads that see little but the last tokens to ones that see far; sinks from ones that take
  // nearly all of the softmax to ones that take nothing.
  for (int32_t head = 0; head < setup_.num_heads(); ++head) {
    slopes_.push_back(std::exp2(-0.7F * static_cast<float>(head + 1)));
    sinks_.push_back(6.0F - 3.0F * static_cast<float>(head));
  }
}

size_t AttentionCase::cached_at(int32_t sequence, int32_t head, int32_t token, int32_t dim) const {
  const int32_t slot = setup_.sequences[static_cast<size_t>(sequence)].slot;
  const int32_t block =
      block_tables_[static_cast<size_t>(slot * max_blocks_ + token / setup_.block_size)];
  return static_cast<size_t>(
      ((block * setup_.num_kv_heads + head) * setup_.block_size + token % setup_.block_size) *
          setup_.head_dim +
      dim);
}

int32_t AttentionCase::last_row() const {
  const SequenceRows& sequence = setup_.sequences.front();
  return sequence.first_row + sequence.num_rows - 1;
}
std::vector<double> AttentionCase::needle_value() const {
  std::vector<double> out;
  for (int32_t dim = 0; dim < setup_.head_dim; ++dim) {
    out.push_back(value(0, 0, setup_.needle, dim));
  }
  return out;
}
size_t AttentionCase::needle_row_begin() const {
  return static_cast<size_t>(last_row() * setup_.width());
}

double AttentionCase::key(int32_t sequence, int32_t head, int32_t token, int32_t dim) const {
  return static_cast<double>(keys_[cached_at(sequence, head, token, dim)]) *
         key_scales_[static_cast<size_t>(head)];
}
double AttentionCase::value(int32_t sequence, int32_t head, int32_t token, int32_t dim) const {
  return static_cast<double>(values_[cached_at(sequence, head, token, dim)]) *
         value_scales_[static_cast<size_t>(head)];
}

Tensor AttentionCase::head_row(float* values) const {
  const int64_t heads = setup_.num_heads();
  return {.data = values, .dtype = DType::kF32, .rows = 1, .cols = heads, .stride = heads};
}

std::vector<float> AttentionCase::run() const {
  std::vector<SequenceRows> sequences = setup_.sequences;
  const auto nobody = static_cast<int32_t>(sequences.size());
  for (int32_t i = num_tokens_ - setup_.num_padding_rows; i < num_tokens_; ++i) {
    sequences.push_back({.slot = nobody, .first_row = i, .num_rows = 1, .context_len = 1});
  }
  return run(sequences, setup_.deterministic);
}

std::vector<float> AttentionCase::run(const std::vector<SequenceRows>& sequences,
                                      bool deterministic) const {
  const AttentionPlanOptions options = {.num_kv_heads = setup_.num_kv_heads,
                                        .num_blocks = setup_.num_decode_blocks,
                                        .deterministic = deterministic};
  AttentionPlan plan;
  plan_attention(sequences, options, plan);
  const auto num_sequences = static_cast<int32_t>(sequences.size());
  const int32_t max_partials = max_decode_partials(num_sequences, options);
  const DType stored = setup_.cache_is_f8 ? DType::kF8E4M3 : setup_.dtype;
  const DeviceArray q(encode(setup_.dtype, q_));
  const DeviceArray keys(encode(stored, keys_));
  const DeviceArray values(encode(stored, values_));
  const DeviceArray tables(block_tables_);
  const DeviceArray key_scales(key_scales_);
  const DeviceArray value_scales(value_scales_);
  const DeviceArray slopes(slopes_);
  const DeviceArray sinks(sinks_);
  const Tensor slope_row = head_row(slopes.as<float>());
  const Tensor sink_row = head_row(sinks.as<float>());
  const DeviceArray device_sequences(sequences);
  const DeviceArray items(plan.items);
  const DeviceArray block_begin(plan.block_begin);
  const DeviceArray merges(plan.merges);
  const DeviceArray num_merges(std::vector<int32_t>{static_cast<int32_t>(plan.merges.size())});
  const DeviceArray tiles(plan.tiles);
  const int64_t num_floats =
      setup_.head_dim > kMaxNarrowDim
          ? wide_partial_floats(setup_.num_decode_blocks, setup_.head_dim)
          : attention_partial_floats(max_partials, setup_.group, setup_.head_dim);
  const DeviceArray partials(sizeof(float) * static_cast<size_t>(num_floats));
  const int64_t out_stride = setup_.width() + 16;
  const DeviceArray out(encode(
      setup_.dtype, std::vector<float>(static_cast<size_t>(num_tokens_ * out_stride), kUntouched)));

  const AttentionArgs args = {
      .place = {},
      .num_heads = setup_.num_heads(),
      .num_kv_heads = setup_.num_kv_heads,
      .head_dim = setup_.head_dim,
      .scale = scale(),
      .softcap = setup_.softcap,
      .sliding_window = setup_.sliding_window,
      .attention_chunk = setup_.attention_chunk,
      .alibi_slopes = setup_.alibi ? &slope_row : nullptr,
      .sinks = setup_.sinks ? &sink_row : nullptr,
      .q = {q.as<void>(), setup_.dtype, num_tokens_, setup_.width(), q_stride_},
      .out = {out.as<void>(), setup_.dtype, num_tokens_, setup_.width(), out_stride}};
  const AttentionLaunch launch = {
      .cache = {.keys = keys.as<void>(),
                .values = values.as<void>(),
                .block_rows = setup_.num_kv_heads * setup_.block_size},
      .cache_dtype = stored,
      .key_scales = setup_.cache_is_f8 ? key_scales.as<float>() : nullptr,
      .value_scales = setup_.cache_is_f8 ? value_scales.as<float>() : nullptr,
      .block_size = setup_.block_size,
      .block_tables = tables.as<int32_t>(),
      .max_blocks = max_blocks_,
      .plan = {.sequences = device_sequences.as<SequenceRows>(),
               .items = items.as<DecodeItem>(),
               .block_begin = block_begin.as<int32_t>(),
               .merges = merges.as<DecodeMerge>(),
               .num_merges = num_merges.as<int32_t>(),
               .tiles = tiles.as<PrefillTile>()},
      .num_sequences = num_sequences,
      // As in a captured step: launched although there may be nothing to do.
      .num_decode_blocks = deterministic ? 0 : setup_.num_decode_blocks,
      .max_merges = max_decode_merges(num_sequences, options),
      .num_tiles = static_cast<int32_t>(plan.tiles.size()),
      .partials = partials.as<float>(),
      .shared_bytes_of_multiprocessor = setup_.shared_bytes};
  prepare_attention_kernels(setup_.shared_bytes);
  launch_attention(nullptr, args, launch);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);

  const std::vector<float> with_gaps = decode(setup_.dtype, out.read());
  std::vector<bool> computed(static_cast<size_t>(num_tokens_), false);
  for (const SequenceRows& sequence : sequences) {
    for (int32_t i = 0; i < sequence.num_rows; ++i) {
      computed[static_cast<size_t>(sequence.first_row + i)] = true;
    }
  }
  std::vector<float> rows;
  int64_t num_stray = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(with_gaps.size()); ++i) {
    const float x = with_gaps[static_cast<size_t>(i)];
    const bool is_padding = i % out_stride >= setup_.width();
    if (!is_padding) rows.push_back(x);
    if (is_padding || !computed[static_cast<size_t>(i / out_stride)]) num_stray += x != kUntouched;
  }
  REQUIRE(num_stray == 0);
  return rows;
}

// With u the unit roundoff of T and e = 2^-23 that of f32 where hardware truncates: a score is off
// by (head_dim + 8) e times the sum of its terms' sizes and by 8 e times its own (and what was
// taken off it for its distance) and the cap's; a weight by that (relative), by u when it is
// rounded to T, or by 2^-25 where f16 is subnormal; sums of n weights or values by n e; the result
// by u again, or by 2^-25.
void AttentionCase::expect_row(int32_t sequence, int32_t row, int32_t head, Expected& out) const {
  constexpr double e = 0x1p-23;
  const double u = setup_.dtype == DType::kBF16 ? 0x1p-8 : 0x1p-11;
  const SequenceRows& rows = setup_.sequences[static_cast<size_t>(sequence)];
  const int32_t position = rows.context_len - rows.num_rows + row;
  const int32_t kv_head = head / setup_.group;
  int32_t begin =
      setup_.sliding_window == 0 ? 0 : std::max(0, position - setup_.sliding_window + 1);
  if (setup_.attention_chunk > 0) {
    begin = std::max(begin, position - position % setup_.attention_chunk);
  }
  const auto* const q =
      q_.data() + (rows.first_row + row) * q_stride_ + static_cast<int64_t>(head) * setup_.head_dim;
  std::vector<double> weights;
  double largest = -INFINITY;
  double score_error = 0.0;
  for (int32_t token = begin; token <= position; ++token) {
    double dot = 0.0;
    double size = 0.0;
    for (int32_t d = 0; d < setup_.head_dim; ++d) {
      const double product = q[d] * key(sequence, kv_head, token, d);
      dot += product;
      size += std::abs(product);
    }
    double score = dot * scale();
    if (setup_.softcap > 0.0F) score = setup_.softcap * std::tanh(score / setup_.softcap);
    const double before = std::abs(score);
    if (setup_.alibi) {
      score += static_cast<double>(slopes_[static_cast<size_t>(head)]) * (token - position);
    }
    weights.push_back(score);
    largest = std::max(largest, score);
    score_error = std::max(
        score_error, (setup_.head_dim + 8) * e * size * scale() +
                         8 * e * (before + std::abs(score) + static_cast<double>(setup_.softcap)));
  }
  double sum = 0.0;
  if (setup_.sinks) {
    const double sink = sinks_[static_cast<size_t>(head)];
    largest = std::max(largest, sink);
    score_error = std::max(score_error, 8 * e * std::abs(sink));
    sum = std::exp(sink - largest);
  }
  for (double& w : weights) {
    w = std::exp(w - largest);
    sum += w;
  }
  const auto n = static_cast<double>(weights.size());
  for (int32_t d = 0; d < setup_.head_dim; ++d) {
    double result = 0.0;
    double size = 0.0;
    double largest_value = 0.0;
    for (size_t i = 0; i < weights.size(); ++i) {
      const double v = value(sequence, kv_head, begin + static_cast<int32_t>(i), d);
      result += weights[i] / sum * v;
      size += weights[i] / sum * std::abs(v);
      largest_value = std::max(largest_value, std::abs(v));
    }
    // The error of the largest score is in every other weight.
    const double relative = u + 4 * score_error + (2 * n + 16) * e;
    const double error = relative * size + n * 0x1p-25 * largest_value;
    const double subnormal = setup_.dtype == DType::kF16 ? 0x1p-25 : 0.0;
    out.out.push_back(result);
    out.bound.push_back(error + u * (std::abs(result) + error) + subnormal);
  }
}

AttentionCase::Expected AttentionCase::expected() const {
  Expected out;
  for (size_t i = 0; i < setup_.sequences.size(); ++i) {
    for (int32_t row = 0; row < setup_.sequences[i].num_rows; ++row) {
      for (int32_t head = 0; head < setup_.num_heads(); ++head) {
        expect_row(static_cast<int32_t>(i), row, head, out);
      }
    }
  }
  return out;
}

}  // namespace tgi::cuda
