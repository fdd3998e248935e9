// StarCoder 2: Llama's attention with biases and a sliding window, LayerNorm, an MLP without a
// gate. Source: models/starcoder2 in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_starcoder2(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.norm_eps = "norm_epsilon",
                                                   .default_vocab_size = 49152,
                                                   .default_hidden_size = 3072,
                                                   .default_num_layers = 30,
                                                   .default_num_heads = 24,
                                                   .default_num_kv_heads = 2,
                                                   .default_intermediate = 12288,
                                                   .default_max_positions = 4096,
                                                   .default_norm_eps = 1e-5,
                                                   .default_activation = "gelu_pytorch_tanh",
                                                   .default_tied = true,
                                                   .default_bos = 50256,
                                                   .default_eos = 50256});
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  model.attention_bias = config.boolean_or("use_bias", true);
  model.mlp_bias = model.attention_bias;
  read_windows(config, {.default_window = 0, .in_all_layers = true}, model);
  read_rope(config, model);
  return model;
}

constexpr auto kStarcoder2Fields =
    join_fields(std::to_array<KnownField>({
                    harmless_if("rms_norm_eps", "[]", "the norms are not of that kind"),
                    read("norm_epsilon"),
                    read("use_bias"),
                    read_or_null("sliding_window"),
                    read_or_null("layer_types"),
                    harmless_if("norm_type", R"(["layer_norm"])", "norms are LayerNorms"),
                    harmless_if("mlp_type", R"(["default"])", "the MLP has no gate"),
                }),
                kDecoderFields);

constexpr auto kStarcoder2Names = std::to_array<std::string_view>({"Starcoder2ForCausalLM"});
constexpr auto kStarcoder2Types = std::to_array<std::string_view>({"starcoder2"});

constexpr auto kStarcoder2Tensors =
    join_tensors(kLlamaOuterTensors,
                 kFinalNormBiasTensors,
                 kLlamaNormTensors,
                 kAttentionNormBiasTensors,
                 kMlpNormBiasTensors,
                 kLlamaAttentionTensors,
                 kLlamaQkvBiasTensors,
                 kLlamaOBiasTensors,
                 std::to_array<TensorSpec>({
                     {Role::kUp, "model.layers.{layer}.mlp.c_fc.weight", Dim::kIntermediate,
                      Dim::kHidden, Split::kRows},
                     {Role::kUpBias, "model.layers.{layer}.mlp.c_fc.bias", Dim::kOne,
                      Dim::kIntermediate, Split::kRows, has_mlp_bias},
                     {Role::kDown, "model.layers.{layer}.mlp.c_proj.weight", Dim::kHidden,
                      Dim::kIntermediate, Split::kColumns},
                     {Role::kDownBias, "model.layers.{layer}.mlp.c_proj.bias", Dim::kOne,
                      Dim::kHidden, Split::kColumns, has_mlp_bias},
                 }));

}  // namespace

extern const Architecture kStarcoder2;
constexpr Architecture kStarcoder2 = {
    .names = kStarcoder2Names,
    .model_types = kStarcoder2Types,
    .prefix = "model.",
    .read_config = read_starcoder2,
    .fields = kStarcoder2Fields,
    .tensors = kStarcoder2Tensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
