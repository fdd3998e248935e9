// The weight format "gguf" (engine/weights/formats/gguf.cc) handing on blocks as integers: scales,
// minima and what they are made of, whole and in parts.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "base/files/regular_file.h"
#include "base/json.h"
#include "engine/tensor/half.h"
#include "engine/weights/ggml/ggml_types.h"
#include "engine/weights/weight_format.h"
#include "tests/catch.h"

namespace tgi::gguf_blocks_test {
namespace {

constexpr const char* kName = "model.layers.0.mlp.up_proj.weight";
constexpr int64_t kRows = 3;

// One matrix of golden blocks, whose rows begin with different ones.
class BlockCheckpoint final : public Checkpoint {
 public:
  explicit BlockCheckpoint(const GgmlType& type) : type_(type) {
    const Json golden =
        parse_json(read_regular_file(TGI_SOURCE_DIR "/tests/golden/ggml_blocks.json"));
    const std::string hex = golden.at(std::string(type.name)).at("blocks");
    std::vector<std::byte> blocks;
    for (size_t i = 0; i < hex.size(); i += 2) {
      blocks.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    for (int64_t row = 0; row < kRows; ++row) {
      std::vector<std::byte> own = blocks;
      std::ranges::rotate(own, own.begin() + row % num_blocks(blocks) * type.block_bytes);
      data_.insert(data_.end(), own.begin(), own.end());
    }
    cols_ = num_blocks(blocks) * type.block_size;
    tensor_ = {
        .name = kName, .dtype_name = type.name, .dtype = {}, .shape = {kRows, cols_}, .file = "f"};
  }

  int64_t cols() const { return cols_; }
  std::vector<float> values() const {
    std::vector<float> out(static_cast<size_t>(kRows * cols_));
    type_.decode(data_.data(), num_blocks(data_), out.data());
    return out;
  }

  const StoredTensor* find(std::string_view name) const override {
    return name == kName ? &tensor_ : nullptr;
  }
  std::vector<std::string_view> names() const override { return {kName}; }
  std::span<const std::byte> bytes(const StoredTensor& /*tensor*/) const override { return data_; }
  void release(const StoredTensor& /*tensor*/) const override {}

 private:
  int64_t num_blocks(const std::vector<std::byte>& bytes) const {
    return static_cast<int64_t>(bytes.size()) / type_.block_bytes;
  }

  const GgmlType& type_;
  std::vector<std::byte> data_;
  int64_t cols_ = 0;
  StoredTensor tensor_;
};

bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (a == 0 && b == 0);
}

// Each element from its code, and its scale and minimum from what `storage` says they are made of.
void check_values(const HostWeight& piece,
                  const MatrixStorage& storage,
                  const std::vector<float>& wanted) {
  const GroupedPart& part = piece.grouped;
  REQUIRE(part.codes != nullptr);
  CHECK((part.minima != nullptr) == storage.minima);
  CHECK((part.factors.block_scales != nullptr) == (storage.scales == ScaleForm::kFactors));
  const int64_t num_blocks = (piece.cols + kFactorCols - 1) / kFactorCols;
  int64_t num_wrong = 0;
  for (int64_t row = 0; row < piece.rows; ++row) {
    for (int64_t col = 0; col < piece.cols; ++col) {
      const int64_t group = row * part.num_groups + col / part.group_size;
      const int64_t block = row * num_blocks + col / kFactorCols;
      float scale = part.scales[group];
      float minimum = storage.minima ? part.minima[group] : 0.0F;
      if (storage.scales == ScaleForm::kF16) {
        scale = f16_to_f32(f32_to_f16(scale));
        minimum = f16_to_f32(f32_to_f16(minimum));
      }
      if (storage.scales == ScaleForm::kFactors) {
        const ScaleFactors& from = part.factors;
        scale = from.block_scales[block] * static_cast<float>(from.group_scales[group]);
        if (storage.minima) {
          minimum = -(from.block_minima[block] * static_cast<float>(from.group_minima[group]));
        }
      }
      const auto at = static_cast<size_t>(row * piece.cols + col);
      const float value = scale * static_cast<float>(part.codes[at]) + minimum;
      num_wrong += same(value, wanted[at]) ? 0 : 1;
    }
  }
  CHECK(num_wrong == 0);
}

}  // namespace

TEST_CASE("blocks of a GGUF file are handed on as integers with what their scales are made of") {
  for (const GgmlType& type : ggml_types()) {
    if (!type.is_quantised() || type.name == "MXFP4") continue;
    const BlockCheckpoint checkpoint(type);
    const int64_t half = checkpoint.cols() / 2;
    const MatrixSpec spec{
        .name = kName, .prefix = "model.", .rows = kRows, .cols = checkpoint.cols()};
    const Json config = {
        {"quantization_config", {{"quant_method", "gguf"}, {"types", {{kName, type.name}}}}}};
    const WeightFormat& format = find_weight_format(JsonReader(config, ""));
    WeightProblems problems;
    const auto tensors = format.collect(config, checkpoint, spec, problems);
    REQUIRE(problems.empty());
    const StoredForm form = format.form_of(config, spec);
    CHECK(form.scales == type.integers.scales);
    const std::vector<float> all = checkpoint.values();
    for (const Range& cols :
         {Range{0, checkpoint.cols()}, {0, half}, {half, half}, {half / 2, half}}) {
      const Range rows{.begin = 1, .count = kRows - 1};
      const MatrixStorage storage = storage_of(form, cols, DType::kBF16);
      INFO(fmt::format("{}, columns {} + {}", type.name, cols.begin, cols.count));
      if (!storage.stored) continue;
      const bool is_cut = cols.begin % kFactorCols != 0;
      CHECK(storage.scales ==
            (is_cut && form.scales == ScaleForm::kFactors ? ScaleForm::kF32 : form.scales));
      const HostWeight piece = format.slice(config, checkpoint, spec, tensors, rows, cols, storage);
      std::vector<float> wanted;
      for (int64_t row = rows.begin; row < kRows; ++row) {
        const auto first = all.begin() + row * checkpoint.cols() + cols.begin;
        wanted.insert(wanted.end(), first, first + cols.count);
      }
      check_values(piece, storage, wanted);
    }
  }
}

TEST_CASE("a part without minima is handed on with factors of zero where others have some") {
  const BlockCheckpoint checkpoint(*find_ggml_type("Q6_K"));
  const MatrixSpec spec{
      .name = kName, .prefix = "model.", .rows = kRows, .cols = checkpoint.cols()};
  const Json config = {
      {"quantization_config", {{"quant_method", "gguf"}, {"types", {{kName, "Q6_K"}}}}}};
  const WeightFormat& format = find_weight_format(JsonReader(config, ""));
  WeightProblems problems;
  const auto tensors = format.collect(config, checkpoint, spec, problems);
  MatrixStorage storage(Quantization::kInt8, 16);
  storage.stored = true;
  storage.minima = true;
  storage.scales = ScaleForm::kFactors;
  const HostWeight piece =
      format.slice(config, checkpoint, spec, tensors, {0, kRows}, {0, checkpoint.cols()}, storage);
  check_values(piece, storage, checkpoint.values());
}

}  // namespace tgi::gguf_blocks_test
