// ERNIE 4.5: Llama's block with neighbours of a head rotated; dense, or with experts in a run of
// layers. Of the one that sees, half of the experts are for images alone.
// Source: models/ernie4_5, models/ernie4_5_moe and models/ernie4_5_vl_moe in `transformers`.
#include <fmt/format.h>

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

constexpr DecoderFields kErnie45Decoder = {
    .default_vocab_size = 103424,
    .default_hidden_size = 1024,
    .default_num_layers = 18,
    .default_num_heads = 16,
    .default_num_kv_heads = 2,
    .default_head_dim = 128,
    .default_intermediate = 3072,
    .default_max_positions = 131072,
    .default_norm_eps = 1e-5,
    .default_tied = true,
};

ModelConfig read_ernie4_5(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kErnie45Decoder);
  model.attention_bias = config.boolean_or("use_bias", false);
  model.mlp_bias = model.attention_bias;
  read_rope(config, model, {.default_theta = 500000.0, .interleaved = true});
  refuse_windows(config, model);
  return model;
}

constexpr DecoderFields kDecoderMoe = {
    .default_vocab_size = 103424,
    .default_hidden_size = 2560,
    .default_num_layers = 28,
    .default_num_heads = 20,
    .default_num_kv_heads = 4,
    .default_intermediate = 12288,
    .default_max_positions = 131072,
    .default_norm_eps = 1e-5,
    .default_tied = true,
};

void read_sparse_run(const JsonReader& config, ModelConfig& model) {
  const int64_t first = config.integer_or("moe_layer_start_index", 1);
  int64_t last = config.integer_or("moe_layer_end_index", -1);
  if (last == -1) last = model.num_layers - 1;
  const int32_t interval = read_size(config, "moe_layer_interval", 1, kMaxLayers);
  for (int64_t i = 0; i < model.num_layers; ++i) {
    const bool is_sparse = (i + 1) % interval == 0 && i >= first && i <= last;
    if (is_sparse) model.layers[static_cast<size_t>(i)].mlp = MlpKind::kExperts;
  }
}

// But for the layers that have them.
ModelConfig read_ernie4_5_experts(const JsonReader& config, const DecoderFields& fields) {
  ModelConfig model = read_decoder_config(config, fields);
  model.attention_bias = config.boolean_or("use_bias", false);
  model.mlp_bias = model.attention_bias;
  read_rope(config, model, {.default_theta = 500000.0, .interleaved = true});
  read_experts(config,
               {.num_experts = "moe_num_experts",
                .top_k = "moe_k",
                .intermediate_size = "moe_intermediate_size",
                .default_num_experts = 64,
                .default_top_k = 6,
                .default_intermediate = 1536,
                .normalises = true},
               model);
  model.experts.has_choice_bias = true;
  const int64_t shared =
      config.integer_or("moe_num_shared_experts", 2) * model.experts.intermediate_size;
  if (shared != 0) {
    model.experts.shared_intermediate_size =
        check_size(config, "moe_num_shared_experts", shared, kMaxIntermediateSize);
  }
  refuse_windows(config, model);
  return model;
}

ModelConfig read_ernie4_5_moe(const JsonReader& config) {
  ModelConfig model = read_ernie4_5_experts(config, kDecoderMoe);
  read_sparse_run(config, model);
  return model;
}

constexpr DecoderFields kDecoderVl = [] {
  DecoderFields fields = kDecoderMoe;
  fields.default_bos = -1;
  fields.default_eos = -1;
  return fields;
}();

constexpr const char* kExpertSize = "moe_intermediate_size";

// Of an expert for text and of one for images: the first counts.
Json with_size_for_text(const JsonReader& config) {
  Json out = config.json();
  if (!config.has(kExpertSize)) return out;
  const Json& sizes = config.json().at(kExpertSize);
  if (!sizes.is_array()) return out;
  if (sizes.size() != 2) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected the sizes of an expert for text and of one for images, "
                            "got {}",
                            config.path_of(kExpertSize), sizes.dump()));
  }
  out[kExpertSize] = sizes[0];
  return out;
}

ModelConfig read_ernie4_5_vl(const JsonReader& given) {
  const Json json = with_size_for_text(given);
  const JsonReader config = given.in_place(json);
  ModelConfig model = read_ernie4_5_experts(config, kDecoderVl);
  model.experts.num_unread = model.experts.num_experts;
  if (!read_mlp_layer_types(config, model)) {
    for (size_t i = 1; i < model.layers.size(); ++i) model.layers[i].mlp = MlpKind::kExperts;
  }
  return model;
}

