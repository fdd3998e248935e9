// OLMo 1 to 3. The first norms without weights. The others norm what a branch adds instead of what
// it reads, and all heads of q and of k at once; the third has windows, and stretches the rotation
// only where there is none. FlexOlmo is the second with experts.
// Source: models/olmo, models/olmo2, models/olmo3 and models/flex_olmo in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kOlmoDecoder = {
    .norm_eps = "",
    .default_vocab_size = 50304,
    .default_norm_eps = 1e-5,
    .default_bos = -1,
    .default_eos = 50279,
};

ModelConfig read_olmo(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kOlmoDecoder);
  model.norm_kind = NormKind::kLayer;
  model.norms_have_weights = false;
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.qkv_clip = read_optional_positive(config, "clip_qkv", {}).value_or(0.0F);
  read_rope(config, model);
  refuse_windows(config, model);
  return model;
}

ModelConfig read_olmo_common(const JsonReader& config) {
  DecoderFields fields = kOlmoDecoder;
  fields.norm_eps = "rms_norm_eps";
  ModelConfig model = read_decoder_config(config, fields);
  model.qk_norm = QkNorm::kRow;
  model.attention_bias = config.boolean_or("attention_bias", false);
  return model;
}

ModelConfig read_olmo_2(const JsonReader& config) {
  ModelConfig model = read_olmo_common(config);
  read_rope(config, model);
  refuse_windows(config, model);
  return model;
}

ModelConfig read_olmo_3(const JsonReader& config) {
  ModelConfig model = read_olmo_common(config);
  read_windows(config, {.default_pattern = 4, .null_is_no_window = false}, model);
  read_rope_by_window(config, model, {.layer_type = "sliding_attention", .is_scaled = false},
                      {.layer_type = "full_attention"});
  return model;
}

ModelConfig read_config_flex(const JsonReader& config) {
  DecoderFields fields = kOlmoDecoder;
  fields.norm_eps = "rms_norm_eps";
  fields.default_norm_eps = 1e-6;
  fields.default_vocab_size = 100352;
  fields.default_max_positions = 4096;
  fields.default_eos = 100257;
  ModelConfig model = read_decoder_config(config, fields);
  model.qk_norm = QkNorm::kRow;
  model.attention_bias = config.boolean_or("attention_bias", false);
  read_rope(config, model, {.default_theta = 500000.0});
  read_experts(config,
               {.normalises_name = "norm_topk_prob", .default_num_experts = 7, .default_top_k = 5},
               model);
  use_experts_in_all_layers(model);
  return model;
}

constexpr auto kOlmoFields3 =
    join_fields(kDecoderFields,
                std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read_or_null("layer_types"),
                    read_or_null("sliding_window"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                }));

constexpr auto kOlmoFields2 = join_fields(kOlmoFields3,
                                          std::to_array<KnownField>({
                                              read_or_null("use_sliding_window"),
                                          }));

constexpr auto kOlmoFields = join_fields(std::to_array<KnownField>({
                                             read_or_null("clip_qkv"),
                                             harmless("rms_norm_eps", "it is 1e-5, always"),
                                             harmless("layer_norm_eps", "it is 1e-5, always"),
                                         }),
                                         kOlmoFields2);

constexpr auto kFieldsFlex =
    join_fields(kDecoderFields,
                kExpertFields,
                std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                }));

constexpr auto kNamesFlex = std::to_array<std::string_view>({"FlexOlmoForCausalLM"});
constexpr auto kModelTypesFlex = std::to_array<std::string_view>({"flex_olmo"});
constexpr auto kOlmoNames = std::to_array<std::string_view>({"OlmoForCausalLM"});
constexpr auto kOlmoTypes = std::to_array<std::string_view>({"olmo"});
constexpr auto kOlmoNames2 = std::to_array<std::string_view>({"Olmo2ForCausalLM"});
constexpr auto kOlmoTypes2 = std::to_array<std::string_view>({"olmo2"});
constexpr auto kOlmoNames3 = std::to_array<std::string_view>({"Olmo3ForCausalLM"});
constexpr auto kOlmoTypes3 = std::to_array<std::string_view>({"olmo3"});

constexpr auto kOlmoBlockTensors = join_tensors(
    kLlamaAttentionTensors, kLlamaQkvBiasTensors, kLlamaOBiasTensors, kLlamaMlpTensors);
constexpr auto kOlmoTensors = join_tensors(kLlamaEmbeddingTensors, kOlmoBlockTensors);
constexpr auto kOlmoTensors2 =
    join_tensors(kLlamaOuterTensors, kOlmoBlockTensors, kPostNormTensors, kQkRowNormTensors);

constexpr auto kTensorsFlex = join_tensors(kLlamaOuterTensors,
                                           kLlamaAttentionTensors,
                                           kLlamaQkvBiasTensors,
                                           kLlamaOBiasTensors,
                                           kPostNormTensors,
                                           kQkRowNormTensors,
                                           kExpertTensors);

}  // namespace

extern const Architecture kOlmo;
constexpr Architecture kOlmo = {
    .names = kOlmoNames,
    .model_types = kOlmoTypes,
    .prefix = "model.",
    .read_config = read_olmo,
    .fields = kOlmoFields,
    .tensors = kOlmoTensors,
    .ignored = kRotaryTables,
};

extern const Architecture kOlmo2;
constexpr Architecture kOlmo2 = {
    .names = kOlmoNames2,
    .model_types = kOlmoTypes2,
    .prefix = "model.",
    .read_config = read_olmo_2,
    .fields = kOlmoFields2,
    .tensors = kOlmoTensors2,
    .ignored = kRotaryTables,
};

extern const Architecture kOlmo3;
constexpr Architecture kOlmo3 = {
    .names = kOlmoNames3,
    .model_types = kOlmoTypes3,
    .prefix = "model.",
    .read_config = read_olmo_3,
    .fields = kOlmoFields3,
    .tensors = kOlmoTensors2,
    .ignored = kRotaryTables,
};

extern const Architecture kFlexOlmo;
constexpr Architecture kFlexOlmo = {
    .names = kNamesFlex,
    .model_types = kModelTypesFlex,
    .prefix = "model.",
    .read_config = read_config_flex,
    .fields = kFieldsFlex,
    .tensors = kTensorsFlex,
    .ignored = kRotaryTables,
};

}  // namespace tgi
