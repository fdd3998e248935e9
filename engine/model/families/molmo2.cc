// Molmo 2: a multimodal checkpoint. Its text model is Qwen 3's block or OLMo 2's, as the config
// says: norms of heads or of rows of q and k, before the branches or after them, with a scaled
// rotation in the layers that are named. Source: models/molmo2 in `transformers`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

QkNorm read_molmo2_qk_norm(const JsonReader& config) {
  const std::string type = config.string_or("qk_norm_type", "qwen3");
  if (type == "qwen3") return QkNorm::kHead;
  if (type == "olmo") return QkNorm::kRow;
  throw Error(Code::kUnsupported, fmt::format("{}: '{}' is not supported; known are qwen3, olmo",
                                              config.path_of("qk_norm_type"), type));
}

// rope_scaling_layers: the numbers of those whose rotation is scaled; all, where there is no list.
void read_molmo2_ropes(const JsonReader& config, ModelConfig& model) {
  read_rope(config, model);
  if (!config.has("rope_scaling_layers")) return;
  std::vector<bool> is_scaled(model.layers.size());
  const Json& list = config.json().at("rope_scaling_layers");
  if (!list.is_array()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected a list of layers, got {}",
                            config.path_of("rope_scaling_layers"), list.dump()));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_number_integer() || list[i] < 0 || list[i] >= model.num_layers) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}[{}]: expected a layer from 0 to {}, got {}",
                              config.path_of("rope_scaling_layers"), i, model.num_layers - 1,
                              list[i].dump()));
    }
    is_scaled[list[i].get<size_t>()] = true;
  }
  if (std::ranges::find(is_scaled, false) == is_scaled.end()) return;
  const int32_t unscaled = add_rope(config, {.is_scaled = false}, model);
  for (size_t i = 0; i < is_scaled.size(); ++i) {
    if (!is_scaled[i]) model.layers[i].rope = unscaled;
  }
}

ModelConfig read_molmo2_text(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 151936,
                                                   .default_num_layers = 36,
                                                   .default_num_kv_heads = 8,
                                                   .default_head_dim = 128,
                                                   .default_intermediate = 12288,
                                                   .default_max_positions = 36864,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = config.boolean_or("attention_bias", false);  // of q, k and v
  model.has_post_norms = config.boolean_or("norm_after", false);
  model.qk_norm = read_molmo2_qk_norm(config);
  read_molmo2_ropes(config, model);
  return model;
}

constexpr auto kMolmo2TextFields =
    join_fields(kDecoderFields,
                std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read_or_null("qk_norm_type"),
                    read_or_null("norm_after"),
                    read_or_null("rope_scaling_layers"),
                    harmless("additional_vocab_size", "are tokens of images"),
                    harmless_if("use_qk_norm", "[true]", "qk_norm_type says which norm"),
                    harmless("embedding_dropout", kOnlyTraining),
                    harmless("residual_dropout", kOnlyTraining),
                }));

constexpr auto kMolmo2TextAliases = std::to_array<FieldAlias>({
    {"qkv_bias", "attention_bias"},
    {"layer_norm_eps", "rms_norm_eps"},
});

constexpr auto kMolmo2Fields = join_fields(std::to_array<KnownField>({
                                               kNeverTied,
                                               harmless("adapter_config", kImages),
                                               harmless("vit_config", kImages),
                                               harmless("image_start_token_id", kImages),
                                               harmless("low_res_image_start_token_id", kImages),
                                               harmless("image_end_token_id", kImages),
                                               harmless("image_low_res_id", kImages),
                                               harmless("image_patch_id", kImages),
                                               harmless("image_col_id", kImages),
                                               harmless("frame_start_token_id", kImages),
                                               harmless("frame_end_token_id", kImages),
                                               harmless("use_frame_special_tokens", kImages),
                                           }),
                                           kMultimodalFields);

constexpr auto kMolmo2TextNames = std::to_array<std::string_view>({"Molmo2TextModel"});
constexpr auto kMolmo2TextTypes = std::to_array<std::string_view>({"molmo2_text"});
constexpr auto kMolmo2Names = std::to_array<std::string_view>({"Molmo2ForConditionalGeneration"});
constexpr auto kMolmo2Types = std::to_array<std::string_view>({"molmo2"});

