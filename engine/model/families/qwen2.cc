// Qwen 1.5, 2 and 2.5, and MiMo: Llama's block with biases on q, k and v, and a sliding window in
// some layers if asked for.
// Source: models/qwen2 in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_qwen2(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 151936,
                                                   .default_num_kv_heads = 32,
                                                   .default_intermediate = 22016,
                                                   .default_max_positions = 32768,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = true;  // of q, k and v
  read_windows(config, {.by_switch = true}, model);
  read_rope(config, model);
  return model;
}

constexpr auto kQwen2Fields = join_fields(
    kDecoderFields,
    std::to_array<KnownField>({
        read_or_null("use_sliding_window"),
        read_or_null("sliding_window"),
        read_or_null("max_window_layers"),
        read_or_null("layer_types"),
        harmless_if("attention_bias", "[true]", "q, k and v have biases, o has none"),
        harmless_if("qkv_bias", "[true]", "q, k and v have biases, o has none"),
        harmless_if("mlp_bias", "[false]", "there are no biases but those of q, k and v"),
    }));

constexpr auto kQwen2Types = std::to_array<std::string_view>({"qwen2"});

constexpr auto kQwen2Names = std::to_array<std::string_view>({"Qwen2ForCausalLM"});

constexpr auto kQwen2Tensors = join_tensors(kLlamaOuterTensors,
                                            kLlamaNormTensors,
                                            kLlamaAttentionTensors,
                                            kLlamaQkvBiasTensors,
                                            kLlamaMlpTensors);

// MiMo: the same, and a layer that predicts a second token.
constexpr auto kMiMoFields = join_fields(
    kQwen2Fields, std::to_array<KnownField>({harmless("num_nextn_predict_layers", kOnlyDrafts)}));
constexpr auto kMiMoNames = std::to_array<std::string_view>({"MiMoForCausalLM"});
constexpr auto kMiMoTypes = std::to_array<std::string_view>({"mimo"});
constexpr auto kMiMoIgnored = std::to_array<std::string_view>({"mtp_layers.*"});

}  // namespace

extern const Architecture kMiMo;
constexpr Architecture kMiMo = {
    .names = kMiMoNames,
    .model_types = kMiMoTypes,
    .prefix = "model.",
    .read_config = read_qwen2,
    .fields = kMiMoFields,
    .tensors = kQwen2Tensors,
    .ignored = kMiMoIgnored,
};

extern const Architecture kQwen2;
constexpr Architecture kQwen2 = {
    .names = kQwen2Names,
    .model_types = kQwen2Types,
    .prefix = "model.",
    .read_config = read_qwen2,
    .fields = kQwen2Fields,
    .tensors = kQwen2Tensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
