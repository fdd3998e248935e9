#include <cmath>
#include <set>

#include "engine/model/model_weights.h"
#include "tests/catch.h"
#include "tests/model/fake_device.h"
#include "tests/model/model_files.h"

namespace tgi {
namespace {

LoadedConfig medium_model(const std::string& dtype) {
  Json config = small_llama();
  config["hidden_size"] = 500;
  config["vocab_size"] = 2003;
  config["torch_dtype"] = dtype;
  config["attention_bias"] = true;
  return load_config(config);
}

std::vector<float> values_of(const Checkpoint& checkpoint, std::string_view name) {
  const StoredTensor* tensor = checkpoint.find(name);
  REQUIRE(tensor != nullptr);
  const auto bytes = checkpoint.bytes(*tensor);
  const size_t size = dtype_size(*tensor->dtype);
  REQUIRE(bytes.size() == static_cast<size_t>(tensor->num_elements()) * size);
  std::vector<float> out;
  for (size_t i = 0; i < bytes.size(); i += size) {
    out.push_back(stored_float(bytes.data() + i, *tensor->dtype));
  }
  return out;
}

TEST_CASE("dummy weights look like freshly initialised ones") {
  for (const std::string dtype : {"float32", "bfloat16", "float16"}) {
    INFO(dtype);
    const auto checkpoint = make_dummy_checkpoint(medium_model(dtype), 1);
    const std::vector<float> values = values_of(*checkpoint, "model.embed_tokens.weight");
    double sum = 0.0;
    double square = 0.0;
    double neighbours = 0.0;
    for (size_t i = 0; i < values.size(); ++i) {
      sum += values[i];
      square += values[i] * values[i];
      if (i > 0) neighbours += values[i] * values[i - 1];
      REQUIRE(std::abs(values[i]) < 0.035);
    }
    const auto count = static_cast<double>(values.size());
    CHECK(std::abs(sum / count) < 2e-4);
    CHECK(std::sqrt(square / count) == Approx(0.02).epsilon(0.01));
    CHECK(std::abs(neighbours / square) < 0.01);
    CHECK(std::set<float>(values.begin(), values.end()).size() > 500);
    for (const float value : values_of(*checkpoint, "model.norm.weight")) CHECK(value == 1.0F);
    CHECK(values_of(*checkpoint, "model.layers.0.self_attn.q_proj.bias")[0] != 0.0F);
  }
}

TEST_CASE("dummy weights depend on seed and name and on nothing else") {
  const LoadedConfig model = medium_model("bfloat16");
  const auto one = make_dummy_checkpoint(model, 1);
  const auto two = make_dummy_checkpoint(model, 2);
  const std::string gate = "model.layers.0.mlp.gate_proj.weight";
  const std::vector<float> first = values_of(*one, gate);
  CHECK(values_of(*two, gate) != first);
  CHECK(values_of(*one, "model.layers.0.mlp.up_proj.weight") != first);
  one->release(*one->find(gate));
  values_of(*one, "model.layers.1.mlp.up_proj.weight");
  CHECK(values_of(*one, gate) == first);
  CHECK(values_of(*make_dummy_checkpoint(model, 1), gate) == first);
}

TEST_CASE("a model loads from dummy weights") {
  for (const Json& config : {small_llama(), small_gpt2()}) {
    const LoadedConfig model = load_config(config);
    FakeDevice device;
    const LoadWeightsOptions options{.dtype = DType::kBF16};
    const ModelWeights weights =
        load_weights(model, *make_dummy_checkpoint(model, 7), device, options);
    CHECK(weights.size_bytes == plan_weight_bytes(model, device, options));
  }
}

}  // namespace
}  // namespace tgi
