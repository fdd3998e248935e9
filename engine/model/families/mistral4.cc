// Mistral 4's text model: latent attention whose queries are scaled by their position, and experts
// that are chosen by a softmax, stored one behind the other. Source: models/mistral4 in
// `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/latent_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr auto kMistral4RopeFields =
    std::to_array<KnownField>({read_or_null("llama_4_scaling_beta")});

// A config without any is taken to have these.
Json with_default_mistral4_rope(const Json& config) {
  return with_default_rope(config, "rope_parameters",
                           {{"rope_type", "yarn"},
                            {"rope_theta", 10000.0},
                            {"factor", 128.0},
                            {"original_max_position_embeddings", 8192},
                            {"beta_fast", 32.0},
                            {"beta_slow", 1.0},
                            {"mscale", 1.0},
                            {"mscale_all_dim", 1.0},
                            {"llama_4_scaling_beta", 0.1}});
}

ModelConfig read_mistral4(const JsonReader& given) {
  const Json json = with_default_mistral4_rope(given.json());
  const JsonReader config(json, "");
  ModelConfig model =
      read_decoder_config(config, latent_decoder_fields({.default_vocab_size = 131072,
                                                         .default_num_layers = 36,
                                                         .default_intermediate = 12288,
                                                         .default_max_positions = 1048576}));
  // rope_parameters give the rotated columns as a part of the whole head too.
  const RopeTraits rope = {.interleaved = rotates_pairs(config),
                           .columns = model.head_dim,
                           .fields = kMistral4RopeFields};
  const PositionScale query_scale = read_query_scale(config, model, rope);
  read_latent_attention(config,
                        {.default_rank = 256, .default_query_rank = 1024, .default_kept_dim = 64},
                        rope, model);
  for (LayerPlan& layer : model.layers) layer.query_scale = query_scale;
  read_deepseek_experts(
      config, {.default_num_experts = 128, .default_top_k = 4, .default_intermediate = 2048},
      model);
  model.experts.route.score = RouterScore::kSoftmax;
  model.experts.has_choice_bias = false;
  read_first_sparse_layer(config, 0, model);
  return model;
}

constexpr auto kMistral4Fields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("rope_interleave"),
                    harmless("partial_rotary_factor", "qk_rope_head_dim counts what is rotated"),
                }),
                kLatentFields,
                kDecoderFields,
                kDeepSeekExpertFields);

constexpr auto kMistral4Names = std::to_array<std::string_view>({"Mistral4ForCausalLM"});
constexpr auto kMistral4Types = std::to_array<std::string_view>({"mistral4"});

constexpr auto kMistral4Tensors = join_tensors(kLlamaOuterTensors,
                                               kLlamaNormTensors,
                                               kLatentAttentionTensors,
                                               kLlamaMlpTensors,
                                               kSharedExpertsTensors,
                                               kStackedExpertTensors);

}  // namespace

extern const Architecture kMistral4;
constexpr Architecture kMistral4 = {
    .names = kMistral4Names,
    .model_types = kMistral4Types,
    .prefix = "model.",
    .read_config = read_mistral4,
    .fields = kMistral4Fields,
    .aliases = kDeepSeekExpertAliases,
    .tensors = kMistral4Tensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
