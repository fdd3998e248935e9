// Llama 1 to 3 and the many models that took its block as it is.
// Source: models/llama in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_llama(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {});
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  read_rope(config, model);
  refuse_windows(config, model);
  return model;
}

constexpr auto kLlamaFields = join_fields(
    kDecoderFields,
    std::to_array<KnownField>({
        read_or_null("attention_bias"),
        read_or_null("mlp_bias"),
        read_or_null("layer_types"),
        read_or_null("sliding_window"),
        read_or_null("use_sliding_window"),
        harmless("max_window_layers", "says where windows begin, and there are none"),
        harmless_if("qkv_bias", "[false]", "attention_bias says which biases there are"),
        harmless_if("bias", "[false]", "attention_bias and mlp_bias say which biases there are"),
    }));

constexpr auto kLlamaTypes = std::to_array<std::string_view>({"llama"});

constexpr auto kLlamaNames =
    std::to_array<std::string_view>({"LlamaForCausalLM", "LLaMAForCausalLM"});

constexpr auto kLlamaTensors = join_tensors(kLlamaOuterTensors,
                                            kLlamaNormTensors,
                                            kLlamaAttentionTensors,
                                            kLlamaQkvBiasTensors,
                                            kLlamaOBiasTensors,
                                            kLlamaMlpTensors,
                                            kLlamaMlpBiasTensors);

}  // namespace

extern const Architecture kLlama;
constexpr Architecture kLlama = {
    .names = kLlamaNames,
    .model_types = kLlamaTypes,
    .prefix = "model.",
    .read_config = read_llama,
    .fields = kLlamaFields,
    .tensors = kLlamaTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
