// What MiniCPM's models multiply embedding, branches and logits by.
// Source: modeling_minicpm.py of the published models.
#pragma once

#include <array>
#include <cmath>

#include "base/json.h"
#include "engine/model/config_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/model_config.h"

namespace tgi {

// What absent fields mean.
struct MiniCpmMultipliers {
  double scale_emb = 1.0;
  double scale_depth = 1.0;
  double dim_model_base = 1.0;
};

// REQUIRES: num_layers and hidden_size are set.
inline void read_minicpm_multipliers(const JsonReader& config,
                                     const MiniCpmMultipliers& defaults,
                                     ModelConfig& model) {
  model.embedding_multiplier = read_positive(config, "scale_emb", defaults.scale_emb);
  const double depth = read_positive(config, "scale_depth", defaults.scale_depth);
  model.residual_multiplier = static_cast<float>(depth / std::sqrt(model.num_layers));
  model.logit_scale = read_positive(config, "dim_model_base", defaults.dim_model_base) /
                      static_cast<float>(model.hidden_size);
}

inline constexpr auto kMiniCpmMultiplierFields =
    std::to_array<KnownField>({read("scale_emb"), read("scale_depth"), read("dim_model_base")});

}  // namespace tgi
