// What the config of Step 3.5 and 3.7 says layer by layer, in its older spelling and in that of
// `transformers`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/model/model_config.h"

namespace tgi {

inline constexpr std::string_view kStepWindowed = "sliding_attention";
inline constexpr std::string_view kStepFull = "full_attention";

// Lists of layers may have entries of those that draft, which are left out.
void cut_step_lists(Json& json, int64_t num_layers, int64_t further);

// Gives each type of layer a rotation in rope_parameters. `types` are those of the layers. Throws
// kInvalidArgument where layers of one type are not rotated alike.
void spell_step_ropes(const JsonReader& config, const std::vector<std::string>& types, Json& json);

// The heads of layers with a window. REQUIRES: read_windows. Throws kInvalidArgument for counts
// that don't fit, kUnsupported for sizes of such layers that are not the model's.
void read_step_heads(const JsonReader& config, ModelConfig& model);

// Which layers have experts: "3,4,5", or a list of such numbers; without it all from the fourth on.
void read_step_expert_layers(const JsonReader& config, int64_t further, ModelConfig& model);

// The list `key` of limits of what gates give, after their activation; null and 0 are none.
void read_step_limits(const JsonReader& config,
                      std::string_view key,
                      GateLimits LayerPlan::*target,
                      ModelConfig& model);

}  // namespace tgi
