// Apertus: Llama's block with an RMS norm on each head of q and k, and an MLP without a gate whose
// activation, xIELU, has learned numbers in each layer. 1.5 also sees and hears: its embedding has
// rows for that which its head does not have.
// Sources: models/apertus, models/apertus1p5 and activations.py in `transformers`;
// https://arxiv.org/abs/2509.14233.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kApertusDecoder = {
    .default_vocab_size = 131072,
    .default_intermediate = 14336,
    .default_max_positions = 65536,
    .default_norm_eps = 1e-5,
    .default_activation = "xielu",
    .takes_xielu = true,
};

// A config without a rope is taken to have this one.
Json with_rope(const Json& config) {
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    if (!config.value(key, Json()).is_null()) return config;
  }
  Json out = config;
  out["rope_scaling"] = {{"rope_type", "llama3"},
                         {"factor", 8.0},
                         {"high_freq_factor", 4.0},
                         {"low_freq_factor", 1.0},
                         {"original_max_position_embeddings", 8192}};
  return out;
}

ModelConfig read_apertus(const JsonReader& given) {
  const Json json = with_rope(given.json());
  const JsonReader config = given.in_place(json);
  ModelConfig model = read_decoder_config(config, kApertusDecoder);
  model.gated_mlp = false;
  model.attention_bias = config.boolean_or("attention_bias", false);
  read_rope(config, model, {.default_theta = 12e6});
  refuse_windows(config, model);
  return model;
}

constexpr std::string_view kDrawn = "output_vocab_size";

// The head draws the first tokens of the vocabulary; those behind stand for images and sounds.
ModelConfig read_apertus15(const JsonReader& config) {
  const int32_t vocab_size = read_size(config, "vocab_size", 266752, kMaxVocabSize);
  const int32_t drawn = read_size(config, kDrawn, vocab_size, kMaxVocabSize);
  if (drawn > vocab_size) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: {} tokens, but vocab_size is {}",
                                                    config.path_of(kDrawn), drawn, vocab_size));
  }
  Json json = config.json();
  json["vocab_size"] = drawn;
  ModelConfig model = read_apertus(config.in_place(json));
  model.unread_rows = vocab_size - drawn;
  if (model.tied_embeddings && model.unread_rows > 0) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: {} of {} tokens, but tie_word_embeddings is true; expected a head "
                            "of its own",
                            config.path_of(kDrawn), drawn, vocab_size));
  }
  return model;
}

constexpr auto kApertusFields =
    join_fields(kDecoderFields,
                std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read_or_null("layer_types"),
                    read_or_null("sliding_window"),
                    read_or_null("use_sliding_window"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                    harmless_if("qk_norm", "[true]", "heads of q and k are normed"),
                    harmless_if("post_norm", "[false]", "norms stand before the branches"),
                }));

constexpr auto kApertus15Fields =
    join_fields(kApertusFields, std::to_array<KnownField>({read_or_null(kDrawn)}));
constexpr auto kApertus15SeeingFields = join_fields(kMultimodalFields,
                                                    std::to_array<KnownField>({
                                                        harmless("audio_config", kSounds),
                                                        harmless("audio_token_id", kSounds),
                                                        harmless("audio_token_offset", kSounds),
                                                        harmless("image_token_offset", kImages),
                                                    }));

constexpr bool has_xielu(const ModelConfig& config, int32_t /*layer*/) {
  return config.activation == Activation::kXielu;
}

constexpr auto kOwnTensors = std::to_array<TensorSpec>({
    {Role::kAttentionNorm, "model.layers.{layer}.attention_layernorm.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kMlpNorm, "model.layers.{layer}.feedforward_layernorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kXieluAlphaP, "model.layers.{layer}.mlp.act_fn.alpha_p", Dim::kOne, Dim::kOne,
     Split::kNone, has_xielu},
    {Role::kXieluAlphaN, "model.layers.{layer}.mlp.act_fn.alpha_n", Dim::kOne, Dim::kOne,
     Split::kNone, has_xielu},
    {.role = Role::kXieluBeta,
     .name = "model.layers.{layer}.mlp.act_fn.beta",
     .rows = Dim::kOne,
     .cols = Dim::kOne,
     .only_if = has_xielu,
     .is_scalar = true},
    {.role = Role::kXieluEps,
     .name = "model.layers.{layer}.mlp.act_fn.eps",
     .rows = Dim::kOne,
     .cols = Dim::kOne,
     .only_if = has_xielu,
     .is_scalar = true},
});

constexpr auto kApertusNames = std::to_array<std::string_view>({"ApertusForCausalLM"});
constexpr auto kApertusTypes = std::to_array<std::string_view>({"apertus"});

constexpr auto kApertus15Names = std::to_array<std::string_view>({"Apertus1p5TextForCausalLM"});
constexpr auto kApertus15Types = std::to_array<std::string_view>({"apertus1p5_text"});
constexpr auto kApertus15SeeingNames =
    std::to_array<std::string_view>({"Apertus1p5ForConditionalGeneration"});
constexpr auto kApertus15SeeingTypes = std::to_array<std::string_view>({"apertus1p5"});
constexpr auto kApertus15Ignored =
    std::to_array<std::string_view>({"vision_tokenizer.*", "audio_tokenizer.*"});

constexpr auto kApertusBlockTensors = join_tensors(kOwnTensors,
                                                   kLlamaAttentionTensors,
                                                   kLlamaQkvBiasTensors,
                                                   kLlamaOBiasTensors,
                                                   kQkNormTensors,
                                                   kUngatedMlpTensors);
constexpr auto kApertusTensors = join_tensors(kLlamaOuterTensors, kApertusBlockTensors);
constexpr auto kApertus15Tensors = join_tensors(
    std::to_array<TensorSpec>({
        {Role::kTokenEmbedding, "model.embed_tokens.weight", Dim::kImagesVocab, Dim::kHidden},
        {Role::kFinalNorm, "model.norm.weight", Dim::kOne, Dim::kHidden},
        {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
    }),
    kApertusBlockTensors);

}  // namespace

extern const Architecture kApertus;
constexpr Architecture kApertus = {
    .names = kApertusNames,
    .model_types = kApertusTypes,
    .prefix = "model.",
    .read_config = read_apertus,
    .fields = kApertusFields,
    .tensors = kApertusTensors,
    .ignored = kRotaryTables,
};

// Files of the text model alone call its tensors as those that see do.
extern const Architecture kApertus15Text, kApertus15;
constexpr Architecture kApertus15Text = {
    .names = kApertus15Names,
    .model_types = kApertus15Types,
    .prefix = "language_model.",
    .read_config = read_apertus15,
    .fields = kApertus15Fields,
    .tensors = kApertus15Tensors,
    .ignored = kRotaryTables,
};
constexpr Architecture kApertus15 = multimodal_of(kApertus15SeeingNames,
                                                  kApertus15SeeingTypes,
                                                  R"({"model_type": "apertus1p5_text"})",
                                                  kApertus15SeeingFields,
                                                  kApertus15Ignored);

}  // namespace tgi
