// What the conformance tests share: random host arrays, tensors and matrices on a device, and
// running some ops as one step.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "engine/device/backend.h"
#include "engine/tensor/half.h"

namespace tgi {

using Floats = std::vector<float>;

// Same numbers on every machine: std::uniform_real_distribution promises no such thing.
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  // In [-1, 1), in steps of 1/128: the same number in every type, so that what is compared are the
  // ops alone.
  float value() { return static_cast<float>(engine_() >> 24) * 0x1p-7F - 1.0F; }
  // In [low, high].
  int32_t integer(int32_t low, int32_t high) {
    return low + static_cast<int32_t>(engine_() % static_cast<uint32_t>(high - low + 1));
  }
  Floats values(int64_t count) {
    Floats out(static_cast<size_t>(count));
    for (float& x : out) x = value();
    return out;
  }
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[static_cast<size_t>(integer(0, static_cast<int32_t>(i) - 1))]);
    }
  }

 private:
  std::mt19937 engine_;
};

// Relative error of one rounding.
inline double roundoff(DType dtype) {
  constexpr double kRoundoff[] = {0x1p-24, 0x1p-11, 0x1p-8, 0x1p-4,
                                  0x1p-8};  // int8: of the largest
  return kRoundoff[static_cast<size_t>(dtype)];
}

// The bytes of `values` rounded to `dtype`.
inline std::vector<std::byte> encode(const Floats& values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * dtype_size(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kF32) {
      std::memcpy(bytes.data() + 4 * i, &values[i], 4);
    } else {
      const uint16_t half = dtype == DType::kF16 ? f32_to_f16(values[i]) : f32_to_bf16(values[i]);
      std::memcpy(bytes.data() + 2 * i, &half, 2);
    }
  }
  return bytes;
}

inline Floats decode(const std::vector<std::byte>& bytes, DType dtype) {
  Floats values(bytes.size() / dtype_size(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kF32) {
      std::memcpy(&values[i], bytes.data() + 4 * i, 4);
    } else {
      uint16_t half = 0;
      std::memcpy(&half, bytes.data() + 2 * i, 2);
      values[i] = dtype == DType::kF16 ? f16_to_f32(half) : bf16_to_f32(half);
    }
  }
  return values;
}

// A tensor that owns its device memory. Rows may lie further apart than they are long.
class DeviceTensor {
 public:
  DeviceTensor(Device& device, int64_t rows, int64_t cols, DType dtype, int64_t stride = 0)
      : device_(&device), stride_(stride == 0 ? cols : stride) {
    const auto bytes = static_cast<size_t>(rows * stride_) * dtype_size(dtype);
    memory_ = device.allocate(bytes, "test tensor");
    view_ = {.data = memory_.data(), .dtype = dtype, .rows = rows, .cols = cols, .stride = stride_};
  }
  // In the device's activation type.
  DeviceTensor(Device& device, int64_t rows, int64_t cols, const Floats& values)
      : DeviceTensor(device, rows, cols, device.info().activation_dtype) {
    write(values);
  }
  static DeviceTensor vector(Device& device, const Floats& values) {
    DeviceTensor out(device, 1, static_cast<int64_t>(values.size()), DType::kF32);
    out.write(values);
    return out;
  }

  const Tensor& view() const { return view_; }

  void write(const Floats& values) {
    for (int64_t row = 0; row < view_.rows; ++row) {
      const auto begin = values.begin() + row * view_.cols;
      const auto bytes = encode(Floats(begin, begin + view_.cols), view_.dtype);
      device_->copy_to_device(address(row), bytes.data(), bytes.size());
    }
  }
  Floats read() const {
    Floats out;
    for (int64_t row = 0; row < view_.rows; ++row) {
      std::vector<std::byte> bytes(static_cast<size_t>(view_.cols) * dtype_size(view_.dtype));
      device_->copy_to_host(bytes.data(), address(row), bytes.size());
      const Floats values = decode(bytes, view_.dtype);
      out.insert(out.end(), values.begin(), values.end());
    }
    return out;
  }

 private:
  void* address(int64_t row) const {
    return static_cast<std::byte*>(view_.data) +
           static_cast<size_t>(row * stride_) * dtype_size(view_.dtype);
  }

  Device* device_;
  int64_t stride_;
  Buffer memory_;
  Tensor view_;
};

// A dense weight in the bytes of a checkpoint.
struct StoredMatrix {
  std::vector<std::byte> bytes;
  HostWeight weight;

  StoredMatrix(
      const Floats& values, int64_t rows, int64_t cols, DType dtype, bool transposed = false)
      : bytes(encode(transposed ? transpose(values, rows, cols) : values, dtype)) {
    weight = {.name = "test.weight", .format = "dense", .rows = rows, .cols = cols, .parts = {}};
    weight.parts.push_back({.role = "weight",
                            .data = bytes.data(),
                            .dtype = dtype,
                            .rows = rows,
                            .cols = cols,
                            .row_stride = transposed ? 1 : cols,
                            .col_stride = transposed ? rows : 1});
  }

