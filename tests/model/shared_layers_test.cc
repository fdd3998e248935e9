// Layers that have matrices in common: a device holds them once, and so they are planned.
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/files/file_source.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/model/model_weights.h"
#include "tests/catch.h"
#include "tests/model/fake_device.h"

namespace tgi::shared_layers_test {
namespace {

struct Loaded {
  LoadedConfig model;
  std::unique_ptr<FakeDevice> device;
  ModelWeights weights;
};

Loaded load(const std::string& name, const LoadWeightsOptions& options = {.dtype = DType::kF32}) {
  const auto files = open_folder(std::string(TGI_SOURCE_DIR) + "/tests/golden/" + name);
  Loaded out{
      .model = load_model_config(*files), .device = std::make_unique<FakeDevice>(), .weights = {}};
  out.weights = load_weights(out.model, *open_checkpoint(*files), *out.device, options);
  CHECK(out.weights.size_bytes == plan_weight_bytes(out.model, *out.device, options));
  CHECK(out.weights.size_bytes == out.device->allocated_bytes);
  return out;
}

// How many of the layers' matrices there are.
size_t count_matrices(const ModelWeights& weights, Linear LayerWeights::*linear) {
  std::set<const Matrix*> seen;
  for (const LayerWeights& layer : weights.layers) {
    if (const Matrix* matrix = (layer.*linear).weight.get()) seen.insert(matrix);
  }
  return seen.size();
}

TEST_CASE("layers of one group hold its matrices once") {
  const Loaded one = load("vectors/albert");
  CHECK(one.model.config.num_layers > 1);
  CHECK(count_matrices(one.weights, &LayerWeights::qkv) == 1);
  CHECK(count_matrices(one.weights, &LayerWeights::down) == 1);
  const Loaded groups = load("vectors/albert-groups");
  const auto stored = static_cast<size_t>(groups.model.config.num_stored_layers);
  CHECK(stored > 1);
  CHECK(count_matrices(groups.weights, &LayerWeights::qkv) == stored);
}

TEST_CASE("layers that use a block in turn hold its matrices once, and small ones each") {
  const Loaded loaded = load("families/zamba2");
  const std::vector<LayerWeights>& layers = loaded.weights.layers;
  CHECK(count_matrices(loaded.weights, &LayerWeights::qkv) == 2);
  CHECK(layers[1].qkv.weight == layers[4].qkv.weight);
  CHECK(layers[1].gate_up.weight == layers[4].gate_up.weight);
  CHECK(layers[1].qkv.weight != layers[3].qkv.weight);
  CHECK(count_matrices(loaded.weights, &LayerWeights::qkv_low_in) == 3);
  CHECK(count_matrices(loaded.weights, &LayerWeights::gate_up_low_out) == 3);
  CHECK(count_matrices(loaded.weights, &LayerWeights::block_out) == 3);
  // All that a token reads, a shared one as often as it is read.
  int64_t shared_bytes = 0;
  for (Linear LayerWeights::*linear :
       {&LayerWeights::qkv, &LayerWeights::o, &LayerWeights::gate_up, &LayerWeights::down}) {
    shared_bytes += (layers[1].*linear).weight->size_bytes;
  }
  CHECK(loaded.weights.streamed_bytes_per_token == loaded.weights.size_bytes + shared_bytes);
}

TEST_CASE("one layer after the other, shared matrices go with the last layer that has them") {
  const auto files = open_folder(std::string(TGI_SOURCE_DIR) + "/tests/golden/families/zamba2");
  const LoadedConfig model = load_model_config(*files);
  const auto checkpoint = open_checkpoint(*files);
  FakeDevice device;
  WeightLoader loader(model, *checkpoint, device, {.dtype = DType::kF32});
  std::weak_ptr<Matrix> first;
  {
    const LayerWeights layer = loader.load_layer(1);
    first = layer.qkv.weight;
    CHECK(loader.load_layer(4).qkv.weight == layer.qkv.weight);
  }
  CHECK(first.expired());
  CHECK(loader.load_layer(4).qkv.weight != nullptr);
}

}  // namespace
}  // namespace tgi::shared_layers_test
