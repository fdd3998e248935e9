#include "engine/quantize/source_model.h"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/tensor/weight_element.h"

namespace tgi {
namespace {

const LoadedConfig& require_dense(const LoadedConfig& model) {
  if (!model.weight_format->is_quantised) return model;
  throw Error(Code::kInvalidArgument,
              fmt::format("the checkpoint is quantised already (as {}); quantize the model that it "
                          "was made from",
                          model.weight_format->name));
}

void check_finite(std::span<const float> values, const std::string& name) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    throw Error(Code::kInvalidArgument, fmt::format("tensor {}: element {} is {}; is the "
                                                    "checkpoint damaged?",
                                                    name, i, values[i]));
  }
}

// "": none of them.
std::string_view what_is_not_plain(const ModelConfig& config) {
  if (has_state(config)) return "layers that carry a state";
  if (config.num_stored_layers > 0) return "layers that share their weights";
  if (config.experts.num_experts > 0) return "experts";
  if (has_latents(config)) return "latent attention";
  if (config.distances.has_products()) return "products of tokens and their distances";
  if (has_streams(config)) return "hidden states of several streams";
  if (config.layer_inputs.size > 0) return "rows of each token for each layer";
  if (count_layers(config, &LayerPlan::keys_are_values) > 0) return "values that are keys";
  if (has_unlike_heads(config) || has_shared_kv(config))
    return "layers whose heads differ or that share keys and values";
  return "";
}

}  // namespace

bool has_plain_layers(const ModelConfig& config) {
  return what_is_not_plain(config).empty();
}

void require_plain_layers(const ModelConfig& config) {
  if (has_plain_layers(config)) return;
  throw Error(Code::kUnsupported,
              fmt::format("models with {} can't be quantised to a file of this format yet; load "
                          "them with --quantize, or write a GGUF file",
                          what_is_not_plain(config)));
}

SourceModel::SourceModel(const LoadedConfig& model, const Checkpoint& checkpoint)
    : model_(require_dense(model)),
      checkpoint_(checkpoint),
      table_(model),
      sources_(match_checkpoint(model, table_, checkpoint)) {}

const StoredTensor& SourceModel::stored(const TensorEntry& entry) const {
  return *sources_[static_cast<size_t>(&entry - table_.entries().data())].front();
}

FloatMatrix SourceModel::read_matrix(const TensorEntry& entry) const {
  const StoredTensor& tensor = stored(entry);
  FloatMatrix out(entry.rows, entry.cols);
  const bool transposed = entry.spec->transposed;
  const int64_t row_stride = transposed ? 1 : entry.cols;
  const int64_t col_stride = transposed ? entry.rows : 1;
  // Of those that lie one behind the other, that expert's.
  const int64_t first = entry.num_stacked > 0 ? entry.expert * entry.rows * entry.cols : 0;
  const std::byte* data = checkpoint_.bytes(tensor).data();
  for (int64_t row = 0; row < out.rows; ++row) {
    int64_t at = first + row * row_stride;
    for (float& value : out.row(row)) {
      value = read_element(data, *tensor.dtype, at);
      at += col_stride;
    }
  }
  checkpoint_.release(tensor);
  check_finite(out.values, tensor.name);
  return out;
}

std::vector<float> SourceModel::read_vector(const TensorEntry& entry) const {
  const StoredTensor& tensor = stored(entry);
  std::vector<float> out(static_cast<size_t>(entry.cols));
  read_elements(checkpoint_.bytes(tensor).data(), *tensor.dtype, out);
  checkpoint_.release(tensor);
  check_finite(out, tensor.name);
  return out;
}

}  // namespace tgi