  static Floats transpose(const Floats& values, int64_t rows, int64_t cols) {
    Floats out(values.size());
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t col = 0; col < cols; ++col) {
        out[static_cast<size_t>(col * rows + row)] = values[static_cast<size_t>(row * cols + col)];
      }
    }
    return out;
  }
};

// A matrix of integers in groups, as a checkpoint has them.
struct GroupedWeight {
  std::vector<int8_t> codes;
  std::vector<float> scales;
  std::vector<int8_t> zeros;
  std::vector<float> minima;
  std::vector<float> block_scales;
  std::vector<int8_t> group_scales;
  std::vector<float> block_minima;
  std::vector<int8_t> group_minima;
  HostWeight weight;

  // Values below 1; with `exact` they are exact in bf16 and f16 too.
  GroupedWeight(
      Random& random, int64_t rows, int64_t cols, const MatrixStorage& storage, bool exact) {
    const int64_t num_groups = (cols + storage.group_size - 1) / storage.group_size;
    const bool is_iq4 = storage.quantization == Quantization::kIq4;
    const bool is_f8 = storage.quantization == Quantization::kF8E4M3;
    const bool is_table = value_table(storage.quantization) != nullptr;
    const int32_t top = is_iq4 ? 127 : (1 << (integer_bits(storage.quantization) - 1)) - 1;
    const bool is_mxfp4 = storage.quantization == Quantization::kMxfp4;
    const bool has_sign = !storage.minima || top == 127;
    for (int64_t i = 0; i < rows * cols; ++i) {
      codes.push_back(is_table   ? static_cast<int8_t>(random.integer(0, 15))
                      : is_mxfp4 ? kMxfp4Codes[random.integer(0, 15)]
                      : is_iq4   ? kIq4Codes[random.integer(0, 15)]
                      : is_f8    ? finite_e4m3(random)
                      : has_sign ? static_cast<int8_t>(random.integer(-top - 1, top))
                                 : static_cast<int8_t>(random.integer(0, 2 * top + 1)));
    }
    for (int64_t i = 0; i < rows * num_groups; ++i) {
      const float part =
          exact ? 1.0F : 1.0F + static_cast<float>(random.integer(0, 1 << 20)) * 0x1p-21F;
      scales.push_back(is_mxfp4 ? std::ldexp(1.0F, random.integer(-8, -4))
                                : part / static_cast<float>(top + 1) / (is_f8 ? 16.0F : 4.0F));
      zeros.push_back(static_cast<int8_t>(random.integer(-top - 1, top)));
      minima.push_back(-part / 8.0F);
    }
    if (storage.scales == ScaleForm::kF16) round_scales();
    if (storage.scales == ScaleForm::kFactors) make_factors(random, rows, cols, storage, exact);
    weight.name = "test.weight";
    weight.format = "grouped";
    weight.rows = rows;
    weight.cols = cols;
    weight.grouped = {.codes = codes.data(),
                      .scales = scales.data(),
                      .zeros = storage.zero_points ? zeros.data() : nullptr,
                      .minima = storage.minima ? minima.data() : nullptr,
                      .factors = {.block_scales = data_or_null(block_scales),
                                  .group_scales = data_or_null(group_scales),
                                  .block_minima = data_or_null(block_minima),
                                  .group_minima = data_or_null(group_minima)},
                      .table = value_table(storage.quantization),
                      .group_size = storage.group_size,
                      .num_groups = num_groups};
  }
  GroupedWeight(const GroupedWeight&) = delete;
  GroupedWeight& operator=(const GroupedWeight&) = delete;

 private:
  // 0x7f and 0xff are not numbers.
  static int8_t finite_e4m3(Random& random) {
    return static_cast<int8_t>(random.integer(0, 126) - 128 * random.integer(0, 1));
  }

  template <typename T>
  static const T* data_or_null(const std::vector<T>& values) {
    return values.empty() ? nullptr : values.data();
  }

  void round_scales() {
    for (float& each : scales) each = f16_to_f32(f32_to_f16(each));
    for (float& each : minima) each = f16_to_f32(f32_to_f16(each));
  }

