// Qwen2.5-Omni and Qwen3-Omni: the part that thinks of a checkpoint that sees, hears and speaks.
// Its text models are those of Qwen2.5-VL and, with experts, of Qwen3-VL. Source:
// models/qwen2_5_omni and qwen3_omni_moe in `transformers`.
#include <array>
#include <span>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_qwen25_omni_text(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 152064,
                                                   .default_hidden_size = 3584,
                                                   .default_num_layers = 28,
                                                   .default_num_heads = 28,
                                                   .default_num_kv_heads = 4,
                                                   .default_intermediate = 18944,
                                                   .default_max_positions = 32768,
                                                   .default_tied = true,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = true;  // of q, k and v
  read_windows(config, {.default_window = 32768, .by_switch = true}, model);
  read_rope(config, model, {.default_theta = 1e6});
  return model;
}

constexpr auto kOmniRopeFields = std::to_array<KnownField>(
    {harmless("interleaved", "positions in images and sounds; those of text are all the same")});

ModelConfig read_qwen3_omni_text(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 3584,
                                                   .default_hidden_size = 2048,
                                                   .default_num_layers = 28,
                                                   .default_num_heads = 28,
                                                   .default_num_kv_heads = 4,
                                                   .default_intermediate = 18944,
                                                   .default_max_positions = 32768,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = config.boolean_or("attention_bias", false);
  read_rope(config, model, {.default_theta = 1e6, .fields = kOmniRopeFields});
  read_experts(config,
               {.intermediate_size = "moe_intermediate_size",
                .normalises_name = "norm_topk_prob",
                .default_num_experts = 128,
                .default_top_k = 8,
                .default_intermediate = 768,
                .normalises = true},
               model);
  read_sparse_steps(config, model);
  return model;
}

constexpr auto kQwen25OmniTextFields =
    join_fields(kDecoderFields,
                std::to_array<KnownField>({
                    read_or_null("use_sliding_window"),
                    read_or_null("sliding_window"),
                    read_or_null("max_window_layers"),
                    read_or_null("layer_types"),
                    harmless("init_std", kOnlyTraining),
                    harmless_if("attention_bias", "[true]", "q, k and v have biases, o has none"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                }));
constexpr auto kQwen3OmniTextFields =
    join_fields(kDecoderFields,
                kExpertFields,
                std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read("moe_intermediate_size"),
                    read("decoder_sparse_step"),
                    read_or_null("mlp_only_layers"),
                    harmless("shared_expert_intermediate_size", "there is no such expert"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                    harmless_if("use_qk_norm", "[true]", "heads of q and k are normed"),
                    harmless_if("use_sliding_window", "[false]", "layers have no windows"),
                    harmless_if("sliding_window", "[]", "layers have no windows"),
                }));

constexpr std::string_view kSpeech = "is about speech, and only text is written";

constexpr auto kOmniFields = join_fields(kMultimodalFields,
                                         std::to_array<KnownField>({
                                             harmless("audio_config", kSounds),
                                             harmless("audio_token_index", kSounds),
                                             harmless("audio_token_id", kSounds),
                                             harmless("audio_start_token_id", kSounds),
                                             harmless("audio_end_token_id", kSounds),
                                             harmless("seconds_per_chunk", kSounds),
                                             harmless("video_token_index", kImages),
                                             harmless("position_id_per_seconds", kImages),
                                             harmless("ignore_index", kOnlyTraining),
                                             harmless("init_std", kOnlyTraining),
                                             harmless("user_token_id", kSpeech),
                                             harmless("assistant_token_id", kSpeech),
                                             harmless("system_token_id", kSpeech),
                                             harmless("im_start_token_id", kSpeech),
                                             harmless("im_end_token_id", kSpeech),
                                             harmless("tts_bos_token_id", kSpeech),
                                             harmless("tts_eos_token_id", kSpeech),
                                             harmless("tts_pad_token_id", kSpeech),
                                             harmless("enable_audio_output", kSpeech),
                                             harmless("enable_talker", kSpeech),
                                             harmless("talker_config", kSpeech),
                                             harmless("token2wav_config", kSpeech),
                                             harmless("code2wav_config", kSpeech),
                                             harmless("vocab_size", "text_config says it"),
                                             harmless("hidden_size", "text_config says it"),
                                         }));

