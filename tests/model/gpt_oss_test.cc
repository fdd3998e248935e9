// gpt-oss: gate and up that alternate in one tensor of all experts, vectors of all experts, sinks;
// what of it does not fit is told once; random weights in the form that it is published in.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "engine/model/model_weights.h"
#include "tests/catch.h"
#include "tests/model/fake_device.h"
#include "tests/model/model_files.h"

namespace tgi::gpt_oss_test {
namespace {

// 4 heads, 2 KV heads of 4; 3 experts of 6.
Json small_gpt_oss() {
  return Json{{"architectures", {"GptOssForCausalLM"}},
              {"vocab_size", 11},
              {"hidden_size", 10},
              {"intermediate_size", 6},
              {"num_hidden_layers", 2},
              {"num_attention_heads", 4},
              {"num_key_value_heads", 2},
              {"num_local_experts", 3},
              {"num_experts_per_tok", 2},
              {"head_dim", 4},
              {"torch_dtype", "float32"}};
}

// Element i of each tensor is i / 16.
std::vector<TestTensor> stored_tensors(const LoadedConfig& model) {
  std::vector<TestTensor> out;
  const auto checkpoint = make_dummy_checkpoint(model, 1);
  for (const std::string_view name : checkpoint->names()) {
    const StoredTensor& tensor = *checkpoint->find(name);
    std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 16.0F;
    std::string shape;
    for (const int64_t size : tensor.shape)
      shape += fmt::format("{}{}", shape.empty() ? "[" : ",", size);
    out.push_back({std::string(name), "F32", shape + "]", f32_bytes(values)});
  }
  return out;
}

ModelWeights load_small(const LoadedConfig& model, FakeDevice& device, int rank, int world_size) {
  const LoadWeightsOptions options{.dtype = DType::kF32, .rank = rank, .world_size = world_size};
  const MemorySource files = weight_files(stored_tensors(model));
  ModelWeights weights = load_weights(model, *open_checkpoint(files), device, options);
  CHECK(weights.size_bytes == plan_weight_bytes(model, device, options));
  return weights;
}

std::vector<float> numbers(const DeviceVector& vector) {
  const auto* data = vector.view.as<const float>();
  return {data, data + vector.view.cols};
}

std::string load_error(const Json& config, void (*change)(std::vector<TestTensor>&)) {
  const LoadedConfig model = load_config(config);
  std::vector<TestTensor> tensors = stored_tensors(model);
  change(tensors);
  const MemorySource files = weight_files(tensors);
  FakeDevice device;
  try {
    (void)load_weights(model, *open_checkpoint(files), device, {.dtype = DType::kF32});
  } catch (const Error& error) {
    CHECK(error.code() == Code::kInvalidArgument);
    return error.what();
  }
  return "";
}

TestTensor& find_tensor(std::vector<TestTensor>& tensors, std::string_view name) {
  for (TestTensor& tensor : tensors) {
    if (tensor.name == name) return tensor;
  }
  throw Error(Code::kInternal, "no such tensor");
}

}  // namespace

TEST_CASE("gate and up are taken by turns from the tensor of all experts, and so are biases") {
  const LoadedConfig model = load_config(small_gpt_oss());
  for (const int world_size : {1, 2}) {
    for (int rank = 0; rank < world_size; ++rank) {
      INFO("rank " << rank << " of " << world_size);
      FakeDevice device;
      const ModelWeights weights = load_small(model, device, rank, world_size);
      const LayerWeights& layer = weights.layers[1];
      const int64_t width = 6 / world_size;
      const int64_t expert = 2;
      const FakeMatrix& gate_up = fake(*layer.experts_gate_up.each[expert].weight);
      const std::vector<float> bias = numbers(layer.experts_gate_up.each[expert].bias);
      REQUIRE(gate_up.rows == 2 * width);
      for (int64_t row = 0; row < 2 * width; ++row) {
        // Row `row % width` of this rank's gate or up is a column of the stored (10, 12).
        const int64_t stored = 2 * (rank * width + row % width) + row / width;
        for (int64_t col = 0; col < 10; ++col) {
          CHECK(gate_up.at(row, col) ==
                static_cast<float>(expert * 10 * 12 + col * 12 + stored) / 16.0F);
        }
        CHECK(bias[static_cast<size_t>(row)] == static_cast<float>(expert * 12 + stored) / 16.0F);
      }
      const FakeMatrix& down = fake(*layer.experts_down.each[expert].weight);
      for (int64_t col = 0; col < width; ++col) {
        const int64_t stored = rank * width + col;
        CHECK(down.at(7, col) == static_cast<float>(expert * 6 * 10 + stored * 10 + 7) / 16.0F);
      }
      // Added once, by the first rank.
      const DeviceVector& down_bias = layer.experts_down.each[expert].bias;
      CHECK((down_bias.get() != nullptr) == (rank == 0));
      if (rank == 0) CHECK(numbers(down_bias)[3] == static_cast<float>(expert * 10 + 3) / 16.0F);
      const std::vector<float> sinks = numbers(layer.sinks);
      REQUIRE(sinks.size() == static_cast<size_t>(4 / world_size));
      CHECK(sinks[0] == static_cast<float>(rank * 2) / 16.0F);
    }
  }
}

TEST_CASE("sinks, biases and experts that do not fit are told once, with what was expected") {
  CHECK_THAT(load_error(small_gpt_oss(),
                        [](std::vector<TestTensor>& tensors) {
                          TestTensor& sinks =
                              find_tensor(tensors, "model.layers.1.self_attn.sinks");
                          sinks.shape = "[5]";
                          sinks.data += f32_bytes({1.0F});
                        }),
             Catch::Contains("1 tensor misshapen: model.layers.1.self_attn.sinks: expected (4), "
                             "got (5)"));
  CHECK_THAT(
      load_error(small_gpt_oss(),
                 [](std::vector<TestTensor>& tensors) {
                   find_tensor(tensors, "model.layers.0.mlp.experts.gate_up_proj_bias").shape =
                       "[12,3]";
                 }),
      Catch::Contains("1 tensor misshapen: model.layers.0.mlp.experts.gate_up_proj_bias: "
                      "expected (3, 12), got (12, 3)"));
  CHECK_THAT(load_error(small_gpt_oss(),
                        [](std::vector<TestTensor>& tensors) {
                          find_tensor(tensors, "model.layers.0.mlp.experts.gate_up_proj").name +=
                              "_gone";
                        }),
             Catch::Contains("1 tensor missing: model.layers.0.mlp.experts.gate_up_proj; 1 tensor "
                             "not of this model"));
}

TEST_CASE("what gpt-oss's config can't say is refused with what was expected") {
  const auto refused = [](const char* field, const Json& value, const char* expected) {
    Json config = small_gpt_oss();
    config[field] = value;
    CHECK_THROWS_WITH(load_config(config), Catch::Contains(expected));
  };
  refused("swiglu_limit", 0, "swiglu_limit");
  refused("swiglu_limit", -7.0, "swiglu_limit");
  refused("hidden_act", "gelu", "hidden_act: this family's gate is silu, got \"gelu\"");
  refused("experts_per_token", 3, "experts_per_token: 3 contradicts num_experts_per_tok = 2");
  refused("num_experts_per_tok", 4, "num_experts_per_tok");
  refused("layer_types", Json::array({"full_attention"}), "layer_types");
}

TEST_CASE("a config of gpt-oss without a type means bf16, as published ones do") {
  Json config = small_gpt_oss();
  CHECK(load_config(config).config.checkpoint_dtype == DType::kF32);
  config.erase("torch_dtype");
  CHECK(load_config(config).config.checkpoint_dtype == DType::kBF16);
}

TEST_CASE("experts in tensors of all of them, plain or packed, can be random") {
  Json packed = small_gpt_oss();
  packed["hidden_size"] = packed["intermediate_size"] = 64;
  packed["quantization_config"] = {{"quant_method", "mxfp4"}};
  for (const Json& config : {small_gpt_oss(), packed}) {
    const LoadedConfig model = load_config(config);
    FakeDevice device;
    const LoadWeightsOptions options{.dtype = DType::kBF16};
    const ModelWeights weights =
        load_weights(model, *make_dummy_checkpoint(model, 7), device, options);
    CHECK(weights.size_bytes == plan_weight_bytes(model, device, options));
    const FakeMatrix& expert = fake(*weights.layers[0].experts_down.each[1].weight);
    const bool is_packed = config.contains("quantization_config");
    CHECK(expert.storage.stored == is_packed);
    CHECK((expert.storage.quantization == Quantization::kMxfp4) == is_packed);
    float largest = 0.0F;
    for (const float value : expert.values) largest = std::max(largest, std::abs(value));
    CHECK(largest > 0.01F);
    CHECK(largest < 0.1F);
    CHECK(held_weights(model, options).types == (is_packed ? "mxfp4, bf16" : ""));
  }
}

}  // namespace tgi::gpt_oss_test
