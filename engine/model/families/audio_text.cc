// Checkpoints that hear around a text model of another family, which text_config names: Voxtral,
// Qwen2-Audio, Audio Flamingo 3 and Granite Speech. Source: the models of these names in
// `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"

namespace tgi {
namespace {

constexpr auto kAudioTextFields = join_fields(kMultimodalFields,
                                              std::to_array<KnownField>({
                                                  harmless("vocab_size", "text_config says it"),
                                                  harmless("hidden_size", "text_config says it"),
                                                  harmless("ignore_index", kOnlyTraining),
                                                  harmless("audio_config", kSounds),
                                                  harmless("audio_token_id", kSounds),
                                                  harmless("audio_token_index", kSounds),
                                                  harmless("projector_bias", kSounds),
                                              }));

// What adapts the text model to sounds is a LoRA adapter, which text does without.
constexpr auto kGraniteSpeechFields = join_fields(kAudioTextFields,
                                                  std::to_array<KnownField>({
                                                      harmless("encoder_config", kSounds),
                                                      harmless("projector_config", kSounds),
                                                      harmless("has_lora_adapter", kSounds),
                                                      harmless("downsample_rate", kSounds),
                                                      harmless("window_size", kSounds),
                                                      harmless("encoder_hidden_layers", kSounds),
                                                  }));
constexpr auto kGraniteSpeechIgnored =
    std::to_array<std::string_view>({"encoder.*", "projector.*"});

constexpr auto kAudioTextIgnored =
    std::to_array<std::string_view>({"audio_tower.*", "multi_modal_projector.*"});

constexpr auto kVoxtralNames = std::to_array<std::string_view>({"VoxtralForConditionalGeneration"});
constexpr auto kVoxtralTypes = std::to_array<std::string_view>({"voxtral"});
constexpr auto kAroundQwen2Names = std::to_array<std::string_view>(
    {"Qwen2AudioForConditionalGeneration", "AudioFlamingo3ForConditionalGeneration"});
constexpr auto kAroundQwen2Types =
    std::to_array<std::string_view>({"qwen2_audio", "audioflamingo3"});
constexpr auto kGraniteSpeechNames = std::to_array<std::string_view>(
    {"GraniteSpeechForConditionalGeneration", "GraniteSpeechPlusForConditionalGeneration"});
constexpr auto kGraniteSpeechTypes =
    std::to_array<std::string_view>({"granite_speech", "granite_speech_plus"});

constexpr std::string_view kVoxtralText =
    R"({"model_type": "llama", "vocab_size": 131072, "hidden_size": 3072,
        "intermediate_size": 8192, "num_hidden_layers": 30, "num_key_value_heads": 8,
        "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 100000000.0,
        "head_dim": 128})";

}  // namespace

extern const Architecture kVoxtral, kAroundQwen2, kGraniteSpeech;
constexpr Architecture kVoxtral =
    multimodal_of(kVoxtralNames, kVoxtralTypes, kVoxtralText, kAudioTextFields, kAudioTextIgnored);
constexpr Architecture kAroundQwen2 = multimodal_of(kAroundQwen2Names,
                                                    kAroundQwen2Types,
                                                    R"({"model_type": "qwen2"})",
                                                    kAudioTextFields,
                                                    kAudioTextIgnored);
constexpr Architecture kGraniteSpeech =
    multimodal_of(kGraniteSpeechNames,
                  kGraniteSpeechTypes,
                  R"({"model_type": "granite", "tie_word_embeddings": true})",
                  kGraniteSpeechFields,
                  kGraniteSpeechIgnored);

}  // namespace tgi
