// Every tiny checkpoint in tests/golden: what the loader makes of it. What comes out of the model
// is judged in tests/promises.
#include <algorithm>
#include <filesystem>
#include <map>

#include "base/files/file_source.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/model/model_weights.h"
#include "tests/catch.h"
#include "tests/model/fake_device.h"

namespace tgi {
namespace {

std::vector<std::string> golden_folders() {
  std::vector<std::string> out;
  for (const char* kind : {"models", "quantised"}) {
    const std::string root = std::string(TGI_SOURCE_DIR) + "/tests/golden/" + kind;
    for (const auto& entry : std::filesystem::directory_iterator(root)) {
      if (entry.is_directory()) out.push_back(entry.path().string());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST_CASE("tiny checkpoints of every family load, in as many bytes as planned") {
  const std::vector<std::string> folders = golden_folders();
  REQUIRE(folders.size() >= 35);
  for (const std::string& folder : folders) {
    INFO(folder);
    const auto files = open_folder(folder);
    const LoadedConfig model = load_model_config(*files);
    const auto checkpoint = open_checkpoint(*files);
    FakeDevice device;
    const LoadWeightsOptions options{.dtype = DType::kF32};
    const ModelWeights weights = load_weights(model, *checkpoint, device, options);
    CHECK(weights.size_bytes == plan_weight_bytes(model, device, options));
    CHECK(weights.size_bytes == device.allocated_bytes);
  }
}

// The values of rows [rows) and columns [cols) of a fake device's matrix.
std::vector<float> block(const Matrix& matrix, Range rows, Range cols) {
  std::vector<float> out;
  for (int64_t row = rows.begin; row < rows.begin + rows.count; ++row) {
    for (int64_t col = cols.begin; col < cols.begin + cols.count; ++col) {
      out.push_back(fake(matrix).at(row, col));
    }
  }
  return out;
}

// Of two ranks.
void check_columns(const Linear& whole, const Linear& part, int rank) {
  if (whole.weight == nullptr) return;
  const int64_t cols = part.weight->cols;
  CHECK(block(*whole.weight, {0, part.weight->rows}, {rank * cols, cols}) ==
        fake(*part.weight).values);
}

// Of each of the matrices that lie one below the other: gate and up, or up alone.
void check_gate_up(const Linear& whole, const Linear& part, int rank, bool is_gated) {
  if (whole.weight == nullptr) return;
  const Matrix& gate_up = *part.weight;
  const int64_t num_matrices = is_gated ? 2 : 1;
  const int64_t rows = gate_up.rows / num_matrices;
  for (int64_t which = 0; which < num_matrices; ++which) {
    CHECK(block(*whole.weight, {(2 * which + rank) * rows, rows}, {0, gate_up.cols}) ==
          block(gate_up, {which * rows, rows}, {0, gate_up.cols}));
  }
}

void check_part(const LayerWeights& whole, const LayerWeights& part, int rank, bool is_gated) {
  check_columns(whole.o, part.o, rank);
  check_columns(whole.down, part.down, rank);
  check_gate_up(whole.gate_up, part.gate_up, rank, is_gated);
  for (size_t i = 0; i < whole.experts_down.each.size(); ++i) {
    check_columns(whole.experts_down.each[i], part.experts_down.each[i], rank);
    check_gate_up(whole.experts_gate_up.each[i], part.experts_gate_up.each[i], rank, is_gated);
  }
}

TEST_CASE("each of two ranks has its part of a quantised matrix, and as many bytes as planned") {
  for (const std::string& folder : golden_folders()) {
    const auto files = open_folder(folder);
    const LoadedConfig model = load_model_config(*files);
    if (!model.json.contains("quantization_config") || model.config.has_inner_norms) continue;
    INFO(folder);
    const auto checkpoint = open_checkpoint(*files);
    FakeDevice device;
    const ModelWeights whole = load_weights(model, *checkpoint, device, {.dtype = DType::kF32});
    for (int rank = 0; rank < 2; ++rank) {
      const LoadWeightsOptions options{.dtype = DType::kF32, .rank = rank, .world_size = 2};
      const ModelWeights part = load_weights(model, *checkpoint, device, options);
      CHECK(part.size_bytes == plan_weight_bytes(model, device, options));
      for (size_t layer = 0; layer < whole.layers.size(); ++layer) {
        check_part(whole.layers[layer], part.layers[layer], rank, model.config.gated_mlp);
      }
    }
  }
}

const char* sign_of(Quantization quantization) {
  switch (quantization) {
    case Quantization::kInt4:
      return "4";
    case Quantization::kInt6:
      return "6";
    case Quantization::kMxfp4:
      return "m";
    default:
      return "8";
  }
}

TEST_CASE("what is quantised is held as integers where a device can, and only there") {
  const std::map<std::string, std::string> expected = {
      // qkv, o, gate_up, down of the last layer, by bits and zero points.
      {"ct-int4", "4 4 4 4"},
      {"ct-int4-asym-f16", "- 4z 4z 4z"},
      {"ct-int8-channel", "8 8 8 8"},
      {"ct-int8-asym", "8z 8z 8z 8z"},
      {"ct-w8a8", "8 8 8 8"},
      {"ct-fp8", "- - - -"},
      {"gptq", "4 4 4 4"},
      {"gptq-act-order", "- - - -"},
      {"awq", "4z 4z 4z -"},
      {"gptq-v2-8bit-row-qwen2", "8z 8z 8z 8z"},
      {"fp8-blocks", "- - - -"},
      {"ct-fp8-tensor-f16", "- - - -"},
      {"fp8-single", "- - - -"},
      {"ct-nvfp4", "6 6 6 6"},
      {"ct-mxfp4", "- m m m"},
      {"modelopt-nvfp4", "6 6 6 6"},
      {"modelopt-mxfp4", "m m m m"},
      {"modelopt-mixed", "- - 6 -"},
      {"modelopt-fp8", "- - - -"},
      {"bitnet", "4 4 4 4"},
      {"bitnet-online", "4 4 4 4"},
      {"torchao-int8", "8 8 8 8"},
      {"torchao-int4-asym", "4z 4z 4z 4z"},
      {"torchao-fp8", "- - - -"},
  };
  for (const auto& [name, forms] : expected) {
    INFO(name);
    const auto files = open_folder(std::string(TGI_SOURCE_DIR) + "/tests/golden/quantised/" + name);
    const LoadedConfig model = load_model_config(*files);
    FakeDevice device;
    const ModelWeights weights =
        load_weights(model, *open_checkpoint(*files), device, {.dtype = DType::kF32});
    const LayerWeights& layer = weights.layers.back();
    std::string got;
    for (const Linear* linear : {&layer.qkv, &layer.o, &layer.gate_up, &layer.down}) {
      const MatrixStorage& storage = fake(*linear->weight).storage;
      if (!got.empty()) got += " ";
      got += storage.stored ? sign_of(storage.quantization) : "-";
      if (storage.stored && storage.zero_points) got += "z";
    }
    CHECK(got == forms);
    CHECK_THROWS_WITH(load_weights(model, *open_checkpoint(*files), device,
                                   {.quantization = Quantization::kInt8}),
                      Catch::Contains("quantised in the checkpoint already"));
  }
}

TEST_CASE("what is stored in several ways is a stack of parts where a device takes them") {
  // The parts of the last layer's qkv: names of their pieces, bits and zero points.
  const std::map<std::string, std::string> expected = {
      {"ct-int4-asym-f16", "qk 4z v -"},
      {"ct-mxfp4", "qk m v -"},
      {"gptq", "qkv 4"},
  };
  for (const auto& [name, forms] : expected) {
    INFO(name);
    const auto files = open_folder(std::string(TGI_SOURCE_DIR) + "/tests/golden/quantised/" + name);
    const LoadedConfig model = load_model_config(*files);
    FakeDevice device(true);
    const LoadWeightsOptions options{.dtype = DType::kF32};
    const ModelWeights weights = load_weights(model, *open_checkpoint(*files), device, options);
    CHECK(device.allocated_bytes == plan_weight_bytes(model, device, options));
    const FakeMatrix& qkv = fake(*weights.layers.back().qkv.weight);
    std::vector<const FakeMatrix*> parts;
    for (const auto& part : qkv.parts) parts.push_back(&fake(*part));
    if (parts.empty()) parts.push_back(&qkv);
    std::string got;
    for (const FakeMatrix* part : parts) {
      if (!got.empty()) got += " ";
      for (const std::string& piece : part->names) got += piece[piece.find("_proj") - 1];
      got += " ";
      const MatrixStorage& storage = part->storage;
      got += storage.stored ? sign_of(storage.quantization) : "-";
      if (storage.stored && storage.zero_points) got += "z";
    }
    CHECK(got == forms);
  }
}

TEST_CASE("real devices hold as many bytes of the tiny checkpoints as planned") {
  for (const std::string& folder : golden_folders()) {
    INFO(folder);
    const auto files = open_folder(folder);
    const LoadedConfig model = load_model_config(*files);
    const auto checkpoint = open_checkpoint(*files);
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      for (const bool reference : {true, false}) {
        const auto device =
            reference ? make_reference_device() : make_cpu_device({.num_threads = 1});
        const LoadWeightsOptions options{.dtype = dtype};
        const ModelWeights weights = load_weights(model, *checkpoint, *device, options);
        CHECK(weights.size_bytes == plan_weight_bytes(model, *device, options));
        CHECK(weights.layers.size() == static_cast<size_t>(model.config.num_layers));
      }
    }
  }
}

}  // namespace
}  // namespace tgi
