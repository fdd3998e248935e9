// Emu3 and Fuyu: multimodal checkpoints that draw tokens with one text model, the first with
// Llama's block, the second with Persimmon's. Sources: models/emu3 and models/fuyu in
// `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_emu3_text(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 184622,
                                                   .default_num_kv_heads = 8,
                                                   .default_intermediate = 14336,
                                                   .default_max_positions = 9216,
                                                   .default_norm_eps = 1e-5,
                                                   .default_bos = 151849,
                                                   .default_eos = 151850});
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  read_rope(config, model, {.default_theta = 1e6});
  return model;
}

constexpr auto kEmu3TextFields = join_fields(kDecoderFields,
                                             std::to_array<KnownField>({
                                                 read_or_null("attention_bias"),
                                                 read_or_null("mlp_bias"),
                                             }));

constexpr auto kEmu3Fields =
    join_fields(kMultimodalFields,
                std::to_array<KnownField>({
                    harmless("vq_config", kImages),
                    harmless("vocabulary_map", "says which tokens stand for parts of images"),
                }));

// Those of old files lie flat beside the text model's.
constexpr auto kFuyuFields = join_fields(
    kMultimodalFields,
    std::to_array<KnownField>({
        // Its class does not hand these on from there.
        harmless_if("partial_rotary_factor", "[0.5]", "it is half a head there, always"),
        harmless("rope_parameters", "its class reads rope_theta there"),
        harmless("image_size", kImages),
        harmless("patch_size", kImages),
        harmless("num_channels", kImages),
        harmless_if("text_model_type", R"(["persimmon"])", "the text model is that"),
    }));

constexpr auto kEmu3TextNames = std::to_array<std::string_view>({"Emu3ForCausalLM"});
constexpr auto kEmu3TextTypes = std::to_array<std::string_view>({"emu3_text_model"});
constexpr auto kEmu3Names = std::to_array<std::string_view>({"Emu3ForConditionalGeneration"});
constexpr auto kEmu3Types = std::to_array<std::string_view>({"emu3"});
constexpr auto kEmu3Ignored = std::to_array<std::string_view>({"vqmodel.*"});

constexpr auto kFuyuNames = std::to_array<std::string_view>({"FuyuForCausalLM"});
constexpr auto kFuyuTypes = std::to_array<std::string_view>({"fuyu"});
constexpr auto kFuyuIgnored = std::to_array<std::string_view>({"vision_embed_tokens.*"});
constexpr std::string_view kFuyuText =
    R"({"model_type": "persimmon", "vocab_size": 262144, "max_position_embeddings": 16384})";

constexpr auto kEmu3TextTensors = join_tensors(kLlamaOuterTensors,
                                               kLlamaNormTensors,
                                               kLlamaAttentionTensors,
                                               kLlamaQkvBiasTensors,
                                               kLlamaOBiasTensors,
                                               kLlamaMlpTensors,
                                               kLlamaMlpBiasTensors);

}  // namespace

extern const Architecture kEmu3Text, kEmu3, kFuyu;
constexpr Architecture kEmu3Text = {
    .names = kEmu3TextNames,
    .model_types = kEmu3TextTypes,
    .prefix = "model.",
    .read_config = read_emu3_text,
    .fields = kEmu3TextFields,
    .tensors = kEmu3TextTensors,
    .ignored = kRotaryTables,
};
constexpr Architecture kEmu3 = multimodal_of(kEmu3Names,
                                             kEmu3Types,
                                             R"({"model_type": "emu3_text_model"})",
                                             kEmu3Fields,
                                             kEmu3Ignored,
                                             "text_model.");
constexpr Architecture kFuyu =
    with_repeated_text(multimodal_of(kFuyuNames, kFuyuTypes, kFuyuText, kFuyuFields, kFuyuIgnored));

}  // namespace tgi
