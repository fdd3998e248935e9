// Where an adapter can add something (engine/tensor/low_rank.h): the linears of each layer, those
// of kLayerLinears first, behind those of all layers the head and the embedding, kModelLinears,
// those of kStreamLinears one after the other, and behind these the experts of each layer, those of
// kExpertLinears one after the other, and the heads of key_up and then value_up of each layer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/model/model_config.h"
#include "engine/model/weight_layout.h"

namespace tgi {

inline constexpr int32_t kSitesOfLayer =
    static_cast<int32_t>(kLayerLinears.size() + kOtherLinears.size());
constexpr int32_t site_of(int32_t layer, size_t linear) {
  return layer * kSitesOfLayer + static_cast<int32_t>(linear);
}
constexpr int32_t head_site(int32_t num_layers) {
  return num_layers * kSitesOfLayer;
}
constexpr int32_t embedding_site(int32_t num_layers) {
  return head_site(num_layers) + 1;
}

// linear: of kModelLinears.
constexpr int32_t model_site(int32_t num_layers, size_t linear) {
  return embedding_site(num_layers) + 1 + static_cast<int32_t>(linear);
}
// linear: of kStreamLinears. stream: counted from the first further one.
constexpr int32_t stream_site(const ModelConfig& config, size_t linear, int32_t stream) {
  return model_site(config.num_layers, kModelLinears.size()) +
         static_cast<int32_t>(linear) * num_further_streams(config) + stream;
}

constexpr int32_t expert_site(const ModelConfig& config,
                              int32_t layer,
                              size_t linear,
                              int32_t expert) {
  const auto num_linears = static_cast<int32_t>(kExpertLinears.size());
  const int32_t before = layer * num_linears + static_cast<int32_t>(linear);
  return stream_site(config, kStreamLinears.size(), 0) + before * config.experts.num_experts +
         expert;
}

// head: of the rank's own.
constexpr int32_t latent_site(const ModelConfig& config,
                              int32_t layer,
                              bool is_value,
                              int32_t head) {
  const int32_t before = layer * 2 + (is_value ? 1 : 0);
  return expert_site(config, config.num_layers, 0, 0) + before * config.num_heads + head;
}

}  // namespace tgi