  void make_factors(
      Random& random, int64_t rows, int64_t cols, const MatrixStorage& storage, bool exact) {
    const auto num_groups = static_cast<int64_t>(scales.size()) / rows;
    const int64_t num_blocks = (cols + kFactorCols - 1) / kFactorCols;
    const auto number = [&](float value) {
      const float part = exact ? 1.0F : 1.0F - static_cast<float>(random.integer(0, 99)) * 0.001F;
      return f16_to_f32(f32_to_f16(value * part));
    };
    // With minima both integers are those of six bits; without, they are signed.
    const auto integer = [&] { return static_cast<int8_t>(random.integer(0, 63)); };
    for (int64_t i = 0; i < rows * num_blocks; ++i) {
      block_scales.push_back(number(scales[0] / 64.0F));
      if (storage.minima) block_minima.push_back(number(0x1p-9F));
    }
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t group = 0; group < num_groups; ++group) {
        const auto block =
            static_cast<size_t>(row * num_blocks + group * storage.group_size / kFactorCols);
        const auto at = static_cast<size_t>(row * num_groups + group);
        const bool is_negative = !storage.minima && random.integer(0, 1) == 1;
        group_scales.push_back(exact ? int8_t{32} : integer());
        if (is_negative) group_scales.back() = static_cast<int8_t>(-group_scales.back());
        scales[at] = block_scales[block] * static_cast<float>(group_scales[at]);
        if (!storage.minima) continue;
        group_minima.push_back(exact ? int8_t{32} : integer());
        minima[at] = -(block_minima[block] * static_cast<float>(group_minima[at]));
      }
    }
  }
};

inline std::unique_ptr<Matrix> make_matrix(Device& device,
                                           const Floats& values,
                                           int64_t rows,
                                           int64_t cols,
                                           const MatrixStorage& storage) {
  const StoredMatrix stored(values, rows, cols, storage.dtype);
  return device.make_matrix(std::span(&stored.weight, 1), storage);
}

class FunctionForward final : public Forward {
 public:
  FunctionForward(std::function<void()> run, std::function<void()> sample)
      : run_(std::move(run)), sample_(std::move(sample)) {}
  void run(int32_t /*num_tokens*/, int32_t /*num_logit_rows*/) override { run_(); }
  void sample(int32_t /*num_logit_rows*/) override {
    if (sample_) sample_();
  }

 private:
  std::function<void()> run_;
  std::function<void()> sample_;
};

inline const StepResult& run_step(Device& device,
                                  const Batch& batch,
                                  std::function<void()> run,
                                  std::function<void()> sample = nullptr,
                                  const TokenMasks& masks = {}) {
  FunctionForward forward(std::move(run), std::move(sample));
  const Ticket ticket = device.submit(batch, forward);
  device.sample(ticket, masks);
  return device.wait(ticket);
}

inline constexpr int32_t kSmallReportedCols = 60;
inline constexpr int32_t kSmallPooledCols = 37;

// Small state for tests of ops that need none of their own.
inline void allocate_small_state(Device& device, int32_t vocab_size = 64) {
  device.allocate_state({.num_layers = 1,
                         .num_kv_heads = 1,
                         .head_dim = 16,
                         .block_size = 16,
                         .num_blocks = 6,
                         .dtype = device.info().activation_dtype},
                        {.num_slots = 4,
                         .max_blocks_per_slot = 6,
                         .max_batch_tokens = 96,
                         .vocab_size = vocab_size,
                         .block_size = 16,
                         .max_matmul_cols = 4096,
                         .reported_cols = kSmallReportedCols,
                         .pooled_cols = kSmallPooledCols});
}

// One sequence in slot 0 with these tokens, at positions from 0.
inline Batch one_sequence(std::vector<int32_t> token_ids) {
  Batch batch;
  batch.clear();
  batch.token_ids = std::move(token_ids);
  for (int32_t i = 0; i < batch.num_tokens(); ++i) batch.positions.push_back(i);
  batch.slots = {0};
  batch.cu_seqlens_q = {0, batch.num_tokens()};
  batch.context_lens = {batch.num_tokens()};
  batch.slot_starts.emplace_back();  // slot 0
  for (int32_t i = 0; i < 4; ++i)
    batch.block_appends.push_back({.slot = 0, .index = i, .block = i});
  return batch;
}

// Before the step that computes `position`: the blocks of group 1 that no window reaches are
// another's.
inline void leave_window(int32_t slot,
                         int32_t window,
                         int32_t position,
                         int32_t block_size,
                         int32_t foreign_block,
                         Batch& batch) {
  if (window == 0) return;
  const int64_t needed = KvGroups{.window = window}.first_needed(position) / block_size;
  for (int32_t i = 0; i < needed; ++i) {
    batch.block_appends.push_back({.slot = slot, .index = i, .block = foreign_block, .group = 1});
  }
}

inline bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) {
           return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
         });
}

// The largest |a - b| / (absolute + relative * |b|); NaN counts as infinite. At most 1 is a pass.
inline double worst_error(const Floats& a, const Floats& b, double absolute, double relative) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double worst = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    const double allowed = absolute + relative * std::abs(static_cast<double>(b[i]));
    if (!(difference <= allowed)) worst = std::max(worst, difference / allowed);
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, difference / allowed);
  }
  return worst;
}

}  // namespace tgi
