// BitNet b1.58: Llama's block with a norm before the last matrix of each branch too. That its
// weights are -1, 0 and 1 is up to the checkpoint (engine/weights/formats/bitnet.cc).
// Source: models/bitnet in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kBitnetDecoder = {
    .default_vocab_size = 128256,
    .default_hidden_size = 2560,
    .default_num_layers = 30,
    .default_num_heads = 20,
    .default_num_kv_heads = 5,
    .default_intermediate = 6912,
    .default_norm_eps = 1e-5,
    .default_activation = "relu2",
    .default_bos = 128000,
    .default_eos = 128001,
};

ModelConfig read_bitnet(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kBitnetDecoder);
  model.has_inner_norms = true;
  model.attention_bias = config.boolean_or("attention_bias", false);
  read_rope(config, model, {.default_theta = 500000.0});
  return model;
}

constexpr auto kBitnetFields = join_fields(kDecoderFields,
                                           std::to_array<KnownField>({
                                               read_or_null("attention_bias"),
                                           }));

constexpr auto kBitnetNames = std::to_array<std::string_view>({"BitNetForCausalLM"});
constexpr auto kBitnetTypes = std::to_array<std::string_view>({"bitnet"});

constexpr auto kBitnetInnerNorms = std::to_array<TensorSpec>({
    {Role::kAttentionInnerNorm, "model.layers.{layer}.self_attn.attn_sub_norm.weight", Dim::kOne,
     Dim::kQ},
    {Role::kMlpInnerNorm, "model.layers.{layer}.mlp.ffn_sub_norm.weight", Dim::kOne,
     Dim::kIntermediate},
});

constexpr auto kBitnetTensors = join_tensors(kLlamaOuterTensors,
                                             kLlamaNormTensors,
                                             kLlamaAttentionTensors,
                                             kLlamaQkvBiasTensors,
                                             kLlamaOBiasTensors,
                                             kLlamaMlpTensors,
                                             kBitnetInnerNorms);

}  // namespace

extern const Architecture kBitnet;
constexpr Architecture kBitnet = {
    .names = kBitnetNames,
    .model_types = kBitnetTypes,
    .prefix = "model.",
    .read_config = read_bitnet,
    .fields = kBitnetFields,
    .tensors = kBitnetTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
