#include "engine/quantize/layer_quantizer.h"

#include <span>

#include "base/error.h"
#include "engine/quantize/awq.h"
#include "engine/quantize/checkpoint_writer.h"
#include "engine/tensor/float8.h"
#include "engine/tensor/weight_element.h"

namespace tgi {
namespace {

constexpr int64_t kAwqSampleRows = 512;

const Matrix* matrix_of(const LayerWeights& weights, const LayerLinear& linear) {
  return (weights.*linear.target).weight.get();
}

// What encode_floats wrote: 8-bit floats and a scale for each row.
FloatMatrix decode_float8(std::span<const EncodedArray> arrays,
                          int64_t rows,
                          int64_t cols,
                          DType scale_dtype) {
  FloatMatrix out(rows, cols);
  for (int64_t row = 0; row < rows; ++row) {
    const float scale = read_element(arrays[1].bytes.data(), scale_dtype, row);
    const std::byte* codes = arrays[0].bytes.data() + row * cols;
    for (float& value : out.row(row)) {
      value = scale * e4m3_to_f32(static_cast<uint8_t>(*codes++));
    }
  }
  return out;
}

}  // namespace

CodeOptions LayerQuantizer::code_options(int64_t cols) const {
  return {.bits = options_.encoder->bits,
          .group_size = group_size_for(options_.settings.group_size, cols),
          .symmetric = !options_.settings.asymmetric,
          .scale_dtype = options_.encoder->scale_dtype(options_.model_dtype)};
}

EncodedLayer LayerQuantizer::quantize(int32_t layer,
                                      LayerWeights& weights,
                                      LayerTensors& tensors,
                                      const LayerRunner::HiddenStates& states) {
  EncodedLayer out;
  switch (options_.encoder->method) {
    case QuantizeMethod::kNearest:
      run_nearest(weights, tensors, out);
      break;
    case QuantizeMethod::kGptq:
      run_gptq(layer, weights, tensors, states, out);
      break;
    case QuantizeMethod::kAwq:
      run_awq(layer, weights, tensors, states, out);
      break;
  }
  return out;
}

void LayerQuantizer::run_nearest(LayerWeights& weights, LayerTensors& tensors, EncodedLayer& out) {
  for (const LayerLinear& linear : kLayerLinears) {
    replace(
        linear, weights, tensors,
        [&](FloatMatrix& w) {
          return round_to_nearest(w, {}, code_options(w.cols), options_.num_threads);
        },
        out);
  }
}

void LayerQuantizer::replace(const LayerLinear& linear,
                             LayerWeights& weights,
                             LayerTensors& tensors,
                             const QuantizeMatrix& quantize,
                             EncodedLayer& out) {
  const WeightEncoder& encoder = *options_.encoder;
  std::vector<FloatMatrix> changed;
  for (const Role role : tensors.roles_of(linear)) {
    FloatMatrix& w = tensors.matrix(role);
    try {
      if (encoder.takes_floats) {
        out[role] = encoder.encode_floats(w.values, w.rows, w.cols, options_.model_dtype);
        changed.push_back(
            decode_float8(out[role], w.rows, w.cols, encoder.scale_dtype(options_.model_dtype)));
      } else {
        const GroupedMatrix codes = quantize(w);
        out[role] = encoder.encode(codes, options_.model_dtype);
        changed.push_back(dequantize(codes));
      }
    } catch (const Error& error) {
      throw error.in(tensors.find(role)->name);
    }
    tensors.drop(role);
  }
  std::vector<const FloatMatrix*> pieces;
  for (const FloatMatrix& matrix : changed) pieces.push_back(&matrix);
  (weights.*linear.target).weight.reset();
  (weights.*linear.target).weight = runner_.make_matrix(pieces);
}

void LayerQuantizer::run_gptq(int32_t layer,
                              LayerWeights& weights,
                              LayerTensors& tensors,
                              const LayerRunner::HiddenStates& states,
                              EncodedLayer& out) {
  for (const LayerLinear& linear : kLayerLinears) {
    const Matrix* matrix = matrix_of(weights, linear);
    GramMatrix gram(matrix->cols);
    std::vector<LayerRunner::Tap> taps;
    taps.push_back(
        {.w = matrix, .see = [&](const Tensor& x) { gram.add(x, options_.num_threads); }});
    runner_.see_inputs(layer, states, std::move(taps));
    const GptqSolver solver(std::move(gram),
                            {.codes = code_options(matrix->cols),
                             .damping = static_cast<float>(options_.settings.damping),
                             .act_order = options_.settings.act_order,
                             .num_threads = options_.num_threads});
    replace(
        linear, weights, tensors, [&](FloatMatrix& w) { return solver.quantize(w); }, out);
  }
}

// All inputs are seen before anything is changed: scales that are taken out of a matrix and put
// into the next one leave them as they are, but for the scales themselves.
void LayerQuantizer::run_awq(int32_t layer,
                             LayerWeights& weights,
                             LayerTensors& tensors,
                             const LayerRunner::HiddenStates& states,
                             EncodedLayer& out) {
  std::vector<InputStatistics> inputs;
  for (const LayerLinear& linear : kLayerLinears) {
    inputs.emplace_back(matrix_of(weights, linear)->cols, runner_.num_tokens(), kAwqSampleRows);
  }
  std::vector<LayerRunner::Tap> taps;
  for (size_t i = 0; i < kLayerLinears.size(); ++i) {
    taps.push_back({.w = matrix_of(weights, kLayerLinears[i]),
                    .see = [&input = inputs[i]](const Tensor& x) { input.add(x); }});
  }
  runner_.see_inputs(layer, states, std::move(taps));

  std::vector<std::vector<float>> importance;
  for (size_t i = 0; i < kLayerLinears.size(); ++i) {
    const LayerLinear& linear = kLayerLinears[i];
    std::vector<FloatMatrix*> matrices;
    for (const Role role : tensors.roles_of(linear)) matrices.push_back(&tensors.matrix(role));
    const std::vector<const FloatMatrix*> sources(matrices.begin(), matrices.end());
    std::vector<float> scales = search_channel_scales(
        sources, inputs[i], code_options(inputs[i].cols()), options_.num_threads);
    const bool is_taken_out = tensors.take_out(linear, scales);
    importance.push_back(inputs[i].mean_square());
    if (!is_taken_out) continue;
    for (FloatMatrix* matrix : matrices) scale_columns(*matrix, scales);
    for (size_t c = 0; c < scales.size(); ++c) importance[i][c] /= scales[c] * scales[c];
  }
  for (size_t i = 0; i < kLayerLinears.size(); ++i) {
    replace(
        kLayerLinears[i], weights, tensors,
        [&](FloatMatrix& w) {
          return round_to_nearest(w, importance[i], code_options(w.cols), options_.num_threads);
        },
        out);
  }
  upload_vectors(runner_.device(), weights, tensors);
}

void upload_vectors(Device& device, LayerWeights& weights, LayerTensors& tensors) {
  const auto upload = [&](DeviceVector& to, const std::vector<float>& values) {
    TGI_CHECK(to.view.cols == static_cast<int64_t>(values.size()));
    device.copy_to_device(to.buffer.data(), values.data(), values.size() * sizeof(float));
  };
  for (const LayerVector& row : kLayerVectors) {
    if (const std::vector<float>* values = tensors.vector(row.role)) {
      upload(weights.*row.target, *values);
    }
  }
  for (const LayerVectorPair& row : kLayerVectorPairs) {
    const std::vector<float>* first = tensors.vector(row.first);
    const std::vector<float>* second = tensors.vector(row.second);
    if (first == nullptr || second == nullptr) continue;
    std::vector<float> both = *first;
    both.insert(both.end(), second->begin(), second->end());
    DeviceVector& to = weights.*row.target;
    TGI_CHECK(to.view.rows * to.view.cols == static_cast<int64_t>(both.size()));
    device.copy_to_device(to.buffer.data(), both.data(), both.size() * sizeof(float));
  }
  for (const LayerLinear& linear : kLayerLinears) {
    DeviceVector& bias = (weights.*linear.target).bias;
    if (!bias.buffer) continue;
    std::vector<float> stacked;  // zero where a part has none
    for (const LinearPart& part : linear.parts) {
      const TensorEntry* entry = tensors.find(part.weight);
      if (entry == nullptr) continue;
      std::vector<float> values;
      if (const std::vector<float>* own = tensors.vector(part.bias)) values = *own;
      values.resize(static_cast<size_t>(entry->rows), 0.0F);
      stacked.insert(stacked.end(), values.begin(), values.end());
    }
    upload(bias, stacked);
  }
}

}  // namespace tgi
