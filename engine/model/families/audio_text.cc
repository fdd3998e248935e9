// Checkpoints that hear around a text model of another family, which text_config names: Voxtral,
// Qwen2-Audio, Audio Flamingo 3, Music Flamingo, Granite Speech, Qwen3-ASR, GLM-ASR, Fun-ASR-Nano,
// VibeVoice-ASR and MOSS-Transcribe-Diarize. Source: the models of these names in `transformers`.
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
                                                  harmless("adaptor_config", kSounds),
                                                  harmless("timestamp_token_id", kSounds),
                                                  harmless("token_classification_bias", kSounds),
                                                  harmless("audio_merge_size", kSounds),
                                                  harmless("audio_chunk_size", kSounds),
                                              }));

constexpr auto kVibeVoiceFields =
    join_fields(std::to_array<KnownField>({
                    kNeverTied,
                    harmless("acoustic_tokenizer_encoder_config", kSounds),
                    harmless("semantic_tokenizer_encoder_config", kSounds),
                    harmless("acoustic_tokenizer_chunk_size", kSounds),
                    harmless("audio_bos_token_id", kSounds),
                    harmless("audio_eos_token_id", kSounds),
                }),
                kAudioTextFields);
constexpr auto kVibeVoiceIgnored = std::to_array<std::string_view>({
    "acoustic_tokenizer_encoder.*",
    "semantic_tokenizer_encoder.*",
    "multi_modal_projector.*",
});

// What rotates sounds stands beside text_config.
constexpr auto kMusicFlamingoFields = join_fields(kAudioTextFields,
                                                  std::to_array<KnownField>({
                                                      harmless("audio_bos_token_id", kSounds),
                                                      harmless("audio_eos_token_id", kSounds),
                                                      harmless("audio_frame_step", kSounds),
                                                      harmless("rope_parameters", kSounds),
                                                      harmless("rope_theta", kSounds),
                                                      harmless("partial_rotary_factor", kSounds),
                                                      harmless("max_position_embeddings", kSounds),
                                                      harmless("head_dim", kSounds),
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
constexpr auto kMusicFlamingoNames =
    std::to_array<std::string_view>({"MusicFlamingoForConditionalGeneration"});
constexpr auto kMusicFlamingoTypes = std::to_array<std::string_view>({"musicflamingo"});
constexpr auto kGraniteSpeechNames = std::to_array<std::string_view>(
    {"GraniteSpeechForConditionalGeneration", "GraniteSpeechPlusForConditionalGeneration"});
constexpr auto kGraniteSpeechTypes =
    std::to_array<std::string_view>({"granite_speech", "granite_speech_plus"});

constexpr auto kQwen3AsrNames =
    std::to_array<std::string_view>({"Qwen3ASRForConditionalGeneration"});
constexpr auto kQwen3AsrTypes = std::to_array<std::string_view>({"qwen3_asr"});
constexpr auto kGlmAsrNames = std::to_array<std::string_view>({"GlmAsrForConditionalGeneration"});
constexpr auto kGlmAsrTypes = std::to_array<std::string_view>({"glmasr"});
constexpr auto kFunAsrNames =
    std::to_array<std::string_view>({"FunAsrNanoForConditionalGeneration"});
constexpr auto kFunAsrTypes = std::to_array<std::string_view>({"fun_asr_nano"});
constexpr auto kVibeVoiceNames =
    std::to_array<std::string_view>({"VibeVoiceAsrForConditionalGeneration"});
constexpr auto kVibeVoiceTypes = std::to_array<std::string_view>({"vibevoice_asr"});
constexpr auto kMossNames =
    std::to_array<std::string_view>({"MossTranscribeDiarizeForConditionalGeneration"});
constexpr auto kMossTypes = std::to_array<std::string_view>({"moss_transcribe_diarize"});

constexpr std::string_view kQwen3AsrText =
    R"({"model_type": "qwen3", "hidden_size": 2048, "intermediate_size": 6144,
        "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8,
        "head_dim": 128, "max_position_embeddings": 65536, "tie_word_embeddings": true,
        "eos_token_id": [151643, 151645]})";
constexpr std::string_view kGlmAsrText =
    R"({"model_type": "llama", "vocab_size": 59264, "hidden_size": 2048,
        "intermediate_size": 6144, "num_hidden_layers": 28, "num_attention_heads": 16,
        "num_key_value_heads": 4, "max_position_embeddings": 8192, "rms_norm_eps": 1e-05,
        "eos_token_id": [59246, 59253, 59255], "tie_word_embeddings": true})";
constexpr std::string_view kFunAsrText =
    R"({"model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072,
        "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8,
        "max_position_embeddings": 40960, "tie_word_embeddings": true})";
constexpr std::string_view kMossText =
    R"({"model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072,
        "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8,
        "max_position_embeddings": 131072, "rope_theta": 1000000.0, "tie_word_embeddings": true})";

constexpr std::string_view kVoxtralText =
    R"({"model_type": "llama", "vocab_size": 131072, "hidden_size": 3072,
        "intermediate_size": 8192, "num_hidden_layers": 30, "num_key_value_heads": 8,
        "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 100000000.0,
        "head_dim": 128})";

}  // namespace

extern const Architecture kVoxtral, kAroundQwen2, kGraniteSpeech, kQwen3Asr, kGlmAsr, kFunAsrNano,
    kVibeVoiceAsr, kMossTranscribe, kMusicFlamingo;
constexpr Architecture kQwen3Asr = multimodal_of(
    kQwen3AsrNames, kQwen3AsrTypes, kQwen3AsrText, kAudioTextFields, kAudioTextIgnored);
constexpr Architecture kGlmAsr = with_gaps_filled(
    multimodal_of(kGlmAsrNames, kGlmAsrTypes, kGlmAsrText, kAudioTextFields, kAudioTextIgnored));
constexpr Architecture kFunAsrNano =
    multimodal_of(kFunAsrNames, kFunAsrTypes, kFunAsrText, kAudioTextFields, kAudioTextIgnored);
constexpr Architecture kVibeVoiceAsr = with_own_head(multimodal_of(kVibeVoiceNames,
                                                                   kVibeVoiceTypes,
                                                                   R"({"model_type": "qwen2"})",
                                                                   kVibeVoiceFields,
                                                                   kVibeVoiceIgnored));
constexpr Architecture kMossTranscribe =
    multimodal_of(kMossNames, kMossTypes, kMossText, kAudioTextFields, kAudioTextIgnored);
constexpr Architecture kVoxtral = with_gaps_filled(
    multimodal_of(kVoxtralNames, kVoxtralTypes, kVoxtralText, kAudioTextFields, kAudioTextIgnored));
constexpr Architecture kAroundQwen2 = multimodal_of(kAroundQwen2Names,
                                                    kAroundQwen2Types,
                                                    R"({"model_type": "qwen2"})",
                                                    kAudioTextFields,
                                                    kAudioTextIgnored);
constexpr Architecture kMusicFlamingo = multimodal_of(kMusicFlamingoNames,
                                                      kMusicFlamingoTypes,
                                                      R"({"model_type": "qwen2"})",
                                                      kMusicFlamingoFields,
                                                      kAudioTextIgnored);
constexpr Architecture kGraniteSpeech =
    multimodal_of(kGraniteSpeechNames,
                  kGraniteSpeechTypes,
                  R"({"model_type": "granite", "tie_word_embeddings": true})",
                  kGraniteSpeechFields,
                  kGraniteSpeechIgnored);

}  // namespace tgi
