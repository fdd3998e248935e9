// Phi-4-multimodal: a checkpoint that sees and hears, whose text model is Phi 4's. Its adapters for
// images and sounds rest where there is only text. Source: models/phi4_multimodal in
// `transformers`, and what the published files call their tensors.
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

// "yarn" is longrope's name in old files.
constexpr auto kPhi4RopeTypes = std::to_array<std::string_view>({"default", "longrope", "su"});

ModelConfig read_phi4_multimodal(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 200064,
                                                   .default_hidden_size = 3072,
                                                   .default_num_kv_heads = 8,
                                                   .default_intermediate = 8192,
                                                   .default_max_positions = 131072,
                                                   .default_norm_eps = 1e-5,
                                                   .default_bos = 199999,
                                                   .default_eos = -1});
  if (!config.has("eos_token_id") && model.vocab_size > 200020) {
    model.eos_token_ids = {199999, 200020};
  }
  read_windows(config, {.default_window = 0, .in_all_layers = true}, model);
  read_rope(config, model,
            {.takes_partial = true,
             .default_original_positions = 4096,
             .type_of_yarn = "longrope",
             .types = kPhi4RopeTypes});
  return model;
}

constexpr std::string_view kPhi4NoBiases = "there are no biases";

constexpr auto kPhi4MultimodalFields =
    join_fields(kDecoderFields,
                std::to_array<KnownField>({
                    read_or_null("sliding_window"),
                    read_or_null("layer_types"),
                    harmless_if("attention_bias", "[false]", kPhi4NoBiases),
                    harmless_if("mlp_bias", "[false]", kPhi4NoBiases),
                    harmless_if("lm_head_bias", "[false]", kPhi4NoBiases),
                    harmless_if("full_attn_mod", "[1]", "sliding_window says what layers see"),
                    harmless("interpolate_factor", "rope_scaling says how positions are stretched"),
                    harmless("vision_config", kImages),
                    harmless("img_processor", kImages),
                    harmless("vision_lora", kImages),
                    harmless("embd_layer", kImages),
                    harmless("image_token_id", kImages),
                    harmless("audio_config", kSounds),
                    harmless("audio_processor", kSounds),
                    harmless("audio_token_id", kSounds),
                    harmless("speech_lora", kSounds),
                }));

constexpr auto kPhi4MultimodalNames =
    std::to_array<std::string_view>({"Phi4MultimodalForCausalLM"});
constexpr auto kPhi4MultimodalTypes = std::to_array<std::string_view>({"phi4_multimodal"});
constexpr auto kPhi4MmNames = std::to_array<std::string_view>({"Phi4MMForCausalLM"});
constexpr auto kPhi4MmTypes = std::to_array<std::string_view>({"phi4mm"});

constexpr auto kPhi4MultimodalTensors =
    join_tensors(kLlamaOuterTensors,
                 kLlamaNormTensors,
                 kLlamaOTensors,
                 kFusedMlpTensors,
                 std::to_array<TensorSpec>({
                     {Role::kQkv, "model.layers.{layer}.self_attn.qkv_proj.weight", Dim::kQkv,
                      Dim::kHidden, Split::kRows},
                 }));

// With adapters beside its matrices, as the first files have them.
constexpr auto kPhi4MmTensors =
    join_tensors(kLlamaOuterTensors,
                 kLlamaNormTensors,
                 std::to_array<TensorSpec>({
                     {Role::kQkv, "model.layers.{layer}.self_attn.qkv_proj.base_layer.weight",
                      Dim::kQkv, Dim::kHidden, Split::kRows},
                     {Role::kO, "model.layers.{layer}.self_attn.o_proj.base_layer.weight",
                      Dim::kHidden, Dim::kQ, Split::kColumns},
                     {Role::kGateUp, "model.layers.{layer}.mlp.gate_up_proj.base_layer.weight",
                      Dim::kGateUp, Dim::kHidden, Split::kRows},
                     {Role::kDown, "model.layers.{layer}.mlp.down_proj.base_layer.weight",
                      Dim::kHidden, Dim::kIntermediate, Split::kColumns},
                 }));

constexpr auto kPhi4MultimodalIgnored = std::to_array<std::string_view>({
    ".rotary_emb.inv_freq",
    "embed_tokens_extend.*",
    ".lora_A.vision.weight",
    ".lora_B.vision.weight",
    ".lora_A.speech.weight",
    ".lora_B.speech.weight",
});

}  // namespace

extern const Architecture kPhi4Multimodal;
constexpr Architecture kPhi4Multimodal = {
    .names = kPhi4MultimodalNames,
    .model_types = kPhi4MultimodalTypes,
    .prefix = "model.",
    .read_config = read_phi4_multimodal,
    .fields = kPhi4MultimodalFields,
    .tensors = kPhi4MultimodalTensors,
    .ignored = kPhi4MultimodalIgnored,
};

extern const Architecture kPhi4Mm;
constexpr Architecture kPhi4Mm = {
    .names = kPhi4MmNames,
    .model_types = kPhi4MmTypes,
    .prefix = "model.",
    .read_config = read_phi4_multimodal,
    .fields = kPhi4MultimodalFields,
    .tensors = kPhi4MmTensors,
    .ignored = kPhi4MultimodalIgnored,
};

}  // namespace tgi
