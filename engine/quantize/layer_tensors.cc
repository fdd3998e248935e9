#include "engine/quantize/layer_tensors.h"

#include <utility>

#include "base/error.h"
#include "engine/weights/weight_encoder.h"

namespace tgi {

LayerTensors::LayerTensors(const SourceModel& source, int32_t layer)
    : source_(source), layer_(layer) {
  for (const TensorEntry& entry : source.table().entries()) {
    if (entry.layer == layer && entry.is_vector()) {
      vectors_.emplace(entry.spec->role, source.read_vector(entry));
    }
  }
}

std::vector<Role> LayerTensors::roles_of(const LayerLinear& linear) const {
  std::vector<Role> out;
  for (const LinearPart& part : linear.parts) {
    if (find(part.weight) != nullptr) out.push_back(part.weight);
  }
  return out;
}

FloatMatrix& LayerTensors::matrix(Role role) {
  const auto it = matrices_.find(role);
  if (it != matrices_.end()) return it->second;
  return matrices_.emplace(role, source_.read_matrix(*find(role))).first->second;
}

std::vector<float>* LayerTensors::vector(Role role) {
  const auto it = vectors_.find(role);
  return it == vectors_.end() ? nullptr : &it->second;
}

float LayerTensors::stored(Role role, float value) const {
  return round_to_dtype(*source_.stored(*find(role)).dtype, value);
}

bool LayerTensors::take_out_of_norm(Role weight, Role bias, std::span<float> scales) {
  std::vector<float>& weights = *vector(weight);
  std::vector<float>* biases = vector(bias);
  const float offset = norm_offset_of(source_.model().config, weight);
  for (size_t i = 0; i < scales.size(); ++i) {
    const float before = weights[i] + offset;
    const float quotient = stored(weight, before / scales[i] - offset);
    const float after = quotient + offset;
    const bool is_usable = before != 0.0F && after != 0.0F && before / after > 0.0F;
    scales[i] = is_usable ? before / after : 1.0F;
    if (!is_usable) continue;
    weights[i] = quotient;
    if (biases != nullptr) (*biases)[i] = stored(bias, (*biases)[i] / scales[i]);
  }
  changed_[weight] = true;
  if (biases != nullptr) changed_[bias] = true;
  return true;
}

bool LayerTensors::take_out_of_rows(Role weight,
                                    Role bias,
                                    int64_t first_row,
                                    std::span<const float> scales) {
  FloatMatrix& rows = matrix(weight);
  std::vector<float>* biases = vector(bias);
  for (size_t i = 0; i < scales.size(); ++i) {
    for (float& value : rows.row(first_row + static_cast<int64_t>(i))) value /= scales[i];
    if (biases == nullptr) continue;
    float& value = (*biases)[static_cast<size_t>(first_row) + i];
    value = stored(bias, value / scales[i]);
  }
  if (biases != nullptr) changed_[bias] = true;
  return true;
}

bool LayerTensors::take_out(const LayerLinear& linear, std::span<float> scales) {
  const ModelConfig& config = source_.model().config;
  // A factor can be taken out of a norm only where nothing else reads what it writes.
  const bool is_read_once = !config.parallel_branches || find(Role::kMlpNorm) != nullptr;
  if (linear.target == &LayerWeights::qkv) {
    if (!is_read_once || find(Role::kAttentionNorm) == nullptr) return false;
    return take_out_of_norm(Role::kAttentionNorm, Role::kAttentionNormBias, scales);
  }
  if (linear.target == &LayerWeights::gate_up) {
    if (find(Role::kMlpNorm) == nullptr) return false;
    return take_out_of_norm(Role::kMlpNorm, Role::kMlpNormBias, scales);
  }
  for (const auto& [target, norm] : {std::pair{&LayerWeights::o, Role::kAttentionInnerNorm},
                                     {&LayerWeights::down, Role::kMlpInnerNorm}}) {
    if (linear.target != target || find(norm) == nullptr) continue;
    return take_out_of_norm(norm, Role::kCount, scales);
  }
  if (linear.target == &LayerWeights::o) {
    // Attention mixes tokens, never channels; but several query heads read one value head.
    if (config.num_kv_heads != config.num_heads) return false;
    if (find(Role::kV) != nullptr) return take_out_of_rows(Role::kV, Role::kVBias, 0, scales);
    if (find(Role::kQkv)->spec->rows != Dim::kQkv) return false;  // values are not in one piece
    const int64_t first = int64_t{config.num_heads + config.num_kv_heads} * config.head_dim;
    return take_out_of_rows(Role::kQkv, Role::kQkvBias, first, scales);
  }
  // down: its input is act(gate) * up, or act(up) where only relu lets a factor through.
  if (!config.gated_mlp && config.activation != Activation::kRelu) return false;
  if (find(Role::kUp) == nullptr) {
    return take_out_of_rows(Role::kGateUp, Role::kGateUpBias, config.intermediate_size, scales);
  }
  return take_out_of_rows(Role::kUp, Role::kUpBias, 0, scales);
}

}  // namespace tgi