constexpr auto kErnie45Fields = join_fields(
    std::to_array<KnownField>({
        read_or_null("use_bias"),
        read_or_null("layer_types"),
        read_or_null("sliding_window"),
        read_or_null("use_sliding_window"),
        harmless_if("rope_interleaved", "[true]", "neighbours of a head are rotated"),
        harmless_if("rope_traditional", "[true]", "neighbours of a head are rotated"),
        harmless_if("attention_bias", "[false]", "use_bias says which biases there are"),
        harmless_if("mlp_bias", "[false]", "use_bias says which biases there are"),
    }),
    kDecoderFields);

constexpr auto kErnie45FieldsMoe =
    join_fields(std::to_array<KnownField>({
                    read("moe_num_experts"),
                    read("moe_k"),
                    read("moe_intermediate_size"),
                    read("moe_num_shared_experts"),
                    read("moe_layer_start_index"),
                    read("moe_layer_end_index"),
                    read("moe_layer_interval"),
                    harmless("moe_capacity", kTrainsRouter),
                    harmless_if("moe_gate", R"(["topk"])", "the experts of the best scores"),
                    harmless_if("moe_use_aux_free", "[true]", "experts are chosen with a bias"),
                    harmless("moe_norm_min", "a sum of scores is far above it"),
                    harmless("router_aux_loss_coef", kTrainsRouter),
                    harmless("output_router_logits", kTrainsRouter),
                }),
                kErnie45Fields);

constexpr auto kErnie45VlFields =
    join_fields(std::to_array<KnownField>({
                    read("moe_num_experts"),
                    read("moe_k"),
                    read("moe_intermediate_size"),
                    read("moe_num_shared_experts"),
                    read_or_null("mlp_layer_types"),
                    harmless("moe_norm_min", "a sum of scores is far above it"),
                    harmless("router_aux_loss_coef", kTrainsRouter),
                    harmless("output_router_logits", kTrainsRouter),
                }),
                kErnie45Fields);
constexpr auto kErnie45SeeingFields = join_fields(kMultimodalFields,
                                                  std::to_array<KnownField>({
                                                      harmless("image_start_token_id", kImages),
                                                      harmless("image_end_token_id", kImages),
                                                      harmless("video_start_token_id", kImages),
                                                      harmless("video_end_token_id", kImages),
                                                  }));

constexpr auto kErnie45NamesMoe =
    std::to_array<std::string_view>({"Ernie4_5_MoeForCausalLM", "Ernie4_5_MoEForCausalLM"});
constexpr auto kErnie45TypesMoe = std::to_array<std::string_view>({"ernie4_5_moe"});
constexpr auto kErnie45Names =
    std::to_array<std::string_view>({"Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM"});
constexpr auto kErnie45Types = std::to_array<std::string_view>({"ernie4_5"});

constexpr auto kErnie45Tensors = join_tensors(kLlamaOuterTensors,
                                              kLlamaNormTensors,
                                              kLlamaAttentionTensors,
                                              kLlamaQkvBiasTensors,
                                              kLlamaOBiasTensors,
                                              kLlamaMlpTensors,
                                              kLlamaMlpBiasTensors);

constexpr bool has_ernie4_5_shared_bias(const ModelConfig& config, int32_t layer) {
  return config.mlp_bias && has_shared_expert(config, layer);
}
constexpr bool has_ernie4_5_dense_bias(const ModelConfig& config, int32_t layer) {
  return config.mlp_bias && has_dense_mlp(config, layer);
}

