// Routers of a quantised checkpoint, plain or quantised as its tensors say, are held as was planned
// before anything was read.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/model/model_weights.h"
#include "engine/model/weight_check.h"
#include "tests/catch.h"
#include "tests/model/fake_device.h"
#include "tests/model/model_files.h"

namespace tgi::plain_router_test {
namespace {

constexpr const char* kQuantised = R"({
    "quant_method": "compressed-tensors", "format": "int-quantized", "ignore": ["lm_head"],
    "config_groups": {"group_0": {"targets": ["Linear"],
        "weights": {"num_bits": 8, "strategy": "channel"}}}})";

Json small_qwen2_moe() {
  return {{"architectures", {"Qwen2MoeForCausalLM"}},
          {"vocab_size", 11},
          {"hidden_size", 32},
          {"intermediate_size", 64},
          {"num_hidden_layers", 1},
          {"num_attention_heads", 2},
          {"num_key_value_heads", 1},
          {"num_experts", 4},
          {"num_experts_per_tok", 2},
          {"moe_intermediate_size", 32},
          {"shared_expert_intermediate_size", 32},
          {"torch_dtype", "float32"},
          {"quantization_config", Json::parse(kQuantised)}};
}

TestTensor array_of(const std::string& name,
                    const char* dtype,
                    const std::vector<int64_t>& shape,
                    size_t size) {
  for (const int64_t count : shape) size *= static_cast<size_t>(count);
  return {name, dtype, fmt::format("[{}]", fmt::join(shape, ",")), std::string(size, '\1')};
}

std::vector<TestTensor> tensors_of(const LoadedConfig& model, bool has_plain_routers) {
  std::vector<TestTensor> out;
  const TensorTable table(model);
  for (const TensorEntry& entry : table.entries()) {
    if (entry.is_vector()) {
      out.push_back(array_of(entry.name, "F32", entry.vector_shape(), 4));
      continue;
    }
    const MatrixSpec spec = matrix_spec(model, entry);
    const std::vector<int64_t> shape = {entry.rows, entry.cols};
    if (spec.kind != MatrixKind::kLayer || (spec.is_choice && has_plain_routers)) {
      out.push_back(array_of(entry.name, "F32", shape, 4));
      continue;
    }
    out.push_back(array_of(entry.name, "I8", shape, 1));
    out.push_back(array_of(entry.name + "_scale", "F32", {entry.rows, 1}, 4));
  }
  return out;
}

TEST_CASE("routers that are plain and not listed are held as was planned without their tensors") {
  const LoadedConfig model = load_config(small_qwen2_moe());
  const LoadWeightsOptions options{.dtype = DType::kBF16};
  for (const bool has_plain_routers : {true, false}) {
    INFO(has_plain_routers);
    const MemorySource files(
        {{"model.safetensors", build_safetensors(tensors_of(model, has_plain_routers))}});
    FakeDevice device;
    const ModelWeights weights = load_weights(model, *open_checkpoint(files), device, options);
    CHECK(weights.size_bytes == plan_weight_bytes(model, device, options));
    const LayerWeights& layer = weights.layers[0];
    CHECK_FALSE(fake(*layer.router.weight).storage.stored);
    CHECK_FALSE(fake(*layer.shared_output_gate.weight).storage.stored);
    CHECK(fake(*layer.o.weight).storage.quantization == Quantization::kInt8);
  }
  CHECK(held_weights(model, options).types == "int8, bf16");
}

// Before any request, so that the model that serves stays.
TEST_CASE("a router with a number that is not finite is refused by its place") {
  Json config = small_qwen2_moe();
  config.erase("quantization_config");
  const LoadedConfig model = load_config(config);
  std::vector<TestTensor> tensors;
  const TensorTable table(model);
  for (const TensorEntry& entry : table.entries()) {
    const std::vector<int64_t> shape = {entry.rows, entry.cols};
    tensors.push_back(
        array_of(entry.name, "F32", entry.is_vector() ? entry.vector_shape() : shape, 4));
  }
  const auto load = [&] {
    const MemorySource files({{"model.safetensors", build_safetensors(tensors)}});
    FakeDevice device;
    return load_weights(model, *open_checkpoint(files), device, {.dtype = DType::kBF16});
  };
  CHECK_NOTHROW(load());
  const auto router = std::ranges::find_if(tensors, [](const TestTensor& tensor) {
    return tensor.name == "model.layers.0.mlp.gate.weight";
  });
  REQUIRE(router != tensors.end());
  const float values[] = {std::numeric_limits<float>::quiet_NaN(),
                          -std::numeric_limits<float>::infinity()};
  for (const float value : values) {
    std::memcpy(router->data.data() + (2 * 32 + 7) * sizeof value, &value, sizeof value);
    try {
      load();
      FAIL("was loaded");
    } catch (const Error& error) {
      CHECK(error.code() == Code::kInvalidArgument);
      CHECK_THAT(error.what(),
                 Catch::Contains("model.layers.0.mlp.gate.weight: the number in row 2, column 7"));
    }
  }
}

}  // namespace
}  // namespace tgi::plain_router_test
