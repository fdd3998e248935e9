// ChatGLM 2 and 3, and GLM-4-9B as it was published: GLM's block under names of its own.
// Source: modeling_chatglm.py of the published models.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr double kChatGlmTheta = 10000.0;

ModelConfig read_chatglm(const JsonReader& given) {
  Json json = given.json();
  if (!given.boolean_or("multi_query_attention", false)) json.erase("multi_query_group_num");
  json["rope_theta"] = kChatGlmTheta * read_positive(given, "rope_ratio", 1.0);
  const JsonReader config(json, "");
  ModelConfig model = read_decoder_config(config, {.num_layers = "num_layers",
                                                   .num_kv_heads = "multi_query_group_num",
                                                   .head_dim = "kv_channels",
                                                   .intermediate_size = "ffn_hidden_size",
                                                   .max_positions = "seq_length",
                                                   .norm_eps = "layernorm_epsilon",
                                                   .activation = "",
                                                   .default_vocab_size = 65024,
                                                   .default_num_layers = 28,
                                                   .default_head_dim = 128,
                                                   .default_intermediate = 13696,
                                                   .default_norm_eps = 1e-5,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias =
      config.boolean_or("add_qkv_bias", config.boolean_or("add_bias_linear", false));
  read_rope(config, model, {.interleaved = true, .takes_partial = true, .default_partial = 0.5});
  return model;
}

constexpr auto kChatGlmFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("hidden_size"),
    read("ffn_hidden_size"),
    read("num_layers"),
    read("num_attention_heads"),
    read("multi_query_attention"),
    read("multi_query_group_num"),
    read("kv_channels"),
    read("seq_length"),
    read("layernorm_epsilon"),
    read("add_qkv_bias"),
    read("rope_ratio"),
    read_or_null("tie_word_embeddings"),
    harmless_if("add_bias_linear", "[false]", "linears but q, k and v have no biases"),
    harmless_if("rmsnorm", "[true]", "norms are RMSNorm"),
    harmless_if("post_layer_norm", "[true]", "there is a norm behind the last layer"),
    harmless_if("apply_residual_connection_post_layernorm",
                "[false]",
                "the stream goes on from what a norm reads"),
    harmless_if("interleaved_qkv", "[false]", "rows of q, k and v are one behind the other"),
    harmless_if("original_rope", "[true]", "neighbours of half of a head are rotated"),
    harmless_if("quantization_bit", "[0]", "weights are numbers"),
    harmless_if("pre_seq_len", "[]", "there is no learned prefix"),
    harmless("prefix_projection", "is about a learned prefix"),
    harmless("apply_query_key_layer_scaling", "scores are multiplied by what they are divided by"),
    harmless("attention_softmax_in_fp32", "it is, whatever this says"),
    harmless("fp32_residual_connection", kSameSums),
    harmless("bias_dropout_fusion", kSameSums),
});

constexpr auto kChatGlmAliases = std::to_array<FieldAlias>({
    {"padded_vocab_size", "vocab_size"},
    {"num_hidden_layers", "num_layers"},
    {"max_position_embeddings", "seq_length"},
});

constexpr auto kChatGlmNames = std::to_array<std::string_view>(
    {"ChatGLMModel", "ChatGLMForConditionalGeneration", "ChatGLMForCausalLM"});
constexpr auto kChatGlmTypes = std::to_array<std::string_view>({"chatglm"});

constexpr auto kChatGlmTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "transformer.embedding.word_embeddings.weight", Dim::kVocab,
     Dim::kHidden},
    {Role::kFinalNorm, "transformer.encoder.final_layernorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kLmHead, "transformer.output_layer.weight", Dim::kVocab, Dim::kHidden, Split::kNone,
     has_own_head},
    {Role::kAttentionNorm, "transformer.encoder.layers.{layer}.input_layernorm.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kMlpNorm, "transformer.encoder.layers.{layer}.post_attention_layernorm.weight",
     Dim::kOne, Dim::kHidden},
    {Role::kQkv, "transformer.encoder.layers.{layer}.self_attention.query_key_value.weight",
     Dim::kQkv, Dim::kHidden, Split::kRows},
    {Role::kQkvBias, "transformer.encoder.layers.{layer}.self_attention.query_key_value.bias",
     Dim::kOne, Dim::kQkv, Split::kRows, has_attention_bias},
    {Role::kO, "transformer.encoder.layers.{layer}.self_attention.dense.weight", Dim::kHidden,
     Dim::kQ, Split::kColumns},
    {Role::kGateUp, "transformer.encoder.layers.{layer}.mlp.dense_h_to_4h.weight", Dim::kGateUp,
     Dim::kHidden, Split::kRows},
    {Role::kDown, "transformer.encoder.layers.{layer}.mlp.dense_4h_to_h.weight", Dim::kHidden,
     Dim::kIntermediate, Split::kColumns},
});

// Where another turn begins. The second version has no such tokens.
constexpr auto kChatGlmEnds = std::to_array<std::string_view>({"<|user|>", "<|observation|>"});

constexpr auto kChatGlmIgnored = std::to_array<std::string_view>({"rotary_pos_emb.inv_freq"});

}  // namespace

extern const Architecture kChatGlm;
constexpr Architecture kChatGlm = {
    .names = kChatGlmNames,
    .model_types = kChatGlmTypes,
    .prefix = "transformer.",
    .read_config = read_chatglm,
    .fields = kChatGlmFields,
    .aliases = kChatGlmAliases,
    .tensors = kChatGlmTensors,
    .ignored = kChatGlmIgnored,
    .end_tokens = kChatGlmEnds,
};

}  // namespace tgi