constexpr auto kErnie45SharedBiasTensors = std::to_array<TensorSpec>({
    {Role::kGateBias, "model.layers.{layer}.mlp.gate_proj.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows, has_ernie4_5_dense_bias},
    {Role::kUpBias, "model.layers.{layer}.mlp.up_proj.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows, has_ernie4_5_dense_bias},
    {Role::kDownBias, "model.layers.{layer}.mlp.down_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns, has_ernie4_5_dense_bias},
    {Role::kSharedGateBias, "model.layers.{layer}.mlp.shared_experts.gate_proj.bias", Dim::kOne,
     Dim::kSharedIntermediate, Split::kRows, has_ernie4_5_shared_bias},
    {Role::kSharedUpBias, "model.layers.{layer}.mlp.shared_experts.up_proj.bias", Dim::kOne,
     Dim::kSharedIntermediate, Split::kRows, has_ernie4_5_shared_bias},
    {Role::kSharedDownBias, "model.layers.{layer}.mlp.shared_experts.down_proj.bias", Dim::kOne,
     Dim::kHidden, Split::kColumns, has_ernie4_5_shared_bias},
});

constexpr auto kErnie45TensorsMoe = join_tensors(
    kLlamaOuterTensors,
    kLlamaNormTensors,
    kLlamaAttentionTensors,
    kLlamaQkvBiasTensors,
    kLlamaOBiasTensors,
    kLlamaMlpTensors,
    kExpertTensors,
    kSharedExpertsTensors,
    std::to_array<TensorSpec>({
        {Role::kLmHeadBias, "lm_head.bias", Dim::kOne, Dim::kVocab, Split::kNone, has_mlp_bias},
        {.role = Role::kChoiceBias,
         .name = "model.layers.{layer}.mlp.moe_statics.e_score_correction_bias",
         .rows = Dim::kOne,
         .cols = Dim::kExperts,
         .only_if = has_choice_bias,
         .as_row = true},
    }),
    kErnie45SharedBiasTensors);

constexpr auto kErnie45VlTensors = join_tensors(
    kLlamaOuterTensors,
    kLlamaNormTensors,
    kLlamaAttentionTensors,
    kLlamaQkvBiasTensors,
    kLlamaOBiasTensors,
    kLlamaMlpTensors,
    kSharedExpertsTensors,
    std::to_array<TensorSpec>({
        {.role = Role::kRouter,
         .name = "model.layers.{layer}.mlp.gate.weight",
         .rows = Dim::kExperts,
         .cols = Dim::kHidden,
         .only_if = has_experts,
         .transposed = true},
        {.role = Role::kChoiceBias,
         .name = "model.layers.{layer}.mlp.moe_statics.e_score_correction_bias",
         .rows = Dim::kOne,
         .cols = Dim::kExpertsAndUnread,
         .only_if = has_choice_bias},
        {Role::kExpertGate, "model.layers.{layer}.mlp.experts.{expert}.gate_proj.weight",
         Dim::kExpertIntermediate, Dim::kHidden, Split::kRows, has_experts},
        {Role::kExpertUp, "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight",
         Dim::kExpertIntermediate, Dim::kHidden, Split::kRows, has_experts},
        {Role::kExpertDown, "model.layers.{layer}.mlp.experts.{expert}.down_proj.weight",
         Dim::kHidden, Dim::kExpertIntermediate, Split::kColumns, has_experts},
    }),
    kErnie45SharedBiasTensors);

constexpr auto kErnie45VlNames = std::to_array<std::string_view>({"Ernie4_5_VLMoeTextModel"});
constexpr auto kErnie45VlTypes = std::to_array<std::string_view>({"ernie4_5_vl_moe_text"});
constexpr auto kErnie45SeeingNames = std::to_array<std::string_view>(
    {"Ernie4_5_VLMoeForConditionalGeneration", "Ernie4_5_VL_MoeForConditionalGeneration"});
constexpr auto kErnie45SeeingTypes =
    std::to_array<std::string_view>({"ernie4_5_vl_moe", "ernie4_5_moe_vl"});
constexpr auto kErnie45SeeingIgnored = std::to_array<std::string_view>({
    "vision_tower.*",
    "vision_model.*",
    "resampler_model.*",
    ".mlp.gate.weight_1",
});

// As `transformers` calls them within.
constexpr auto kErnie45VlRenames = std::to_array<TensorRename>({
    {".mlp.text_moe.", ".mlp."},
});

}  // namespace

extern const Architecture kErnie45;
constexpr Architecture kErnie45 = {
    .names = kErnie45Names,
    .model_types = kErnie45Types,
    .prefix = "model.",
    .read_config = read_ernie4_5,
    .fields = kErnie45Fields,
    .tensors = kErnie45Tensors,
    .ignored = kRotaryTables,
};

extern const Architecture kErnie45Moe;
constexpr Architecture kErnie45Moe = {
    .names = kErnie45NamesMoe,
    .model_types = kErnie45TypesMoe,
    .prefix = "model.",
    .read_config = read_ernie4_5_moe,
    .fields = kErnie45FieldsMoe,
    .tensors = kErnie45TensorsMoe,
    .ignored = kRotaryTables,
};

extern const Architecture kErnie45Vl;
constexpr Architecture kErnie45Vl = {
    .names = kErnie45VlNames,
    .model_types = kErnie45VlTypes,
    .prefix = "model.",
    .read_config = read_ernie4_5_vl,
    .fields = kErnie45VlFields,
    .tensors = kErnie45VlTensors,
    .renames = kErnie45VlRenames,
    .ignored = kErnie45SeeingIgnored,
};

extern const Architecture kErnie45Seeing;
constexpr Architecture kErnie45Seeing = multimodal_of(kErnie45SeeingNames,
                                                      kErnie45SeeingTypes,
                                                      R"({"model_type": "ernie4_5_vl_moe_text"})",
                                                      kErnie45SeeingFields,
                                                      kErnie45SeeingIgnored);

}  // namespace tgi
