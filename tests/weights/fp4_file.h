// One matrix of floats of 4 bits (or of 8) in memory, as compressed-tensors and Model Optimizer
// store it, and what a reader makes of it.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "engine/tensor/float8.h"
#include "engine/weights/weight_format.h"
#include "tests/catch.h"
#include "tests/weights/matrix_reader.h"
#include "tests/weights/safetensors_builder.h"

namespace tgi {

inline constexpr const char* kUp = "model.layers.0.mlp.up_proj";
inline constexpr int64_t kUpRows = 6;
inline constexpr int64_t kUpCols = 96;

inline MatrixSpec named_matrix(const std::string& module, MatrixKind kind = MatrixKind::kLayer) {
  return {.name = module + ".weight",
          .prefix = "model.",
          .rows = kUpRows,
          .cols = kUpCols,
          .kind = kind};
}

// One matrix of a checkpoint.
struct Fp4File {
  Json quantization;
  int64_t group_size = 16;
  bool divides = false;
  std::string weight_name = "weight";
  std::string scale_of_all_name;  // empty: there is none
  std::vector<TestTensor> tensors;

  TestTensor& tensor(const std::string& suffix) {
    for (TestTensor& one : tensors) {
      if (one.name == fmt::format("{}.{}", kUp, suffix)) return one;
    }
    FAIL("no tensor " << suffix);
    return tensors.front();
  }
  void erase(const std::string& suffix) {
    std::erase_if(tensors, [&](const TestTensor& one) {
      return one.name == fmt::format("{}.{}", kUp, suffix);
    });
  }

  Json config() const { return {{"quantization_config", quantization}}; }
  MemorySource files() const {
    return MemorySource({{"model.safetensors", build_safetensors(tensors)}});
  }

  uint8_t byte(const std::string& suffix, int64_t index) const {
    for (const TestTensor& one : tensors) {
      if (one.name == fmt::format("{}.{}", kUp, suffix))
        return static_cast<uint8_t>(one.data[static_cast<size_t>(index)]);
    }
    return 0;
  }
  float scale_of_all() const {
    float value = 1.0F;
    for (const TestTensor& one : tensors) {
      if (!scale_of_all_name.empty() && one.name == fmt::format("{}.{}", kUp, scale_of_all_name))
        std::memcpy(&value, one.data.data(), sizeof value);
    }
    return value;
  }
  // As the format's description says it.
  float value(int64_t row, int64_t col) const {
    constexpr float kValues[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
    const uint8_t both = byte(weight_name, (row * kUpCols + col) / 2);
    const int code = col % 2 == 0 ? both & 15 : both >> 4;
    const float own = code >= 8 ? -kValues[code - 8] : kValues[code];
    const uint8_t scale = byte("weight_scale", row * (kUpCols / group_size) + col / group_size);
    if (group_size == 32) return std::ldexp(own, scale - 127);
    const float decoded = e4m3_to_f32(scale);
    return own * (divides ? decoded / scale_of_all() : decoded * scale_of_all());
  }
};

inline void add_arrays(Fp4File& file) {
  std::string codes;
  for (int64_t i = 0; i < kUpRows * kUpCols / 2; ++i) {
    codes.push_back(static_cast<char>(i * 37 % 256));
  }
  std::string scales;
  for (int64_t i = 0; i < kUpRows * kUpCols / file.group_size; ++i) {
    // Of e4m3 all but the last, NaN, of e8m0 some.
    scales.push_back(static_cast<char>(file.group_size == 16 ? i * 7 % 127 : 120 + i % 10));
  }
  const auto name = [](const std::string& suffix) { return fmt::format("{}.{}", kUp, suffix); };
  file.tensors.push_back({name(file.weight_name), "U8", "[6,48]", codes});
  file.tensors.push_back({name("weight_scale"), file.group_size == 16 ? "F8_E4M3" : "U8",
                          fmt::format("[6,{}]", kUpCols / file.group_size), scales});
  if (file.scale_of_all_name.empty()) return;
  file.tensors.push_back({name(file.scale_of_all_name), "F32", "[1]", f32_bytes({0.75F})});
}

inline Json compressed_fp4(const char* format, const char* strategy, int64_t group_size) {
  const Json weights = {{"num_bits", 4},        {"type", "float"},
                        {"strategy", strategy}, {"group_size", group_size},
                        {"symmetric", true},    {"dynamic", false}};
  const Json group = {{"targets", {"Linear"}}, {"weights", weights}};
  return {{"quant_method", "compressed-tensors"},
          {"format", format},
          {"config_groups", {{"group_0", group}}}};
}

inline Fp4File compressed_nvfp4() {
  Fp4File out{.quantization = compressed_fp4("nvfp4-pack-quantized", "tensor_group", 16),
              .divides = true,
              .weight_name = "weight_packed",
              .scale_of_all_name = "weight_global_scale",
              .tensors = {}};
  add_arrays(out);
  return out;
}

inline Fp4File compressed_mxfp4() {
  Fp4File out{.quantization = compressed_fp4("mxfp4-pack-quantized", "group", 32),
              .group_size = 32,
              .weight_name = "weight_packed",
              .scale_of_all_name = {},
              .tensors = {}};
  add_arrays(out);
  return out;
}

inline Json modelopt(const char* algo) {
  return {{"quant_method", "modelopt"}, {"quant_algo", algo}, {"ignore", {"lm_head"}}};
}

inline Fp4File modelopt_nvfp4() {
  Fp4File out{
      .quantization = modelopt("NVFP4"), .scale_of_all_name = "weight_scale_2", .tensors = {}};
  add_arrays(out);
  return out;
}

inline Fp4File modelopt_mxfp4() {
  Fp4File out{.quantization = modelopt("W4A8_MXFP4_FP8"),
              .group_size = 32,
              .scale_of_all_name = {},
              .tensors = {}};
  add_arrays(out);
  return out;
}

inline std::vector<Fp4File> all_fp4_files() {
  return {compressed_nvfp4(), compressed_mxfp4(), modelopt_nvfp4(), modelopt_mxfp4()};
}

inline WeightProblems fp4_problems(const Fp4File& file,
                                   const MatrixSpec& spec = named_matrix(kUp)) {
  return matrix_problems(file.files(), file.config(), spec);
}

inline HostWeight fp4_block(const Fp4File& file, Range rows, Range cols) {
  return read_block(file.files(), file.config(), named_matrix(kUp), rows, cols);
}

inline std::string fp4_failure(const Fp4File& file) {
  return block_failure(file.files(), file.config(), named_matrix(kUp));
}

inline std::string form_in(const Json& quantization,
                           const std::string& module,
                           MatrixKind kind = MatrixKind::kLayer) {
  const Json config = {{"quantization_config", quantization}};
  const WeightFormat& format = find_weight_format(JsonReader(config, ""));
  return format.form_of(config, named_matrix(module, kind)).quantised_as;
}

}  // namespace tgi
