// Hunyuan, dense: Llama's block with heads of q and k normed after they are rotated, and a base of
// the rotation that is stretched once.
// Source: models/hunyuan_v1_dense in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kDecoder = {
    .default_vocab_size = 290943,
    .default_num_kv_heads = 32,
    .default_norm_eps = 1e-5,
};

constexpr auto kRopeFields = std::to_array<KnownField>({read_or_null("alpha")});

ModelConfig read_config(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kDecoder);
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.qk_norm_after_rope = true;
  read_rope(config, model, {.fields = kRopeFields});
  refuse_windows(config, model);
  return model;
}

constexpr std::string_view kOneBlock = "there is one kind of block";
constexpr std::string_view kTextOnly = "is about other models of the maker";

constexpr auto kFields = join_fields(
    kDecoderFields,
    std::to_array<KnownField>({
        read_or_null("attention_bias"),
        read_or_null("layer_types"),
        read_or_null("sliding_window"),
        read_or_null("use_sliding_window"),
        harmless("eod_token_id", "eos_token_id says when to stop"),
        harmless("attention_head_dim", "head_dim says it"),
        harmless("org_vocab_size", kTextOnly),
        harmless("num_media_embeds", kTextOnly),
        harmless("vit_*", kTextOnly),
        harmless("anyres_*", kTextOnly),
        harmless_if("position_embedding_xdrope", "[false]", kOneBlock),
        harmless("pad_id", "sequences are never padded"),
        harmless("im_start_id", kTextOnly),
        harmless("im_end_id", kTextOnly),
        harmless("im_newline_id", kTextOnly),
        harmless("image_token_id", kTextOnly),
        harmless("video_start_id", kTextOnly),
        harmless("video_end_id", kTextOnly),
        harmless("text_start_id", kTextOnly),
        harmless("text_end_id", kTextOnly),
        harmless("mask_init_id", kTextOnly),
        harmless("sep_id", kTextOnly),
        harmless("eod_id", kTextOnly),
        harmless("dense_list", "belongs to a classifier's head, which is not used here"),
        harmless("pool_type", "belongs to a classifier's head, which is not used here"),
        harmless_if("add_classification_head", "[false]", "there is no classifier's head"),
        harmless("class_num", "belongs to a classifier's head, which is not used here"),
        harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
        harmless_if("use_qk_norm", "[true]", kOneBlock),
        harmless_if("qk_norm", "[true]", kOneBlock),
        harmless_if("norm_type", R"(["rms"])", kOneBlock),
        harmless_if("use_rotary_pos_emb", "[true]", kOneBlock),
        harmless_if("use_cla", "[false]", kOneBlock),
        harmless("cla_share_factor", "is read with use_cla only"),
        harmless_if("use_mla", "[false]", kOneBlock),
    }));

constexpr auto kNames = std::to_array<std::string_view>({"HunYuanDenseV1ForCausalLM"});
constexpr auto kModelTypes = std::to_array<std::string_view>({"hunyuan_v1_dense"});

constexpr auto kTensors =
    join_tensors(kLlamaOuterTensors,
                 kLlamaNormTensors,
                 kLlamaAttentionTensors,
                 kLlamaQkvBiasTensors,
                 kLlamaOBiasTensors,
                 std::to_array<TensorSpec>({
                     {Role::kQNorm, "model.layers.{layer}.self_attn.query_layernorm.weight",
                      Dim::kOne, Dim::kHeadDim},
                     {Role::kKNorm, "model.layers.{layer}.self_attn.key_layernorm.weight",
                      Dim::kOne, Dim::kHeadDim},
                 }),
                 kLlamaMlpTensors);

}  // namespace

extern const Architecture kHunyuanDense;
constexpr Architecture kHunyuanDense = {
    .names = kNames,
    .model_types = kModelTypes,
    .prefix = "model.",
    .read_config = read_config,
    .fields = kFields,
    .tensors = kTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
