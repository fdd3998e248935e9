// A device that only holds weights, as plain floats, and remembers what it was given. No ops.
#pragma once

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/device/backend.h"
#include "engine/model/linear.h"

namespace tgi {

struct FakeMatrix final : Matrix {
  std::vector<float> values;  // (rows, cols)
  MatrixStorage storage;
  std::vector<std::string> names;              // of the pieces
  std::vector<std::unique_ptr<Matrix>> parts;  // of a stack

  float at(int64_t row, int64_t col) const { return values[static_cast<size_t>(row * cols + col)]; }
};

inline const FakeMatrix& fake(const Matrix& matrix) {
  return dynamic_cast<const FakeMatrix&>(matrix);
}

inline float stored_float(const std::byte* bytes, DType dtype) {
  if (dtype == DType::kF32) {
    float value = 0;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, bytes, sizeof bits);
  if (dtype == DType::kBF16) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  const int exponent = (bits >> 10) & 31;
  const double mantissa = bits & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24)
                                         : std::ldexp(1.0 + mantissa / 1024.0, exponent - 15);
  return static_cast<float>((bits & 0x8000) != 0 ? -magnitude : magnitude);
}

class FakeDevice final : public Device {
 public:
  // As the devices of the processor.
  explicit FakeDevice(bool stacks = false) {
    info_.keeps.integer_heads = true;
    info_.keeps.stacks = stacks;
  }
  const DeviceInfo& info() const override { return info_; }

  Buffer allocate(size_t size_bytes, std::string_view /*purpose*/) override {
    allocated_bytes += static_cast<int64_t>(size_bytes);
    return Buffer(std::calloc(size_bytes, 1), size_bytes,
                  [](void* data, size_t /*size*/) { std::free(data); });
  }
  void copy_to_device(void* to, const void* from, size_t size_bytes) override {
    std::memcpy(to, from, size_bytes);
  }
  void copy_to_host(void* to, const void* from, size_t size_bytes) override {
    std::memcpy(to, from, size_bytes);
  }

  int64_t matrix_bytes(std::string_view format,
                       const MatrixStorage& storage,
                       int64_t rows,
                       int64_t cols) const override {
    if (format != storage.format())
      throw Error(Code::kUnsupported, "format " + std::string(format));
    // Padded, so that a plan which forgets that pieces are stacked is found out.
    const int64_t padded_rows = (rows + 15) / 16 * 16;
    if (storage.quantization != Quantization::kNone) {
      return padded_rows * cols / (storage.quantization == Quantization::kInt8 ? 1 : 2);
    }
    return padded_rows * cols * static_cast<int64_t>(dtype_size(storage.dtype));
  }

  std::unique_ptr<Matrix> make_matrix(std::span<const HostWeight> pieces,
                                      const MatrixStorage& storage) override {
    auto matrix = std::make_unique<FakeMatrix>();
    matrix->storage = storage;
    for (const HostWeight& piece : pieces) {
      matrix->names.push_back(piece.name);
      matrix->rows += piece.rows;
      matrix->cols = piece.cols;
      if (piece.format != storage.format()) throw Error(Code::kInternal, "not what was planned");
      if (storage.stored) {
        add_grouped(piece, *matrix);
        continue;
      }
      const WeightPart& part = piece.parts.at(0);
      for (int64_t row = 0; row < part.rows; ++row) {
        for (int64_t col = 0; col < part.cols; ++col) {
          const int64_t element = row * part.row_stride + col * part.col_stride;
          matrix->values.push_back(stored_float(
              part.data + static_cast<size_t>(element) * dtype_size(part.dtype), part.dtype));
        }
      }
    }
    matrix->size_bytes = matrix_bytes(storage.format(), storage, matrix->rows, matrix->cols);
    allocated_bytes += matrix->size_bytes;
    return matrix;
  }

  std::unique_ptr<Matrix> stack_matrices(std::vector<std::unique_ptr<Matrix>> parts) override {
    auto matrix = std::make_unique<FakeMatrix>();
    for (const auto& part : parts) {
      matrix->rows += part->rows;
      matrix->cols = part->cols;
    }
    matrix->parts = std::move(parts);
    return matrix;
  }

