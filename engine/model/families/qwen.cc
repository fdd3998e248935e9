// Qwen 1: Llama's block with q, k and v in one matrix, which alone has biases, under GPT-2's names.
// Behind the length that it was trained with it turns positions more slowly and scales queries; its
// contexts end there.
// Source: modeling_qwen.py of the published models.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr std::string_view kQwenPositions = "max_position_embeddings";

// What holds for texts of any length.
int64_t qwen_positions(const JsonReader& config) {
  const int64_t positions = config.integer_or(kQwenPositions, 8192);
  const bool changes_behind =
      config.boolean_or("use_dynamic_ntk", false) || config.boolean_or("use_logn_attn", false);
  return changes_behind ? std::min(positions, config.integer_or("seq_length", positions))
                        : positions;
}

ModelConfig read_qwen(const JsonReader& given) {
  Json json = given.json();
  json[std::string(kQwenPositions)] = qwen_positions(given);
  // Of gate and up together.
  const int64_t both = given.integer_or("intermediate_size", 22016);
  if (both % 2 != 0) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: gate and up together, expected an even number, got {}",
                            given.path_of("intermediate_size"), both));
  }
  json["intermediate_size"] = both / 2;
  const JsonReader config(json, "");
  ModelConfig model = read_decoder_config(config, {.num_kv_heads = "",
                                                   .head_dim = "kv_channels",
                                                   .norm_eps = "layer_norm_epsilon",
                                                   .activation = "",
                                                   .default_vocab_size = 151936,
                                                   .default_head_dim = 128,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = true;  // of q, k and v
  read_rope(config, model);
  return model;
}

constexpr auto kQwenFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("hidden_size"),
    read("intermediate_size"),
    read("num_hidden_layers"),
    read("num_attention_heads"),
    read("kv_channels"),
    read("layer_norm_epsilon"),
    read("max_position_embeddings"),
    read("seq_length"),
    read("use_dynamic_ntk"),
    read("use_logn_attn"),
    read_or_null("tie_word_embeddings"),
    read("rope_theta"),
    harmless_if("rotary_pct", "[1.0, 1]", "all of a head is rotated"),
    harmless_if("no_bias", "[true]", "there are no biases but those of q, k and v"),
    harmless_if("scale_attn_weights", "[true]", "scores are scaled by the root of a head's size"),
    harmless_if("use_cache_quantization", "[false]", "is about the cache of the published code"),
    harmless("use_cache_kernel", "is about the published code"),
    harmless("use_flash_attn", kSameSums),
    harmless("softmax_in_fp32", "it is, whatever this says"),
    harmless("onnx_safe", "is about the published code"),
    harmless("bf16", kSameSums),
    harmless("fp16", kSameSums),
    harmless("fp32", kSameSums),
    harmless("emb_dropout_prob", kOnlyTraining),
    harmless("attn_dropout_prob", kOnlyTraining),
});

constexpr auto kQwenAliases = std::to_array<FieldAlias>({
    {"n_embd", "hidden_size"},
    {"n_layer", "num_hidden_layers"},
    {"n_head", "num_attention_heads"},
    {"n_positions", "max_position_embeddings"},
    {"ffn_hidden_size", "intermediate_size"},
    {"rotary_emb_base", "rope_theta"},
});

constexpr auto kQwenNames = std::to_array<std::string_view>({"QWenLMHeadModel"});
constexpr auto kQwenTypes = std::to_array<std::string_view>({"qwen"});

constexpr auto kQwenTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "transformer.wte.weight", Dim::kVocab, Dim::kHidden},
    {Role::kFinalNorm, "transformer.ln_f.weight", Dim::kOne, Dim::kHidden},
    {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
    {Role::kAttentionNorm, "transformer.h.{layer}.ln_1.weight", Dim::kOne, Dim::kHidden},
    {Role::kMlpNorm, "transformer.h.{layer}.ln_2.weight", Dim::kOne, Dim::kHidden},
    {Role::kQkv, "transformer.h.{layer}.attn.c_attn.weight", Dim::kQkv, Dim::kHidden, Split::kRows},
    {Role::kQkvBias, "transformer.h.{layer}.attn.c_attn.bias", Dim::kOne, Dim::kQkv, Split::kRows},
    {Role::kO, "transformer.h.{layer}.attn.c_proj.weight", Dim::kHidden, Dim::kQ, Split::kColumns},
    {Role::kUp, "transformer.h.{layer}.mlp.w1.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kGate, "transformer.h.{layer}.mlp.w2.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kDown, "transformer.h.{layer}.mlp.c_proj.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns},
});

}  // namespace

extern const Architecture kQwen;
constexpr Architecture kQwen = {
    .names = kQwenNames,
    .model_types = kQwenTypes,
    .prefix = "transformer.",
    .read_config = read_qwen,
    .fields = kQwenFields,
    .aliases = kQwenAliases,
    .tensors = kQwenTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
