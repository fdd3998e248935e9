// Quantises the matrices of one layer, by the method that belongs to a format: rounding to nearest,
// GPTQ or AWQ. The layer that is loaded in the runner is changed along with them, so that what is
// measured next is measured behind it.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "engine/quantize/gptq.h"
#include "engine/quantize/layer_runner.h"
#include "engine/quantize/layer_tensors.h"
#include "engine/weights/weight_encoder.h"

namespace tgi {

struct LayerQuantizerOptions {
  const WeightEncoder* encoder = nullptr;
  EncodedModel settings;
  DType model_dtype = DType::kBF16;
  int num_threads = 1;
};

using EncodedLayer = std::map<Role, std::vector<EncodedArray>>;

// Norms and biases as they are in `tensors`, to the layer on the device.
void upload_vectors(Device& device, LayerWeights& weights, LayerTensors& tensors);

class LayerQuantizer {
 public:
  LayerQuantizer(LayerRunner& runner, const LayerQuantizerOptions& options)
      : runner_(runner), options_(options) {}

  // REQUIRES: the layer is loaded in the runner as `weights`, dense. `states`: what goes into it.
  EncodedLayer quantize(int32_t layer,
                        LayerWeights& weights,
                        LayerTensors& tensors,
                        const LayerRunner::HiddenStates& states);

 private:
  using QuantizeMatrix = std::function<GroupedMatrix(FloatMatrix& w)>;

  CodeOptions code_options(int64_t cols) const;
  // Encodes the linear's matrices, puts what they stand for into `weights`, and forgets the floats.
  void replace(const LayerLinear& linear,
               LayerWeights& weights,
               LayerTensors& tensors,
               const QuantizeMatrix& quantize,
               EncodedLayer& out);
  void run_nearest(LayerWeights& weights, LayerTensors& tensors, EncodedLayer& out);
  void run_gptq(int32_t layer,
                LayerWeights& weights,
                LayerTensors& tensors,
                const LayerRunner::HiddenStates& states,
                EncodedLayer& out);
  void run_awq(int32_t layer,
               LayerWeights& weights,
               LayerTensors& tensors,
               const LayerRunner::HiddenStates& states,
               EncodedLayer& out);
  LayerRunner& runner_;
  const LayerQuantizerOptions options_;
};

}  // namespace tgi
