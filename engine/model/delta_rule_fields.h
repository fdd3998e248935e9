// What families with layers of the gated delta rule share, as Qwen3-Next has them: fields, readers
// and tensors but those that make the rule's inputs.
#pragma once

#include <array>
#include <cstdint>

#include "base/json.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/model_config.h"
#include "engine/model/state_fields.h"

namespace tgi {

inline constexpr auto kDeltaRuleFields = std::to_array<KnownField>({
    read_or_null("layer_types"),
    read_or_null("full_attention_interval"),
    read("linear_conv_kernel_dim"),
    read("linear_key_head_dim"),
    read("linear_value_head_dim"),
    read("linear_num_key_heads"),
    read("linear_num_value_heads"),
    kSiluOfConvolutions,
});

// What an absent field means: Qwen3-Next's.
struct DeltaRuleDefaults {
  int64_t num_key_heads = 16;
  int64_t num_value_heads = 32;
  int64_t key_head_dim = 128;
  int64_t value_head_dim = 128;
};

// Sizes of the rule. Throws kInvalidArgument where they don't fit each other.
void read_delta_rule(const JsonReader& config,
                     const DeltaRuleDefaults& defaults,
                     ModelConfig& model);

// Of Kimi delta attention, the rule with a decay for each number of a key: as many heads of keys as
// of values, and as large, with a gate that is a sigmoid.
struct ChannelDeltaDefaults {
  int64_t num_heads = 32;
  int64_t head_dim = 128;
};

void read_channel_delta(const JsonReader& config,
                        const ChannelDeltaDefaults& defaults,
                        ModelConfig& model);

// All but the MLP: the rule in most layers, attention with a gate of its output in the others.
// Throws what read_decoder_config does, and for sizes of the rule that don't fit each other.
ModelConfig read_gated_delta_decoder(const JsonReader& config, const DecoderFields& fields);

inline constexpr auto kGatedDeltaTensors = join_tensors(
    kLlamaOuterTensors,
    kLlamaNormTensors,
    std::to_array<TensorSpec>({
        {Role::kQ, "model.layers.{layer}.self_attn.q_proj.weight", Dim::kGatedQ, Dim::kHidden,
         Split::kRows},
        {.role = Role::kOutputGate,
         .name = "model.layers.{layer}.self_attn.q_proj.weight",
         .rows = Dim::kOutputGate,
         .cols = Dim::kHidden,
         .split = Split::kRows,
         .is_counted = false},
        {Role::kK, "model.layers.{layer}.self_attn.k_proj.weight", Dim::kKv, Dim::kHidden,
         Split::kRows},
        {Role::kV, "model.layers.{layer}.self_attn.v_proj.weight", Dim::kKv, Dim::kHidden,
         Split::kRows},
        {Role::kConv, "model.layers.{layer}.linear_attn.conv1d.weight", Dim::kOne,
         Dim::kConvWeights},
        {Role::kStateStepBias, "model.layers.{layer}.linear_attn.dt_bias", Dim::kOne,
         Dim::kStateHeads},
        {Role::kDecay, "model.layers.{layer}.linear_attn.A_log", Dim::kOne, Dim::kStateHeads},
        {Role::kStateNorm, "model.layers.{layer}.linear_attn.norm.weight", Dim::kOne,
         Dim::kStateHeadDim},
        {Role::kStateOut, "model.layers.{layer}.linear_attn.out_proj.weight", Dim::kHidden,
         Dim::kStateChannels},
    }),
    kLlamaOTensors,
    kQkNormTensors);

}  // namespace tgi
