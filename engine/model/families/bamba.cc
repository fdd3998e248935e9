// Bamba: Mamba 2 in most layers, attention with a partly rotated head in those that the config
// names, Llama's MLP behind each. Source: models/bamba in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"
#include "engine/model/state_fields.h"
#include "engine/model/state_tensors.h"

namespace tgi {
namespace {

ModelConfig read_bamba(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.head_dim = "",
                                                   .default_vocab_size = 128000,
                                                   .default_num_kv_heads = 8,
                                                   .default_intermediate = 14336,
                                                   .default_max_positions = 262144,
                                                   .default_norm_eps = 1e-5});
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  read_rope(config, model, {.takes_partial = true, .default_partial = 0.5});
  read_mamba2(config, kHybridMamba2Names, model);
  use_state_in_all_layers(model);
  read_attention_layers(config, "attn_layer_indices", model);
  check_mixer_list(config, "layer_types", model);
  check_mixer_list(config, "layers_block_type", model);
  return model;
}

constexpr auto kBambaFields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read_or_null("mlp_bias"),
                    read_or_null("attn_layer_indices"),
                    harmless_if("head_dim", "[]", "hidden_size and num_attention_heads say it"),
                    harmless_if("partial_rotary_factor", "[0.5]", "it is half a head, always"),
                    harmless("attn_rotary_emb", "half of a head is rotated, always"),
                    read_or_null("layer_types"),
                    read_or_null("layers_block_type"),
                    harmless("z_loss_coefficient", kStartsTraining),
                }),
                kHybridMamba2Fields,
                kMambaFields,
                kDecoderFields);

constexpr auto kBambaNames = std::to_array<std::string_view>({"BambaForCausalLM"});
constexpr auto kBambaTypes = std::to_array<std::string_view>({"bamba"});

}  // namespace

extern const Architecture kBamba;
constexpr Architecture kBamba = {
    .names = kBambaNames,
    .model_types = kBambaTypes,
    .prefix = "model.",
    .read_config = read_bamba,
    .fields = kBambaFields,
    .tensors = kMamba2DecoderTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
