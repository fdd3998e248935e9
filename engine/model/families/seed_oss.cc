// Seed-OSS: Llama's block with biases of q, k and v, and maybe of o.
// Source: models/seed_oss in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kSeedOssDecoder = {
    .default_vocab_size = 155136,
    .default_num_layers = 64,
    .default_num_heads = 80,
    .default_num_kv_heads = 8,
    .default_head_dim = 128,
    .default_intermediate = 27648,
    .default_max_positions = 524288,
    .default_bos = 0,
};

ModelConfig read_seed_oss(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kSeedOssDecoder);
  model.attention_bias = config.boolean_or("attention_bias", true);
  model.attention_output_bias = config.boolean_or("attention_out_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  read_rope(config, model);
  refuse_windows(config, model);
  return model;
}

constexpr auto kSeedOssFields = join_fields(kDecoderFields,
                                            std::to_array<KnownField>({
                                                read_or_null("attention_bias"),
                                                read_or_null("attention_out_bias"),
                                                read_or_null("mlp_bias"),
                                                read_or_null("layer_types"),
                                                read_or_null("sliding_window"),
                                                read_or_null("use_sliding_window"),
                                            }));

constexpr auto kSeedOssNames = std::to_array<std::string_view>({"SeedOssForCausalLM"});
constexpr auto kSeedOssTypes = std::to_array<std::string_view>({"seed_oss"});

constexpr auto kSeedOssTensors =
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

extern const Architecture kSeedOss;
constexpr Architecture kSeedOss = {
    .names = kSeedOssNames,
    .model_types = kSeedOssTypes,
    .prefix = "model.",
    .read_config = read_seed_oss,
    .fields = kSeedOssFields,
    .tensors = kSeedOssTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
