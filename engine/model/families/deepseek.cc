// The first DeepSeek MoE (and ESFT): Llama's attention, and experts chosen by a softmax beside
// shared ones, which are the MLP of every moe_layer_freq-th layer from first_k_dense_replace on;
// without n_routed_experts all layers have Llama's MLP. Source: https://arxiv.org/abs/2401.06066
// and models/deepseek_ocr2 in `transformers`, whose text model is one of these.
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

ModelConfig read_deepseek(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.head_dim = "",
                                                   .default_vocab_size = 102400,
                                                   .default_num_layers = 30,
                                                   .default_bos = 100000,
                                                   .default_eos = 100001});
  model.attention_bias = config.boolean_or("attention_bias", false);
  read_rope(config, model);
  if (!config.has("n_routed_experts")) return model;
  read_experts(config,
               {.num_experts = "n_routed_experts",
                .intermediate_size = "moe_intermediate_size",
                .normalises_name = "norm_topk_prob",
                .default_top_k = 6,
                .default_intermediate = 1407},
               model);
  if (model.experts.route.top_k == 1) model.experts.route.normalises = false;
  read_shared_experts(config, 0, model);
  read_first_sparse_layer(config, 0, model, read_size(config, "moe_layer_freq", 1, kMaxLayers));
  return model;
}

constexpr auto kDeepseekFields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read_or_null("n_routed_experts"),
                    read_or_null("n_shared_experts"),
                    read_or_null("num_experts_per_tok"),
                    read("moe_intermediate_size"),
                    read("norm_topk_prob"),
                    read("first_k_dense_replace"),
                    read("moe_layer_freq"),
                    harmless("head_dim", "it is hidden_size / num_attention_heads, always"),
                    harmless_if("scoring_func", R"(["softmax"])", "scores are those of a softmax"),
                    harmless("aux_loss_alpha", kTrainsRouter),
                    harmless("seq_aux", kTrainsRouter),
                    harmless("ep_size", "says how training dealt out the experts"),
                }),
                kDecoderFields);

constexpr auto kDeepseekNames = std::to_array<std::string_view>({"DeepseekForCausalLM"});
constexpr auto kDeepseekTypes = std::to_array<std::string_view>({"deepseek"});

constexpr auto kDeepseekTensors = join_tensors(kLlamaOuterTensors,
                                               kLlamaNormTensors,
                                               kLlamaAttentionTensors,
                                               kLlamaQkvBiasTensors,
                                               kLlamaOBiasTensors,
                                               kLlamaMlpTensors,
                                               kExpertTensors,
                                               kDeepSeekExpertTensors);

}  // namespace

extern const Architecture kDeepSeek;
constexpr Architecture kDeepSeek = {
    .names = kDeepseekNames,
    .model_types = kDeepseekTypes,
    .prefix = "model.",
    .read_config = read_deepseek,
    .fields = kDeepseekFields,
    .tensors = kDeepseekTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