  int32_t add_rope(const RopeSpec& /*rope*/) override { return no_op<int32_t>(); }
  int64_t kv_bytes(const KvLayout& /*layout*/) const override { return no_op<int64_t>(); }
  int64_t slot_bytes(const SlotLayout& /*layout*/) const override { return no_op<int64_t>(); }
  void allocate_state(const KvLayout& /*kv*/, const SlotLayout& /*slots*/) override {
    no_op<int>();
  }
  Ticket submit(const Batch& /*batch*/, Forward& /*forward*/) override { return no_op<Ticket>(); }
  void sample(Ticket /*ticket*/, const TokenMasks& /*masks*/) override { no_op<int>(); }
  const StepResult& wait(Ticket /*ticket*/) override {
    no_op<int>();
    return result_;
  }
  void embed(const EmbedArgs& /*args*/) override { no_op<int>(); }
  void norm(const NormArgs& /*args*/) override { no_op<int>(); }
  void matmul(const MatmulArgs& /*args*/) override { no_op<int>(); }
  void qk_norm_rope_store_kv(const QkvArgs& /*args*/) override { no_op<int>(); }
  void attention(const AttentionArgs& /*args*/) override { no_op<int>(); }
  void rotate_and_store_latent(const LatentArgs& /*args*/) override { no_op<int>(); }
  void head_matmul(const HeadMatmulArgs& /*args*/) override { no_op<int>(); }
  void activation(const ActivationArgs& /*args*/) override { no_op<int>(); }
  void gather_output_rows(const Tensor& /*x*/, const Tensor& /*out*/) override { no_op<int>(); }
  void add(const AddArgs& /*args*/) override { no_op<int>(); }
  void route(const RouteArgs& /*args*/) override { no_op<int>(); }
  void expert_matmul(const ExpertMatmulArgs& /*args*/) override { no_op<int>(); }
  void weigh_experts(const WeighArgs& /*args*/) override { no_op<int>(); }
  void combine_experts(const CombineArgs& /*args*/) override { no_op<int>(); }
  void causal_conv(const ConvArgs& /*args*/) override { no_op<int>(); }
  void channel_scan(const ChannelScanArgs& /*args*/) override { no_op<int>(); }
  void head_scan(const HeadScanArgs& /*args*/) override { no_op<int>(); }
  void delta_rule(const DeltaRuleArgs& /*args*/) override { no_op<int>(); }
  void rg_lru(const RgLruArgs& /*args*/) override { no_op<int>(); }
  void gated_norm(const GatedNormArgs& /*args*/) override { no_op<int>(); }
  void predict_streams(const PredictStreamsArgs& /*args*/) override { no_op<int>(); }
  void collapse_streams(const CollapseStreamsArgs& /*args*/) override { no_op<int>(); }
  void expand_streams(const ExpandStreamsArgs& /*args*/) override { no_op<int>(); }
  void correct_streams(const CorrectStreamsArgs& /*args*/) override { no_op<int>(); }
  void match_rms(const MatchRmsArgs& /*args*/) override { no_op<int>(); }
  void statistical_top_k(const StatisticalTopKArgs& /*args*/) override { no_op<int>(); }
  void sample(const SampleArgs& /*args*/) override { no_op<int>(); }

  int64_t allocated_bytes = 0;

 private:
  static void add_grouped(const HostWeight& piece, FakeMatrix& matrix) {
    const GroupedPart& part = piece.grouped;
    for (int64_t row = 0; row < piece.rows; ++row) {
      for (int64_t col = 0; col < piece.cols; ++col) {
        const int64_t group = row * part.num_groups + col / part.group_size;
        const int zero = part.zeros == nullptr ? 0 : part.zeros[group];
        matrix.values.push_back(part.scales[group] *
                                static_cast<float>(part.codes[row * piece.cols + col] - zero));
      }
    }
  }

  template <typename T>
  static T no_op() {
    throw Error(Code::kUnsupported, "the fake device holds weights and computes nothing");
  }

  DeviceInfo info_;
  StepResult result_;
};

inline std::vector<float> vector_values(const DeviceVector& vector) {
  const auto* data = static_cast<const float*>(vector.buffer.data());
  return {data, data + vector.view.cols};
}

}  // namespace tgi
