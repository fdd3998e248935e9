// Falcon-H1: attention and Mamba 2 beside each other in every layer, with multipliers throughout.
// Source: models/falcon_h1 in `transformers`.
#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"
#include "engine/model/state_fields.h"
#include "engine/model/state_tensors.h"

namespace tgi {
namespace {

void read_multipliers(const JsonReader& config, ModelConfig& model) {
  model.embedding_multiplier = read_positive(config, "embedding_multiplier", 1.0);
  model.logit_scale = read_positive(config, "lm_head_multiplier", 1.0);
  model.key_multiplier = read_positive(config, "key_multiplier", 1.0);
  model.attention_input_multiplier = read_positive(config, "attention_in_multiplier", 1.0);
  model.attention_output_multiplier = read_positive(config, "attention_out_multiplier", 1.0);
  model.state.input_multiplier = read_positive(config, "ssm_in_multiplier", 1.0);
  model.state.output_multiplier = read_positive(config, "ssm_out_multiplier", 1.0);
  const std::vector<float> mlp = read_factors(config, "mlp_multipliers", 2);
  model.mlp_gate_multiplier = mlp[0];
  model.mlp_output_multiplier = mlp[1];
  const std::vector<float> parts = read_factors(config, "ssm_multipliers", 5);
  std::copy(parts.begin(), parts.end(), model.state.part_multipliers.begin());
}

ModelConfig read_falcon_h1(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 128000,
                                                   .default_num_kv_heads = 8,
                                                   .default_intermediate = 14336,
                                                   .default_max_positions = 8192,
                                                   .default_norm_eps = 1e-5});
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  read_rope(config, model);
  // Null asks for mamba_expand; what no field says is 1024.
  const bool has_channels = config.has("mamba_d_ssm") || !config.json().contains("mamba_d_ssm");
  read_mamba2(config,
              {.num_heads = "mamba_n_heads",
               .head_dim = "mamba_d_head",
               .state_size = "mamba_d_state",
               .num_groups = "mamba_n_groups",
               .conv_kernel = "mamba_d_conv",
               .conv_bias = "mamba_conv_bias",
               .in_bias = "mamba_proj_bias",
               .out_bias = "projectors_bias",
               .num_channels = "mamba_d_ssm",
               .expand = has_channels ? "" : "mamba_expand",
               .step_limit = "time_step_limit",
               .default_head_dim = 8,
               .default_state_size = 256,
               .default_num_groups = 1},
              model);
  model.state.has_norm = config.boolean_or("mamba_rms_norm", false);
  model.state.norm_first = config.boolean_or("mamba_norm_before_gate", true);
  for (LayerPlan& layer : model.layers) layer.has_state = true;
  read_multipliers(config, model);
  return model;
}

constexpr auto kFalconH1Fields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read_or_null("mlp_bias"),
                    read("embedding_multiplier"),
                    read("lm_head_multiplier"),
                    read("key_multiplier"),
                    read("attention_in_multiplier"),
                    read("attention_out_multiplier"),
                    read_or_null("ssm_in_multiplier"),
                    read_or_null("ssm_out_multiplier"),
                    read_or_null("mlp_multipliers"),
                    read_or_null("ssm_multipliers"),
                    read_or_null("mamba_d_ssm"),
                    read("projectors_bias"),
                    read("mamba_rms_norm"),
                    read("mamba_norm_before_gate"),
                    harmless_if("mamba_use_mlp", "[true]", "every layer has an MLP"),
                    harmless_if("attn_layer_indices", "[]", "every layer has attention"),
                }),
                kHybridMamba2Fields,
                kMambaFields,
                kDecoderFields);

constexpr auto kFalconH1Names = std::to_array<std::string_view>({"FalconH1ForCausalLM"});
constexpr auto kFalconH1Types = std::to_array<std::string_view>({"falcon_h1"});

}  // namespace

extern const Architecture kFalconH1;
constexpr Architecture kFalconH1 = {
    .names = kFalconH1Names,
    .model_types = kFalconH1Types,
    .prefix = "model.",
    .read_config = read_falcon_h1,
    .fields = kFalconH1Fields,
    .tensors = kMamba2DecoderTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
