// Qwen 3, dense: Llama's block with an RMS norm on each head of q and k, and a head_dim of its own.
// Source: models/qwen3 in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_qwen3(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 151936,
                                                   .default_num_kv_heads = 32,
                                                   .default_head_dim = 128,
                                                   .default_intermediate = 22016,
                                                   .default_max_positions = 32768,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = config.boolean_or("attention_bias", false);
  read_windows(config, {.by_switch = true}, model);
  read_rope(config, model);
  return model;
}

constexpr auto kQwen3Fields = join_fields(
    kDecoderFields,
    std::to_array<KnownField>({
        read_or_null("attention_bias"),
        read_or_null("use_sliding_window"),
        read_or_null("sliding_window"),
        read_or_null("max_window_layers"),
        read_or_null("layer_types"),
        harmless_if("qkv_bias", "[false]", "attention_bias says which biases there are"),
        harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
    }));

constexpr auto kQwen3Types = std::to_array<std::string_view>({"qwen3"});

constexpr auto kQwen3Names = std::to_array<std::string_view>({"Qwen3ForCausalLM"});

constexpr auto kQwen3Tensors = join_tensors(kLlamaOuterTensors,
                                            kLlamaNormTensors,
                                            kLlamaAttentionTensors,
                                            kLlamaQkvBiasTensors,
                                            kLlamaOBiasTensors,
                                            kQkNormTensors,
                                            kLlamaMlpTensors);

}  // namespace

extern const Architecture kQwen3;
constexpr Architecture kQwen3 = {
    .names = kQwen3Names,
    .model_types = kQwen3Types,
    .prefix = "model.",
    .read_config = read_qwen3,
    .fields = kQwen3Fields,
    .tensors = kQwen3Tensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