constexpr bool norms_before(const ModelConfig& config, int32_t /*layer*/) {
  return !config.has_post_norms;
}
constexpr bool norms_after(const ModelConfig& config, int32_t /*layer*/) {
  return config.has_post_norms;
}
constexpr bool norms_heads(const ModelConfig& config, int32_t /*layer*/) {
  return config.qk_norm == QkNorm::kHead;
}
constexpr bool norms_rows(const ModelConfig& config, int32_t /*layer*/) {
  return config.qk_norm == QkNorm::kRow;
}

// As published files call them.
constexpr auto kMolmo2TextTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "model.transformer.wte.embedding", Dim::kVocab, Dim::kHidden},
    {Role::kFinalNorm, "model.transformer.ln_f.weight", Dim::kOne, Dim::kHidden},
    {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
    {Role::kAttentionNorm, "model.transformer.blocks.{layer}.attn_norm.weight", Dim::kOne,
     Dim::kHidden, Split::kNone, norms_before},
    {Role::kAttentionPostNorm, "model.transformer.blocks.{layer}.attn_norm.weight", Dim::kOne,
     Dim::kHidden, Split::kNone, norms_after},
    {Role::kQkv, "model.transformer.blocks.{layer}.self_attn.att_proj.weight", Dim::kQkv,
     Dim::kHidden, Split::kRows},
    {Role::kQkvBias, "model.transformer.blocks.{layer}.self_attn.att_proj.bias", Dim::kOne,
     Dim::kQkv, Split::kRows, has_attention_bias},
    {Role::kQNorm, "model.transformer.blocks.{layer}.self_attn.q_norm.weight", Dim::kOne,
     Dim::kHeadDim, Split::kNone, norms_heads},
    {Role::kKNorm, "model.transformer.blocks.{layer}.self_attn.k_norm.weight", Dim::kOne,
     Dim::kHeadDim, Split::kNone, norms_heads},
    {Role::kQNorm, "model.transformer.blocks.{layer}.self_attn.q_norm.weight", Dim::kOne, Dim::kQ,
     Split::kNone, norms_rows},
    {Role::kKNorm, "model.transformer.blocks.{layer}.self_attn.k_norm.weight", Dim::kOne, Dim::kKv,
     Split::kNone, norms_rows},
    {Role::kO, "model.transformer.blocks.{layer}.self_attn.attn_out.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kMlpNorm, "model.transformer.blocks.{layer}.ff_norm.weight", Dim::kOne, Dim::kHidden,
     Split::kNone, norms_before},
    {Role::kMlpPostNorm, "model.transformer.blocks.{layer}.ff_norm.weight", Dim::kOne, Dim::kHidden,
     Split::kNone, norms_after},
    {Role::kGateUp, "model.transformer.blocks.{layer}.mlp.ff_proj.weight", Dim::kUpGate,
     Dim::kHidden, Split::kRows},
    {Role::kDown, "model.transformer.blocks.{layer}.mlp.ff_out.weight", Dim::kHidden,
     Dim::kIntermediate, Split::kColumns},
});

// The second table of embeddings is of tokens that stand for images.
constexpr auto kMolmo2Ignored = std::to_array<std::string_view>({
    "vision_backbone.*",
    "vision_tower.*",
    "multi_modal_projector.*",
    "transformer.wte.new_embedding",
});

// As `transformers` calls them within.
constexpr auto kMolmo2Renames = std::to_array<TensorRename>({
    {"layers.", "transformer.blocks."},
    {".self_attn.o_proj.", ".self_attn.attn_out."},
    {".mlp.down_proj.", ".mlp.ff_out."},
});

}  // namespace

extern const Architecture kMolmo2Text, kMolmo2;
constexpr Architecture kMolmo2Text = {
    .names = kMolmo2TextNames,
    .model_types = kMolmo2TextTypes,
    .prefix = "model.",
    .read_config = read_molmo2_text,
    .fields = kMolmo2TextFields,
    .aliases = kMolmo2TextAliases,
    .tensors = kMolmo2TextTensors,
    .renames = kMolmo2Renames,
    .ignored = kRotaryTables,
};
constexpr Architecture kMolmo2 = with_own_head(multimodal_of(
    kMolmo2Names, kMolmo2Types, R"({"model_type": "molmo2_text"})", kMolmo2Fields, kMolmo2Ignored));

}  // namespace tgi
