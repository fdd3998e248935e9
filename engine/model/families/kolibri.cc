// Kolibri: Qwen 3's attention, rotated only where there is a window, norms before and after the
// branches, and experts everywhere beside one that all tokens go to: chosen by the logit and a
// bias, weighed by the logit's sigmoid.
// Source: models/kolibri1 in `transformers`.
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

constexpr DecoderFields kKolibriDecoder = {
    .default_vocab_size = 128000,
    .default_hidden_size = 2560,
    .default_num_layers = 50,
    .default_num_heads = 48,
    .default_num_kv_heads = 4,
    .default_head_dim = 128,
    .default_intermediate = -1,
    .default_max_positions = 262144,
    .default_bos = -1,
    .default_eos = -1,
};

ModelConfig read_kolibri(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kKolibriDecoder);
  read_windows(config, {.default_window = 513, .default_pattern = 5, .null_is_no_window = false},
               model);
  read_rope(config, model);
  const bool has_no_window =
      config.json().contains("sliding_window") && !config.has("sliding_window");
  for (LayerPlan& layer : model.layers) {
    if (!has_no_window && layer.sliding_window == 0) layer.rope = kNoRope;
  }
  read_experts(config,
               {.intermediate_size = "moe_intermediate_size",
                .shared_intermediate_size = "shared_expert_intermediate_size",
                .normalises_name = "norm_topk_prob",
                .default_num_experts = 384,
                .default_top_k = 6,
                .default_intermediate = 512,
                .default_shared_intermediate = 512,
                .score = RouterScore::kSigmoidOfChosen},
               model);
  model.experts.has_choice_bias = true;
  use_experts_in_all_layers(model);
  return model;
}

constexpr auto kKolibriFields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("sliding_window"),
                    read_or_null("layer_types"),
                    read("moe_intermediate_size"),
                    read("shared_expert_intermediate_size"),
                    harmless("intermediate_size", "all layers have experts"),
                    harmless_if("attention_bias", "[false]", "there are no biases"),
                    harmless_if("mlp_bias", "[false]", "there are no biases"),
                }),
                kDecoderFields,
                kExpertFields);

constexpr auto kKolibriNames = std::to_array<std::string_view>({"Kolibri1ForCausalLM"});
constexpr auto kKolibriTypes = std::to_array<std::string_view>({"kolibri1"});

constexpr auto kKolibriBlockTensors = join_tensors(
    kLlamaOuterTensors,
    kLlamaNormTensors,
    std::to_array<TensorSpec>({
        {Role::kAttentionPostNorm, "model.layers.{layer}.post_attn_norm.weight", Dim::kOne,
         Dim::kHidden},
        {Role::kMlpPostNorm, "model.layers.{layer}.post_ffn_norm.weight", Dim::kOne, Dim::kHidden},
        {Role::kChoiceBias, "model.layers.{layer}.moe.router.expert_bias", Dim::kOne,
         Dim::kExperts},
    }),
    kLlamaAttentionTensors,
    kQkNormTensors,
    kSharedExpertsTensors);
constexpr auto kKolibriTensors = join_tensors(kKolibriBlockTensors, kStackedExpertTensors);
constexpr auto kKolibriSeparateTensors = join_tensors(kKolibriBlockTensors, kExpertTensors);

}  // namespace

extern const Architecture kKolibri;
constexpr Architecture kKolibri = {
    .names = kKolibriNames,
    .model_types = kKolibriTypes,
    .prefix = "model.",
    .read_config = read_kolibri,
    .fields = kKolibriFields,
    .aliases = kExpertAliases,
    .tensors = kKolibriTensors,
    .tensors_of_separate_experts = kKolibriSeparateTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
