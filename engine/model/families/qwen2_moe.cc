// Qwen 1.5 and 2 with experts: Qwen 2's attention, in all or some layers experts beside one that
// all tokens go to. Source: models/qwen2_moe in `transformers`.
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

// With windows and without layer_types they alternate.
void read_alternating_windows(const JsonReader& config, ModelConfig& model) {
  if (!config.boolean_or("use_sliding_window", false)) return;
  if (config.has("layer_types")) return read_windows(config, {.default_window = 4096}, model);
  const int32_t window = read_size(config, "sliding_window", 4096, kMaxPositions);
  const int64_t end = config.integer_or("max_window_layers", 28);
  for (int32_t i = 0; i < model.num_layers && i < end; i += 2) {
    model.layers[static_cast<size_t>(i)].sliding_window = window;
  }
}

ModelConfig read_qwen2_moe(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 151936,
                                                   .default_hidden_size = 2048,
                                                   .default_num_layers = 24,
                                                   .default_num_heads = 16,
                                                   .default_num_kv_heads = 16,
                                                   .default_intermediate = 5632,
                                                   .default_max_positions = 32768,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = config.boolean_or("qkv_bias", true);
  read_alternating_windows(config, model);
  read_rope(config, model);
  read_experts(config,
               {.intermediate_size = "moe_intermediate_size",
                .shared_intermediate_size = "shared_expert_intermediate_size",
                .normalises_name = "norm_topk_prob",
                .default_num_experts = 60,
                .default_top_k = 4,
                .default_intermediate = 1408,
                .default_shared_intermediate = 5632},
               model);
  model.experts.has_shared_gate = true;
  read_sparse_steps(config, model);
  return model;
}

constexpr auto kQwen2MoeFields = join_fields(
    kDecoderFields,
    kExpertFields,
    std::to_array<KnownField>({
        read("qkv_bias"),
        read_or_null("use_sliding_window"),
        read_or_null("sliding_window"),
        read_or_null("max_window_layers"),
        read_or_null("layer_types"),
        read("moe_intermediate_size"),
        read("shared_expert_intermediate_size"),
        read("decoder_sparse_step"),
        read_or_null("mlp_only_layers"),
        harmless_if("mlp_bias", "[false]", "there are no biases but those of q, k and v"),
    }));

constexpr auto kQwen2MoeNames = std::to_array<std::string_view>({"Qwen2MoeForCausalLM"});
constexpr auto kQwen2MoeTypes = std::to_array<std::string_view>({"qwen2_moe"});

constexpr auto kQwen2MoeTensors = join_tensors(kLlamaOuterTensors,
                                               kLlamaNormTensors,
                                               kLlamaAttentionTensors,
                                               kLlamaQkvBiasTensors,
                                               kLlamaMlpTensors,
                                               kExpertTensors,
                                               kQwenSharedExpertTensors);

}  // namespace

extern const Architecture kQwen2Moe;
constexpr Architecture kQwen2Moe = {
    .names = kQwen2MoeNames,
    .model_types = kQwen2MoeTypes,
    .prefix = "model.",
    .read_config = read_qwen2_moe,
    .fields = kQwen2MoeFields,
    .tensors = kQwen2MoeTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
