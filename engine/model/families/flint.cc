// Flint: Qwen 3's attention with a sink for each head, rotated only where there is a window, and
// behind the first layers experts chosen by sigmoids, beside one that all tokens go to. Source:
// models/flint in `transformers`, and what the published files call their tensors.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

// The first two layers see everything, and of those behind them every fourth and the last; the
// first two have no experts.
Json with_default_layers(const JsonReader& config) {
  Json out = config.json();
  const int32_t num_layers = read_size(config, "num_hidden_layers", 49, kMaxLayers);
  if (!config.has("layer_types")) {
    Json types = Json::array();
    for (int32_t i = 0; i < num_layers; ++i) {
      const bool is_full = i < 2 || i % 4 == 1 || i + 1 == num_layers;
      types.push_back(is_full ? "full_attention" : "sliding_attention");
    }
    out["layer_types"] = std::move(types);
  }
  if (!config.has("mlp_only_layers")) out["mlp_only_layers"] = {0, 1};
  return out;
}

ModelConfig read_flint(const JsonReader& given) {
  const Json json = with_default_layers(given);
  const JsonReader config(json, "");
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 150144,
                                                   .default_hidden_size = 2048,
                                                   .default_num_layers = 49,
                                                   .default_num_kv_heads = 4,
                                                   .default_head_dim = 128,
                                                   .default_intermediate = 6144,
                                                   .default_max_positions = 262144,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = config.boolean_or("attention_bias", false);
  read_windows(config, {.default_window = 513}, model);
  read_rope(config, model);
  for (LayerPlan& layer : model.layers) {
    if (layer.sliding_window == 0) layer.rope = kNoRope;
  }
  read_experts(config,
               {.intermediate_size = "moe_intermediate_size",
                .shared_intermediate_size = "shared_expert_intermediate_size",
                .normalises_name = "norm_topk_prob",
                .default_num_experts = 256,
                .default_top_k = 6,
                .default_intermediate = 512,
                .default_shared_intermediate = 1024,
                .score = RouterScore::kSigmoid,
                .normalises = true},
               model);
  read_sparse_steps(config, model);
  return model;
}

constexpr auto kFlintFields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read_or_null("layer_types"),
                    read("sliding_window"),
                    read("moe_intermediate_size"),
                    read("shared_expert_intermediate_size"),
                    read("decoder_sparse_step"),
                    read_or_null("mlp_only_layers"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                }),
                kDecoderFields,
                kExpertFields);

constexpr auto kFlintNames = std::to_array<std::string_view>({"FlintForCausalLM"});
constexpr auto kFlintTypes = std::to_array<std::string_view>({"flint"});

constexpr auto kFlintTensors =
    join_tensors(kLlamaOuterTensors,
                 kLlamaNormTensors,
                 kLlamaAttentionTensors,
                 kLlamaQkvBiasTensors,
                 kLlamaOBiasTensors,
                 kQkNormTensors,
                 std::to_array<TensorSpec>({
                     {Role::kSinks, "model.layers.{layer}.self_attn.softmax_offset", Dim::kOne,
                      Dim::kHeads, Split::kRows},
                 }),
                 kLlamaMlpTensors,
                 kExpertTensors,
                 kQwenSharedExpertTensors);

}  // namespace

extern const Architecture kFlint;
constexpr Architecture kFlint = {
    .names = kFlintNames,
    .model_types = kFlintTypes,
    .prefix = "model.",
    .read_config = read_flint,
    .fields = kFlintFields,
    .tensors = kFlintTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
