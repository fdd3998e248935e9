// Small matrices of libraries that quantise, with the f32 values that they dequantise to themselves
// (scripts/golden/make_quantised_blocks), as checkpoints of one matrix each; tests damage them.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/regular_file.h"
#include "base/json.h"
#include "engine/weights/weight_format.h"
#include "tests/catch.h"
#include "tests/weights/safetensors_builder.h"

namespace tgi {

inline constexpr const char* kGoldenModule = "model.layers.0.mlp.up_proj";

inline std::string from_hex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i < hex.size(); i += 2) {
    out.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return out;
}

struct GoldenMatrix {
  std::string weight = std::string(kGoldenModule) + ".weight";
  std::map<std::string, TestTensor> tensors;  // ".absmax" beside the weight, "SCB" of the module
  std::vector<int64_t> shape;
  std::vector<float> values;
  Json quantization;

  GoldenMatrix(const std::string& library, const std::string& name) {
    const std::string path = TGI_SOURCE_DIR "/tests/golden/quantised_blocks.json";
    const Json golden = parse_json(read_regular_file(path)).at(library).at(name);
    shape = golden.at("shape").get<std::vector<int64_t>>();
    for (const auto& [suffix, tensor] : golden.at("tensors").items()) {
      tensors[suffix] = {.name = {},
                         .dtype = tensor.at("dtype"),
                         .shape = tensor.at("shape").dump(),
                         .data = from_hex(tensor.at("data"))};
    }
    const std::string bytes = from_hex(golden.at("values"));
    values.resize(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
  }

  Json config() const { return {{"quantization_config", quantization}}; }

  MemorySource files() const {
    std::vector<TestTensor> out;
    for (const auto& [suffix, tensor] : tensors) {
      out.push_back(tensor);
      const bool is_of_module = !suffix.empty() && !suffix.starts_with(".");
      out.back().name =
          is_of_module ? fmt::format("{}.{}", kGoldenModule, suffix) : weight + suffix;
    }
    return MemorySource({{"model.safetensors", build_safetensors(out)}});
  }

  MatrixSpec spec() const {
    return {.name = weight, .prefix = "model.", .rows = shape[0], .cols = shape[1]};
  }
  std::vector<float> part(Range rows, Range cols) const {
    std::vector<float> out;
    for (int64_t row = rows.begin; row < rows.begin + rows.count; ++row) {
      const auto first = values.begin() + row * shape[1] + cols.begin;
      out.insert(out.end(), first, first + cols.count);
    }
    return out;
  }
  template <typename T>
  void put(const std::string& suffix, size_t index, T value) {
    std::memcpy(tensors.at(suffix).data.data() + index * sizeof value, &value, sizeof value);
  }
};

struct LoadedMatrix {
  WeightProblems problems;
  HostWeight weight{};
};

inline LoadedMatrix load_matrix(const GoldenMatrix& from,
                                const MatrixSpec& spec,
                                Range rows,
                                Range cols,
                                const MatrixStorage& storage = DType::kF32) {
  const MemorySource files = from.files();
  const auto checkpoint = open_checkpoint(files);
  const Json config = from.config();
  const WeightFormat& format = find_weight_format(JsonReader(config, ""));
  LoadedMatrix out;
  const auto tensors = format.collect(config, *checkpoint, spec, out.problems);
  if (!out.problems.empty()) return out;
  out.weight = format.slice(config, *checkpoint, spec, tensors, rows, cols, storage);
  return out;
}

// Of a part of the golden itself, as numbers.
inline std::vector<float> numbers_of(const HostWeight& weight) {
  REQUIRE(weight.format == "dense");
  const auto* numbers = reinterpret_cast<const float*>(weight.parts.at(0).data);
  return {numbers, numbers + weight.rows * weight.cols};
}

inline constexpr const char* kNothingWrong = "missing ; misshapen ; unsupported ";

// What is wrong with it, as one text.
inline std::string refusal_of(const GoldenMatrix& matrix) {
  const MatrixSpec spec = matrix.spec();
  try {
    const WeightProblems problems =
        load_matrix(matrix, spec, {0, spec.rows}, {0, spec.cols}).problems;
    return fmt::format("missing {}; misshapen {}; unsupported {}",
                       fmt::join(problems.missing, ", "), fmt::join(problems.misshapen, ", "),
                       fmt::join(problems.unsupported, ", "));
  } catch (const Error& error) {
    CHECK((error.code() == Code::kInvalidArgument || error.code() == Code::kUnsupported));
    return error.what();
  }
}

}  // namespace tgi
