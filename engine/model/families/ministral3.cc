// Ministral 3: Mistral's block with queries that are scaled by their position.
// Source: models/ministral3 in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kMinistral3Decoder = {
    .default_vocab_size = 131072,
    .default_num_layers = 34,
    .default_num_kv_heads = 8,
    .default_head_dim = 128,
    .default_intermediate = 14336,
    .default_max_positions = 262144,
    .default_norm_eps = 1e-5,
};

constexpr auto kMinistral3RopeFields =
    std::to_array<KnownField>({read_or_null("llama_4_scaling_beta")});
constexpr RopeTraits kRope = {.default_theta = 1e6, .fields = kMinistral3RopeFields};

// A config without any is taken to have these.
Json with_default_ministral3_rope(const Json& config) {
  return with_default_rope(config, "rope_parameters",
                           {{"rope_type", "yarn"},
                            {"rope_theta", 1e6},
                            {"factor", 16.0},
                            {"original_max_position_embeddings", 16384},
                            {"beta_fast", 32.0},
                            {"beta_slow", 1.0},
                            {"mscale", 1.0},
                            {"mscale_all_dim", 1.0},
                            {"llama_4_scaling_beta", 0.1}});
}

ModelConfig read_ministral3(const JsonReader& given) {
  const Json json = with_default_ministral3_rope(given.json());
  const JsonReader config(json, "");
  ModelConfig model = read_decoder_config(config, kMinistral3Decoder);
  const PositionScale query_scale = read_query_scale(config, model, kRope);
  read_rope(config, model, kRope);
  // After the rope, which widens the context: a window as long as that hides nothing.
  read_windows(config, {.default_window = 0, .in_all_layers = true}, model);
  for (LayerPlan& layer : model.layers) layer.query_scale = query_scale;
  return model;
}

constexpr auto kMinistral3Fields = join_fields(
    kDecoderFields,
    std::to_array<KnownField>({
        read_or_null("sliding_window"),
        read_or_null("layer_types"),
        harmless_if("use_sliding_window", "[true]", "sliding_window alone says it, null is none"),
        harmless_if("attention_bias", "[false]", "there are no biases"),
        harmless_if("mlp_bias", "[false]", "there are no biases"),
    }));

constexpr auto kMinistral3Names = std::to_array<std::string_view>({"Ministral3ForCausalLM"});
constexpr auto kMinistral3Types = std::to_array<std::string_view>({"ministral3"});

constexpr auto kMinistral3Tensors =
    join_tensors(kLlamaOuterTensors, kLlamaNormTensors, kLlamaAttentionTensors, kLlamaMlpTensors);

}  // namespace

extern const Architecture kMinistral3;
constexpr Architecture kMinistral3 = {
    .names = kMinistral3Names,
    .model_types = kMinistral3Types,
    .prefix = "model.",
    .read_config = read_ministral3,
    .fields = kMinistral3Fields,
    .tensors = kMinistral3Tensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
