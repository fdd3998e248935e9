// MiniCPM 3: latent attention, rotated in halves, in a Llama block with multipliers of embedding,
// branches and logits. Source: models/minicpm3 in `transformers`, and the model's own code.
#include <array>
#include <cmath>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/latent_fields.h"
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
  model.embedding_multiplier = read_positive(config, "scale_emb", 12.0);
  const double depth = read_positive(config, "scale_depth", 1.4);
  model.residual_multiplier = static_cast<float>(depth / std::sqrt(model.num_layers));
  model.logit_scale =
      read_positive(config, "dim_model_base", 256.0) / static_cast<float>(model.hidden_size);
  return model;
}

constexpr auto kMinicpm3Fields =
    join_fields(std::to_array<KnownField>({
                    read("scale_emb"),
                    read("scale_depth"),
                    read("dim_model_base"),
                    harmless_if("mlp_bias", "[false]", "MLPs have no biases"),
                }),
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
