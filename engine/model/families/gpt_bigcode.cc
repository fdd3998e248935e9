// GPT-BigCode (SantaCoder, StarCoder 1): GPT-2 with matrices as Linear stores them, and one key and
// value for all heads, or q, k and v head by head.
// Source: models/gpt_bigcode in `transformers`.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/gpt2_names.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

constexpr std::string_view kGptBigcodeRunner = "is about how other software runs the model";

constexpr auto kGptBigcodeFields = join_fields(
    kGpt2Fields,
    std::to_array<KnownField>({
        read("scale_attn_weights"),
        read("multi_query"),
        read_or_null("num_key_value_heads"),
        harmless("attention_softmax_in_fp32", "the softmax is always computed in float32"),
        harmless("scale_attention_softmax_in_fp32", "scales and unscales the same scores"),
        harmless("inference_runner", kGptBigcodeRunner),
        harmless("pad_key_length", kGptBigcodeRunner),
        harmless("pre_allocate_kv_cache", kGptBigcodeRunner),
        harmless("validate_runner_input", kGptBigcodeRunner),
        harmless("max_batch_size", kGptBigcodeRunner),
    }));

ModelConfig read_gpt_bigcode(const JsonReader& config) {
  DecoderFields fields = kGpt2Decoder;
  fields.default_activation = "gelu_pytorch_tanh";
  ModelConfig model = read_decoder_config(config, fields);
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  model.learned_positions = true;
  if (!config.boolean_or("scale_attn_weights", true)) model.attention_scale = 1.0F;
  if (config.boolean_or("multi_query", true)) model.num_kv_heads = 1;
  const int64_t num_kv_heads = config.integer_or("num_key_value_heads", model.num_kv_heads);
  if (num_kv_heads != model.num_kv_heads) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("{}: {} contradicts multi_query, which makes it {}",
                    config.path_of("num_key_value_heads"), num_kv_heads, model.num_kv_heads));
  }
  return model;
}

constexpr auto kGptBigcodeNames = std::to_array<std::string_view>({"GPTBigCodeForCausalLM"});
constexpr auto kGptBigcodeTypes = std::to_array<std::string_view>({"gpt_bigcode"});

constexpr auto kGptBigcodeTensors =
    join_tensors(kGpt2OuterTensors,
                 kGpt2InnerTensors,
                 std::to_array<TensorSpec>({
                     {Role::kQkv, "transformer.h.{layer}.attn.c_attn.weight", Dim::kQkvByKvHead,
                      Dim::kHidden, Split::kRows},
                     {Role::kQkvBias, "transformer.h.{layer}.attn.c_attn.bias", Dim::kOne,
                      Dim::kQkvByKvHead, Split::kRows},
                     {Role::kO, "transformer.h.{layer}.attn.c_proj.weight", Dim::kHidden, Dim::kQ,
                      Split::kColumns},
                     {Role::kUp, "transformer.h.{layer}.mlp.c_fc.weight", Dim::kIntermediate,
                      Dim::kHidden, Split::kRows},
                     {Role::kDown, "transformer.h.{layer}.mlp.c_proj.weight", Dim::kHidden,
                      Dim::kIntermediate, Split::kColumns},
                 }));

}  // namespace

extern const Architecture kGptBigcode;
constexpr Architecture kGptBigcode = {
    .names = kGptBigcodeNames,
    .model_types = kGptBigcodeTypes,
    .prefix = "transformer.",
    .read_config = read_gpt_bigcode,
    .fields = kGptBigcodeFields,
    .aliases = kGpt2Aliases,
    .tensors = kGptBigcodeTensors,
    .ignored = kGpt2Ignored,
};

}  // namespace tgi
