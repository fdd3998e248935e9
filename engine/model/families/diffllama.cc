// DiffLlama: Llama's block with differential attention: heads are in pairs that share their values,
// and what the second one gives is taken from what the first one does, times a learned number.
// Source: models/diffllama in `transformers`.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

// Source: https://arxiv.org/abs/2410.05258, section 3.1
float first_difference(int32_t layer) {
  return static_cast<float>(0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(layer)));
}

ModelConfig read_diffllama(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_hidden_size = 2048,
                                                   .default_num_layers = 16,
                                                   .default_intermediate = 8192,
                                                   .default_norm_eps = 1e-5});
  if (model.num_kv_heads % 2 != 0) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: {} KV heads are not in pairs, expected an even number",
                            config.path_of("num_key_value_heads"), model.num_kv_heads));
  }
  model.attention_bias = config.boolean_or("attention_bias", false);
  read_rope(config, model);
  model.value_dim = 2 * model.head_dim;
  for (int32_t i = 0; i < model.num_layers; ++i) {
    model.layers[static_cast<size_t>(i)].first_difference = first_difference(i);
  }
  return model;
}

constexpr auto kDiffLlamaFields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    harmless("lambda_std_dev", "is about the numbers that training starts with"),
                }),
                kDecoderFields);

constexpr auto kDiffLlamaNames = std::to_array<std::string_view>({"DiffLlamaForCausalLM"});
constexpr auto kDiffLlamaTypes = std::to_array<std::string_view>({"diffllama"});

constexpr auto kDiffLlamaOwnTensors = std::to_array<TensorSpec>({
    {Role::kQ, "model.layers.{layer}.self_attn.q_proj.weight", Dim::kQ, Dim::kHidden, Split::kRows},
    {Role::kK, "model.layers.{layer}.self_attn.k_proj.weight", Dim::kKv, Dim::kHidden,
     Split::kRows},
    {Role::kV, "model.layers.{layer}.self_attn.v_proj.weight", Dim::kPairedValues, Dim::kHidden,
     Split::kRows},
    {Role::kQBias, "model.layers.{layer}.self_attn.q_proj.bias", Dim::kOne, Dim::kQ, Split::kRows,
     has_attention_bias},
    {Role::kKBias, "model.layers.{layer}.self_attn.k_proj.bias", Dim::kOne, Dim::kKv, Split::kRows,
     has_attention_bias},
    {Role::kVBias, "model.layers.{layer}.self_attn.v_proj.bias", Dim::kOne, Dim::kPairedValues,
     Split::kRows, has_attention_bias},
    {Role::kDifferenceQ1, "model.layers.{layer}.self_attn.lambda_q1", Dim::kOne, Dim::kHeadDim},
    {Role::kDifferenceK1, "model.layers.{layer}.self_attn.lambda_k1", Dim::kOne, Dim::kHeadDim},
    {Role::kDifferenceQ2, "model.layers.{layer}.self_attn.lambda_q2", Dim::kOne, Dim::kHeadDim},
    {Role::kDifferenceK2, "model.layers.{layer}.self_attn.lambda_k2", Dim::kOne, Dim::kHeadDim},
});

constexpr auto kDiffLlamaTensors = join_tensors(kLlamaOuterTensors,
                                                kLlamaNormTensors,
                                                kDiffLlamaOwnTensors,
                                                kLlamaOTensors,
                                                kLlamaOBiasTensors,
                                                kLlamaMlpTensors);

}  // namespace

extern const Architecture kDiffLlama;
constexpr Architecture kDiffLlama = {
    .names = kDiffLlamaNames,
    .model_types = kDiffLlamaTypes,
    .prefix = "model.",
    .read_config = read_diffllama,
    .fields = kDiffLlamaFields,
    .tensors = kDiffLlamaTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
