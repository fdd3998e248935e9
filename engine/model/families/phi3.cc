// Phi 3, 3.5 and 4, and the text of those that see: Llama's block with q, k and v in one matrix and
// gate and up in another, and rotary embeddings that LongRoPE stretches.
// Source: models/phi3 in `transformers`.
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
constexpr auto kPhi3RopeTypes = std::to_array<std::string_view>({"default", "longrope", "su"});

ModelConfig read_phi3(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 32064,
                                                   .default_hidden_size = 3072,
                                                   .default_intermediate = 8192,
                                                   .default_max_positions = 4096,
                                                   .default_norm_eps = 1e-5,
                                                   .default_eos = 32000});
  read_windows(config, {.default_window = 0, .in_all_layers = true}, model);
  read_rope(config, model,
            {.takes_partial = true,
             .default_original_positions = 4096,
             .type_of_yarn = "longrope",
             .types = kPhi3RopeTypes});
  return model;
}

constexpr auto kPhi3Fields = join_fields(
    kDecoderFields,
    std::to_array<KnownField>({
        read_or_null("sliding_window"),
        read_or_null("layer_types"),
        harmless_if("attention_bias", "[false]", "there are no biases"),
        harmless_if("use_sliding_window", "[true]", "sliding_window alone says it, null is none"),
    }));

constexpr auto kPhi3Names = std::to_array<std::string_view>({"Phi3ForCausalLM"});
constexpr auto kPhi3Types = std::to_array<std::string_view>({"phi3"});

constexpr auto kPhi3Tensors =
    join_tensors(kLlamaOuterTensors,
                 kLlamaNormTensors,
                 kLlamaOTensors,
                 std::to_array<TensorSpec>({
                     {Role::kQkv, "model.layers.{layer}.self_attn.qkv_proj.weight", Dim::kQkv,
                      Dim::kHidden, Split::kRows},
                     {Role::kGateUp, "model.layers.{layer}.mlp.gate_up_proj.weight", Dim::kGateUp,
                      Dim::kHidden, Split::kRows},
                     {Role::kDown, "model.layers.{layer}.mlp.down_proj.weight", Dim::kHidden,
                      Dim::kIntermediate, Split::kColumns},
                 }));

// Phi-3-vision and Phi-3.5-vision, which are Phi 3 beside what sees.
constexpr auto kPhi3VisionFields = join_fields(kPhi3Fields,
                                               std::to_array<KnownField>({
                                                   harmless("embd_layer", kImages),
                                                   harmless("img_processor", kImages),
                                               }));
constexpr auto kPhi3VisionNames = std::to_array<std::string_view>({"Phi3VForCausalLM"});
constexpr auto kPhi3VisionTypes = std::to_array<std::string_view>({"phi3_v"});
constexpr auto kPhi3VisionIgnored = std::to_array<std::string_view>({"vision_embed_tokens.*"});

}  // namespace

extern const Architecture kPhi3, kPhi3Vision;
constexpr Architecture kPhi3Vision = {
    .names = kPhi3VisionNames,
    .model_types = kPhi3VisionTypes,
    .prefix = "model.",
    .read_config = read_phi3,
    .fields = kPhi3VisionFields,
    .tensors = kPhi3Tensors,
    .ignored = kPhi3VisionIgnored,
};
constexpr Architecture kPhi3 = {
    .names = kPhi3Names,
    .model_types = kPhi3Types,
    .prefix = "model.",
    .read_config = read_phi3,
    .fields = kPhi3Fields,
    .tensors = kPhi3Tensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