constexpr auto kOmniIgnored = std::to_array<std::string_view>({
    "audio_tower.*",
    "visual.*",
    "thinker.audio_tower.*",
    "thinker.visual.*",
    "talker.*",
    "token2wav.*",
    "code2wav.*",
});

constexpr auto kQwen25OmniTextNames = std::to_array<std::string_view>({"Qwen2_5OmniTextModel"});
constexpr auto kQwen25OmniTextTypes = std::to_array<std::string_view>({"qwen2_5_omni_text"});
constexpr auto kQwen3OmniTextNames = std::to_array<std::string_view>({"Qwen3OmniMoeTextModel"});
constexpr auto kQwen3OmniTextTypes = std::to_array<std::string_view>({"qwen3_omni_moe_text"});
constexpr auto kQwen25OmniNames =
    std::to_array<std::string_view>({"Qwen2_5OmniThinkerForConditionalGeneration",
                                     "Qwen2_5OmniForConditionalGeneration", "Qwen2_5OmniModel"});
constexpr auto kQwen25OmniTypes =
    std::to_array<std::string_view>({"qwen2_5_omni_thinker", "qwen2_5_omni"});
constexpr auto kQwen3OmniNames = std::to_array<std::string_view>(
    {"Qwen3OmniMoeThinkerForConditionalGeneration", "Qwen3OmniMoeForConditionalGeneration"});
constexpr auto kQwen3OmniTypes =
    std::to_array<std::string_view>({"qwen3_omni_moe_thinker", "qwen3_omni_moe"});

constexpr auto kQwen25OmniTensors = join_tensors(kLlamaOuterTensors,
                                                 kLlamaNormTensors,
                                                 kLlamaAttentionTensors,
                                                 kLlamaQkvBiasTensors,
                                                 kLlamaMlpTensors);
constexpr auto kQwen3OmniTensors = join_tensors(kLlamaOuterTensors,
                                                kLlamaNormTensors,
                                                kLlamaAttentionTensors,
                                                kLlamaQkvBiasTensors,
                                                kLlamaOBiasTensors,
                                                kQkNormTensors,
                                                kLlamaMlpTensors,
                                                kExpertTensors);

constexpr Architecture thinker_of(std::span<const std::string_view> names,
                                  std::span<const std::string_view> model_types,
                                  std::string_view default_text) {
  Architecture out =
      multimodal_of(names, model_types, default_text, kOmniFields, kOmniIgnored, "thinker.");
  out.part = "thinker_config";
  return out;
}

}  // namespace

extern const Architecture kQwen25OmniText;
constexpr Architecture kQwen25OmniText = {
    .names = kQwen25OmniTextNames,
    .model_types = kQwen25OmniTextTypes,
    .prefix = "model.",
    .read_config = read_qwen25_omni_text,
    .fields = kQwen25OmniTextFields,
    .tensors = kQwen25OmniTensors,
    .ignored = kRotaryTables,
};

extern const Architecture kQwen3OmniMoeText;
constexpr Architecture kQwen3OmniMoeText = {
    .names = kQwen3OmniTextNames,
    .model_types = kQwen3OmniTextTypes,
    .prefix = "model.",
    .read_config = read_qwen3_omni_text,
    .fields = kQwen3OmniTextFields,
    .tensors = kQwen3OmniTensors,
    .ignored = kRotaryTables,
};

extern const Architecture kQwen25Omni, kQwen3OmniMoe;
constexpr Architecture kQwen25Omni =
    thinker_of(kQwen25OmniNames,
               kQwen25OmniTypes,
               R"({"model_type": "qwen2_5_omni_text", "tie_word_embeddings": false})");
constexpr Architecture kQwen3OmniMoe = thinker_of(
    kQwen3OmniNames, kQwen3OmniTypes, R"({"model_type": "qwen3_omni_moe_text", "head_dim": 128})");

}  // namespace tgi
