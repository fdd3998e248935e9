// Hunyuan: Llama's block with heads of q and k normed after they are rotated, and a base of the
// rotation that is stretched once; dense, or with experts beside one that all tokens go to.
// HunyuanOCR is a multimodal checkpoint around the first. Source: models/hunyuan_v1_dense,
// models/hunyuan_v1_moe and models/hunyuan_vl in `transformers`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kHunyuanDecoder = {
    .default_vocab_size = 290943,
    .default_num_kv_heads = 32,
    .default_norm_eps = 1e-5,
};

constexpr auto kHunyuanRopeFields = std::to_array<KnownField>({read_or_null("alpha")});

ModelConfig read_hunyuan(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kHunyuanDecoder);
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.qk_norm_after_rope = true;
  read_rope(config, model, {.fields = kHunyuanRopeFields});
  refuse_windows(config, model);
  return model;
}

constexpr auto kHunyuanVlRopeFields = std::to_array<KnownField>({
    read_or_null("alpha"),
    harmless("xdrope_section", "positions are of text alone, alike in every section"),
});

ModelConfig read_hunyuan_vl_text(const JsonReader& config) {
  DecoderFields decoder = kHunyuanDecoder;
  decoder.default_num_kv_heads = 0;
  decoder.default_tied = true;
  ModelConfig model = read_decoder_config(config, decoder);
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.qk_norm_after_rope = true;
  read_rope(config, model, {.own_type = "xdrope", .fields = kHunyuanVlRopeFields});
  return model;
}

// Counts may be lists of one for each layer, all of which have to be equal.
void take_from_list(Json& config, const char* key, const JsonReader& reader) {
  const auto found = config.find(key);
  if (found == config.end() || !found->is_array()) return;
  const Json list = *found;
  const bool all_equal =
      std::ranges::all_of(list, [&](const Json& item) { return item == list.front(); });
  if (list.empty() || !all_equal) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: expected a number, or the same for every layer, got {}",
                            reader.path_of(key), list.dump()));
  }
  config[key] = list.front();
}

void refuse_other_sizes(const JsonReader& config, const ModelConfig& model) {
  const int64_t size = config.integer_or("moe_intermediate_size", model.intermediate_size);
  if (size == model.intermediate_size) return;
  throw Error(Code::kUnsupported,
              fmt::format("{}: experts are of intermediate_size, {}, got {}",
                          config.path_of("moe_intermediate_size"), model.intermediate_size, size));
}

constexpr const char* kListed[] = {"moe_topk", "num_shared_expert", "moe_intermediate_size"};

ModelConfig read_hunyuan_moe(const JsonReader& given) {
  Json json = given.json();
  for (const char* key : kListed) take_from_list(json, key, given);
  const JsonReader config(json, "");
  DecoderFields decoder = kHunyuanDecoder;
  decoder.default_num_kv_heads = 0;
  ModelConfig model = read_decoder_config(config, decoder);
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.qk_norm_after_rope = true;
  read_rope(config, model, {.fields = kHunyuanRopeFields});
  refuse_windows(config, model);
  read_experts(config,
               {.num_experts = "num_experts",
                .top_k = "moe_topk",
                .default_num_experts = 1,
                .default_top_k = 1,
                .normalises = true},
               model);
  refuse_other_sizes(config, model);
  const int64_t num_shared = config.integer_or("num_shared_expert", 1);
  if (num_shared != 1) {
    throw Error(Code::kUnsupported, fmt::format("{}: expected 1, got {}",
                                                config.path_of("num_shared_expert"), num_shared));
  }
  model.experts.shared_intermediate_size = model.intermediate_size;
  use_experts_in_all_layers(model);
  return model;
}

constexpr std::string_view kHunyuanOneBlock = "there is one kind of block";
constexpr std::string_view kTextOnly = "is about other models of the maker";

constexpr auto kHunyuanFields = join_fields(
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
        harmless_if("position_embedding_xdrope", "[false]", kHunyuanOneBlock),
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
        harmless_if("use_qk_norm", "[true]", kHunyuanOneBlock),
        harmless_if("qk_norm", "[true]", kHunyuanOneBlock),
        harmless_if("norm_type", R"(["rms"])", kHunyuanOneBlock),
        harmless_if("use_rotary_pos_emb", "[true]", kHunyuanOneBlock),
        harmless_if("use_cla", "[false]", kHunyuanOneBlock),
        harmless("cla_share_factor", "is read with use_cla only"),
        harmless_if("use_mla", "[false]", kHunyuanOneBlock),
    }));

constexpr auto kHunyuanVlTextFields =
    join_fields(kDecoderFields,
                std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    harmless("eod_token_id", "eos_token_id says when to stop"),
                    harmless("sep_token_id", "eos_token_id says when to stop"),
                    harmless("pad_id", "sequences are never padded"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                    harmless_if("use_qk_norm", "[true]", kHunyuanOneBlock),
                    harmless_if("norm_type", R"(["rms"])", kHunyuanOneBlock),
                    harmless_if("use_cla", "[false]", kHunyuanOneBlock),
                    harmless_if("position_embedding_xdrope", "[true]", kHunyuanOneBlock),
                    harmless_if("sliding_window", "[]", "layers have no windows"),
                }));

constexpr auto kHunyuanVlFields = join_fields(kMultimodalFields,
                                              std::to_array<KnownField>({
                                                  harmless("im_start_id", kImages),
                                                  harmless("im_end_id", kImages),
                                                  harmless("im_newline_id", kImages),
                                                  harmless("image_start_token_id", kImages),
                                                  harmless("image_end_token_id", kImages),
                                                  harmless("image_newline_token_id", kImages),
                                              }));

