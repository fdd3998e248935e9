// InternLM 3: Llama's block, with biases by two switches.
// Source: models/internlm3 in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kInternlm3Decoder = {
    .default_vocab_size = 128512,
    .default_num_layers = 48,
    .default_num_kv_heads = 2,
    .default_head_dim = 128,
    .default_intermediate = 10240,
    .default_max_positions = 32768,
    .default_norm_eps = 1e-5,
};

ModelConfig read_internlm3(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kInternlm3Decoder);
  model.attention_bias = config.boolean_or("qkv_bias", false);
  model.mlp_bias = config.boolean_or("bias", false);
  model.attention_output_bias = model.mlp_bias;
  read_rope(config, model);
  refuse_windows(config, model);
  return model;
}

constexpr auto kInternlm3Fields = join_fields(kDecoderFields,
                                              std::to_array<KnownField>({
                                                  read("qkv_bias"),
                                                  read("bias"),
                                                  read_or_null("layer_types"),
                                                  read_or_null("sliding_window"),
                                                  read_or_null("use_sliding_window"),
                                              }));

// What the class of transformers calls them, and writes; it wants both to be equal.
constexpr auto kInternlm3Aliases = std::to_array<FieldAlias>({
    {"attention_bias", "qkv_bias"},
    {"mlp_bias", "bias"},
});

constexpr auto kInternlm3Names = std::to_array<std::string_view>({"InternLM3ForCausalLM"});
constexpr auto kInternlm3Types = std::to_array<std::string_view>({"internlm3"});

constexpr auto kInternlm3Tensors =
    join_tensors(kLlamaOuterTensors,
                 kLlamaNormTensors,
                 kLlamaAttentionTensors,
                 kLlamaQkvBiasTensors,
                 std::to_array<TensorSpec>({
                     {Role::kOBias, "model.layers.{layer}.self_attn.o_proj.bias", Dim::kOne,
                      Dim::kHidden, Split::kColumns, has_attention_output_bias},
                 }),
                 kLlamaMlpTensors,
                 kLlamaMlpBiasTensors);

}  // namespace

extern const Architecture kInternlm3;
constexpr Architecture kInternlm3 = {
    .names = kInternlm3Names,
    .model_types = kInternlm3Types,
    .prefix = "model.",
    .read_config = read_internlm3,
    .fields = kInternlm3Fields,
    .aliases = kInternlm3Aliases,
    .tensors = kInternlm3Tensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
