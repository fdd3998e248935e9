// IQuest-Coder: Llama's block. Source: models/iquestcoder in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_iquest_coder(const JsonReader& config) {
  const bool divides = config.json().contains("head_dim") && !config.has("head_dim");  // null
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 76800,
                                                   .default_hidden_size = 5120,
                                                   .default_num_layers = 80,
                                                   .default_num_heads = 40,
                                                   .default_num_kv_heads = 8,
                                                   .default_head_dim = divides ? 0 : 128,
                                                   .default_intermediate = 27648,
                                                   .default_max_positions = 131072,
                                                   .default_norm_eps = 1e-5});
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  read_rope(config, model);
  return model;
}

constexpr std::string_view kSeesAll = "every layer sees all tokens";

constexpr auto kIquestCoderFields =
    join_fields(kDecoderFields,
                std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read_or_null("mlp_bias"),
                    harmless_if("clip_qkv", "[]", "q, k and v are not held within limits"),
                    harmless_if("use_sliding_window", "[false]", kSeesAll),
                    harmless("sliding_window", "is read with use_sliding_window only"),
                    harmless("max_window_layers", "is read with use_sliding_window only"),
                }));

constexpr auto kIquestCoderNames = std::to_array<std::string_view>({"IQuestCoderForCausalLM"});
constexpr auto kIquestCoderTypes = std::to_array<std::string_view>({"iquestcoder"});

constexpr auto kIquestCoderTensors = join_tensors(kLlamaOuterTensors,
                                                  kLlamaNormTensors,
                                                  kLlamaAttentionTensors,
                                                  kLlamaQkvBiasTensors,
                                                  kLlamaOBiasTensors,
                                                  kLlamaMlpTensors,
                                                  kLlamaMlpBiasTensors);

}  // namespace

extern const Architecture kIquestCoder;
constexpr Architecture kIquestCoder = {
    .names = kIquestCoderNames,
    .model_types = kIquestCoderTypes,
    .computed_by = "LlamaForCausalLM",
    .prefix = "model.",
    .read_config = read_iquest_coder,
    .fields = kIquestCoderFields,
    .tensors = kIquestCoderTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