constexpr auto kHunyuanVlTextAliases = std::to_array<FieldAlias>(
    {{"attention_head_dim", "head_dim"}, {"org_vocab_size", "vocab_size"}});

constexpr auto kHunyuanFieldsMoe = join_fields(
    std::to_array<KnownField>({
        read("num_experts"),
        read("moe_topk"),
        read("moe_intermediate_size"),
        read("num_shared_expert"),
        harmless_if("use_mixed_mlp_moe", "[true]", "there is always an expert for all tokens"),
        harmless_if("moe_layer_num_skipped", "[0]", "all layers have experts"),
        harmless_if("norm_topk_prob", "[true]", "weights are always divided by their sum"),
        harmless("moe_drop_tokens", kTrainsRouter),
        harmless("moe_random_routing_dropped_token", kTrainsRouter),
        harmless("capacity_factor", kTrainsRouter),
        harmless("router_aux_loss_coef", kTrainsRouter),
        harmless("output_router_logits", kTrainsRouter),
    }),
    kHunyuanFields);

constexpr auto kAliasesMoe = std::to_array<FieldAlias>({
    {"num_experts_per_tok", "moe_topk"},
    {"num_local_experts", "num_experts"},
});

constexpr auto kHunyuanNamesMoe = std::to_array<std::string_view>({"HunYuanMoEV1ForCausalLM"});
constexpr auto kHunyuanTypesMoe = std::to_array<std::string_view>({"hunyuan_v1_moe"});
constexpr auto kHunyuanNames = std::to_array<std::string_view>({"HunYuanDenseV1ForCausalLM"});
constexpr auto kHunyuanTypes = std::to_array<std::string_view>({"hunyuan_v1_dense"});

constexpr auto kHunyuanVlTextNames = std::to_array<std::string_view>({"HunYuanVLTextModel"});
constexpr auto kHunyuanVlTextTypes = std::to_array<std::string_view>({"hunyuan_vl_text"});
constexpr auto kHunyuanVlNames =
    std::to_array<std::string_view>({"HunYuanVLForConditionalGeneration"});
constexpr auto kHunyuanVlTypes = std::to_array<std::string_view>({"hunyuan_vl"});
constexpr auto kHunyuanVlIgnored = std::to_array<std::string_view>({"vit.*", "vision_tower.*"});

constexpr auto kHunyuanTensors =
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

constexpr auto kHunyuanTensorsMoe = join_tensors(
    kHunyuanTensors,
    std::to_array<TensorSpec>({
        {Role::kRouter, "model.layers.{layer}.mlp.gate.wg.weight", Dim::kExperts, Dim::kHidden},
        {Role::kExpertGate, "model.layers.{layer}.mlp.experts.{expert}.gate_proj.weight",
         Dim::kExpertIntermediate, Dim::kHidden, Split::kRows},
        {Role::kExpertUp, "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight",
         Dim::kExpertIntermediate, Dim::kHidden, Split::kRows},
        {Role::kExpertDown, "model.layers.{layer}.mlp.experts.{expert}.down_proj.weight",
         Dim::kHidden, Dim::kExpertIntermediate, Split::kColumns},
        {Role::kSharedGate, "model.layers.{layer}.mlp.shared_mlp.gate_proj.weight",
         Dim::kSharedIntermediate, Dim::kHidden, Split::kRows},
        {Role::kSharedUp, "model.layers.{layer}.mlp.shared_mlp.up_proj.weight",
         Dim::kSharedIntermediate, Dim::kHidden, Split::kRows},
        {Role::kSharedDown, "model.layers.{layer}.mlp.shared_mlp.down_proj.weight", Dim::kHidden,
         Dim::kSharedIntermediate, Split::kColumns},
    }));

}  // namespace

extern const Architecture kHunyuanDense;
constexpr Architecture kHunyuanDense = {
    .names = kHunyuanNames,
    .model_types = kHunyuanTypes,
    .prefix = "model.",
    .read_config = read_hunyuan,
    .fields = kHunyuanFields,
    .tensors = kHunyuanTensors,
    .ignored = kRotaryTables,
};

extern const Architecture kHunyuanMoe;
constexpr Architecture kHunyuanMoe = {
    .names = kHunyuanNamesMoe,
    .model_types = kHunyuanTypesMoe,
    .prefix = "model.",
    .read_config = read_hunyuan_moe,
    .fields = kHunyuanFieldsMoe,
    .aliases = kAliasesMoe,
    .tensors = kHunyuanTensorsMoe,
    .ignored = kRotaryTables,
};

extern const Architecture kHunyuanVlText, kHunyuanVl;
constexpr Architecture kHunyuanVlText = {
    .names = kHunyuanVlTextNames,
    .model_types = kHunyuanVlTextTypes,
    .prefix = "model.",
    .read_config = read_hunyuan_vl_text,
    .fields = kHunyuanVlTextFields,
    .aliases = kHunyuanVlTextAliases,
    .tensors = kHunyuanTensors,
    .ignored = kRotaryTables,
};
constexpr Architecture kHunyuanVl =
    multimodal_of(kHunyuanVlNames,
                  kHunyuanVlTypes,
                  R"({"model_type": "hunyuan_vl_text", "tie_word_embeddings": true})",
                  kHunyuanVlFields,
                  kHunyuanVlIgnored);

}  // namespace tgi
