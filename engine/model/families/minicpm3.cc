// MiniCPM 3: latent attention, rotated in halves, in a Llama block with multipliers of embedding,
// branches and logits. Source: models/minicpm3 in `transformers`, and the model's own code.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/latent_fields.h"
#include "engine/model/minicpm_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_minicpm3(const JsonReader& config) {
  ModelConfig model =
      read_decoder_config(config, latent_decoder_fields({.default_vocab_size = 73448,
                                                         .default_hidden_size = 2560,
                                                         .default_num_layers = 62,
                                                         .default_num_heads = 40,
                                                         .default_intermediate = 6400,
                                                         .default_max_positions = 32768,
                                                         .default_norm_eps = 1e-5,
                                                         .default_tied = true},
                                                        32));
  read_latent_attention(config,
                        {.default_rank = 256,
                         .default_query_rank = 768,
                         .default_kept_dim = 64,
                         .default_value_dim = 0,
                         .scales_scores = false},
                        {}, model);
  read_minicpm_multipliers(config, {.scale_emb = 12.0, .scale_depth = 1.4, .dim_model_base = 256.0},
                           model);
  return model;
}

constexpr auto kMinicpm3Fields =
    join_fields(std::to_array<KnownField>({
                    harmless_if("mlp_bias", "[false]", "MLPs have no biases"),
                }),
                kMiniCpmMultiplierFields,
                kLatentFields,
                kDecoderFields);

constexpr auto kMinicpm3Names = std::to_array<std::string_view>({"MiniCPM3ForCausalLM"});
constexpr auto kMinicpm3Types = std::to_array<std::string_view>({"minicpm3"});

constexpr auto kMinicpm3Tensors =
    join_tensors(kLlamaOuterTensors, kLlamaNormTensors, kLatentAttentionTensors, kLlamaMlpTensors);

}  // namespace

extern const Architecture kMiniCpm3;
constexpr Architecture kMiniCpm3 = {
    .names = kMinicpm3Names,
    .model_types = kMinicpm3Types,
    .prefix = "model.",
    .read_config = read_minicpm3,
    .fields = kMinicpm3Fields,
    .tensors = kMinicpm3Tensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
