// Gemma 3n (text): Gemma's block with norms before and after each branch, of heads of q, k and v,
// and a low-rank branch beside attention. A token has several streams of hidden states, of which
// layers work on one, and a row of its own for each layer; the first layers keep few numbers of
// their MLP's gate; the last ones read the keys and values of the last one of their kind before.
// Source: models/gemma3n in `transformers`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/families/gemma_shared.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kGemma3nDecoder = {
    .activation = "hidden_activation",
    .default_vocab_size = 262400,
    .default_hidden_size = 2048,
    .default_num_layers = 35,
    .default_num_heads = 8,
    .default_num_kv_heads = 2,
    .default_head_dim = 256,
    .default_intermediate = 16384,
    .default_max_positions = 32768,
    .default_activation = "gelu_pytorch_tanh",
    .default_tied = true,
    .default_bos = 2,
    .default_eos = 1,
};
constexpr int32_t kDefaultSparseLayers = 10;
constexpr double kDefaultSparsity = 0.95;

// How many standard deviations above the mean the share `p` of a normal distribution ends. The
// interval is halved until it is down to what doubles tell apart.
double normal_quantile(double p) {
  double low = -40.0;
  double high = 40.0;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2.0;
    (0.5 * std::erfc(-middle / std::numbers::sqrt2) < p ? low : high) = middle;
  }
  return (low + high) / 2.0;
}

const Json& list_of_layers(const JsonReader& config, std::string_view key, int32_t num_layers) {
  const Json& list = config.json().at(std::string(key));
  if (!list.is_array() || list.size() != static_cast<size_t>(num_layers)) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("{}: expected a list of {} entries, one per layer, got {}", config.path_of(key),
                    num_layers, list.is_array() ? fmt::format("{}", list.size()) : list.dump()));
  }
  return list;
}

// One number for all layers, or one for each.
std::vector<int32_t> read_intermediate_sizes(const JsonReader& config) {
  constexpr std::string_view kKey = "intermediate_size";
  const int32_t num_layers =
      read_size(config, "num_hidden_layers", kGemma3nDecoder.default_num_layers, kMaxLayers);
  if (!config.has(kKey) || !config.json().at(std::string(kKey)).is_array()) return {};
  std::vector<int32_t> out;
  for (const Json& each : list_of_layers(config, kKey, num_layers)) {
    if (!each.is_number_integer()) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}[{}]: expected a number of columns, got {}", config.path_of(kKey),
                              out.size(), each.dump()));
    }
    out.push_back(check_size(config, kKey, each.get<int64_t>(), kMaxIntermediateSize));
  }
  return out;
}

ModelConfig read_sizes(const JsonReader& config) {
  const std::vector<int32_t> sizes = read_intermediate_sizes(config);
  if (sizes.empty()) return read_decoder_config(config, kGemma3nDecoder);
  Json json = config.json();
  json["intermediate_size"] = *std::ranges::max_element(sizes);
  ModelConfig model = read_decoder_config(config.in_place(json), kGemma3nDecoder);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != model.intermediate_size) model.layers[i].intermediate_size = sizes[i];
  }
  return model;
}

// The share of a gate's numbers that become 0, if they are spread as a normal distribution is.
void read_sparsity(const JsonReader& config, ModelConfig& model) {
  constexpr std::string_view kKey = "activation_sparsity_pattern";
  std::vector<double> shares(model.layers.size(), 0.0);
  if (config.has(kKey)) {
    const Json& list = list_of_layers(config, kKey, model.num_layers);
    for (size_t i = 0; i < shares.size(); ++i) {
      const double share = list[i].is_number() ? list[i].get<double>() : -1.0;
      if (!(share >= 0.0 && share < 1.0)) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("{}[{}]: expected 0 or more, and less than 1, got {}",
                                config.path_of(kKey), i, list[i].dump()));
      }
      shares[i] = share;
    }
  } else if (model.num_layers > kDefaultSparseLayers) {
    std::fill_n(shares.begin(), kDefaultSparseLayers, kDefaultSparsity);
  }
  for (size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] > 0.0)
      model.layers[i].gate_cutoff = static_cast<float>(normal_quantile(shares[i]));
  }
}

void read_streams(const JsonReader& config, ModelConfig& model) {
  StreamsConfig& streams = model.streams;
  streams.count = read_size(config, "altup_num_inputs", 4, kMaxStreams);
  if (streams.count < 2) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected 2 to {}, got {}", config.path_of("altup_num_inputs"),
                            kMaxStreams, streams.count));
  }
  const int64_t active = config.integer_or("altup_active_idx", 0);
  if (active < 0 || active >= streams.count) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected 0 to {}, got {}", config.path_of("altup_active_idx"),
                            streams.count - 1, active));
  }
  streams.active = static_cast<int32_t>(active);
  streams.has_scales = config.boolean_or("altup_correct_scale", true);
}

ModelConfig read_gemma3n(const JsonReader& config) {
  ModelConfig model = read_sizes(config);
  model.embedding_multiplier = std::sqrt(static_cast<float>(model.hidden_size));
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.attention_scale = 1.0F;
  model.logit_softcap =
      read_optional_positive(config, "final_logit_softcapping", 30.0).value_or(0.0F);
  read_windows(config, {.default_window = 512, .default_pattern = 5, .null_is_no_window = false},
               model);
  read_rope_by_window(
      config, model,
      {.theta_name = "rope_local_base_freq",
       .layer_type = "sliding_attention",
       .is_scaled = false,
       .widens_context = false},
      {.default_theta = 1e6, .layer_type = "full_attention", .widens_context = false});
  read_shared_kv(config, 15, model);
  read_sparsity(config, model);
  read_streams(config, model);
  model.laurel_rank = read_size(config, "laurel_rank", 64, kMaxIntermediateSize);
  // A token that the table has no row for, which stands for an image or a sound, takes the first.
  model.layer_inputs.size =
      read_size(config, "hidden_size_per_layer_input", 256, kMaxIntermediateSize);
  model.layer_inputs.vocab_size =
      read_size(config, "vocab_size_per_layer_input", 262144, kMaxVocabSize);
  return model;
}

constexpr auto kGemma3nFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("hidden_size"),
    read("intermediate_size"),
    read("num_hidden_layers"),
    read("num_attention_heads"),
    read_or_null("num_key_value_heads"),
    read("head_dim"),
    read("hidden_activation"),
    read("max_position_embeddings"),
    read("rms_norm_eps"),
    read_or_null("tie_word_embeddings"),
    read("rope_theta"),
    read("rope_local_base_freq"),
    read_or_null("rope_scaling"),
    read_or_null("rope_parameters"),
    read("attention_bias"),
    harmless("query_pre_attn_scalar", "scores are not scaled"),
    read("sliding_window"),
    read_or_null("layer_types"),
    read_or_null("final_logit_softcapping"),
    harmless_if("use_bidirectional_attention", "[false]", "a token never sees those after it"),
    read("num_kv_shared_layers"),
    read("vocab_size_per_layer_input"),
    read("hidden_size_per_layer_input"),
    read("altup_num_inputs"),
    read("altup_active_idx"),
    read("altup_correct_scale"),
    harmless("altup_coef_clip", kOnlyTraining),
    harmless("altup_lr_multiplier", kOnlyTraining),
    read("laurel_rank"),
    read_or_null("activation_sparsity_pattern"),
});

constexpr bool has_stream_scales(const ModelConfig& config, int32_t /*layer*/) {
  return config.streams.has_scales;
}

constexpr auto kStreamTensors = std::to_array<TensorSpec>({
    {Role::kStreamIn, "model.altup_projections.{stream}.weight", Dim::kHidden, Dim::kHidden},
    {Role::kStreamOut, "model.altup_unembed_projections.{stream}.weight", Dim::kHidden,
     Dim::kHidden},
    {Role::kStreamRouter, "model.layers.{layer}.altup.modality_router.weight", Dim::kStreams,
     Dim::kHidden},
    {Role::kStreamRouterNorm, "model.layers.{layer}.altup.router_norm.weight", Dim::kOne,
     Dim::kHidden},
    {Role::kStreamPrediction, "model.layers.{layer}.altup.prediction_coefs.weight", Dim::kOne,
     Dim::kStreamPredictions},
    {Role::kStreamCorrection, "model.layers.{layer}.altup.correction_coefs.weight", Dim::kOne,
     Dim::kStreamCorrections},
    {Role::kStreamColumnScales, "model.layers.{layer}.altup.correct_output_scale", Dim::kOne,
     Dim::kHidden, Split::kNone, has_stream_scales},
});

constexpr auto kLaurelTensors = std::to_array<TensorSpec>({
    {Role::kLaurelIn, "model.layers.{layer}.laurel.linear_left.weight", Dim::kLaurelRank,
     Dim::kHidden},
    {Role::kLaurelOut, "model.layers.{layer}.laurel.linear_right.weight", Dim::kHidden,
     Dim::kLaurelRank},
    {Role::kLaurelNorm, "model.layers.{layer}.laurel.post_laurel_norm.weight", Dim::kOne,
     Dim::kHidden},
});

constexpr auto kGemma3nTensors = join_tensors(kLlamaOuterTensors,
                                              kFourNormTensors,
                                              kSharedKvAttentionTensors,
                                              kLlamaOTensors,
                                              kLlamaOBiasTensors,
                                              kLlamaMlpTensors,
                                              kLayerInputTensors,
                                              kStreamTensors,
                                              kLaurelTensors);

// The scales are stored where they are not used, too.
constexpr auto kGemma3nIgnored = std::to_array<std::string_view>({
    ".self_attn.k_proj.weight",
    ".self_attn.v_proj.weight",
    ".self_attn.k_norm.weight",
    ".altup.correct_output_scale",
});

constexpr auto kGemma3nMultimodalFields =
    join_fields(kSoundAndImageFields,
                std::to_array<KnownField>({
                    harmless("audio_soft_tokens_per_image", kSounds),
                }));

constexpr auto kGemma3nNames = std::to_array<std::string_view>({"Gemma3nForCausalLM"});
constexpr auto kGemma3nTypes = std::to_array<std::string_view>({"gemma3n_text"});
constexpr auto kGemma3nMultimodalNames =
    std::to_array<std::string_view>({"Gemma3nForConditionalGeneration"});
constexpr auto kGemma3nMultimodalTypes = std::to_array<std::string_view>({"gemma3n"});

}  // namespace

extern const Architecture kGemma3n;
constexpr Architecture kGemma3n = {
    .names = kGemma3nNames,
    .model_types = kGemma3nTypes,
    .prefix = "model.",
    .read_config = read_gemma3n,
    .fields = kGemma3nFields,
    .tensors = kGemma3nTensors,
    .ignored = kGemma3nIgnored,
};

extern const Architecture kGemma3nMultimodal;
constexpr Architecture kGemma3nMultimodal = multimodal_of(kGemma3nMultimodalNames,
                                                          kGemma3nMultimodalTypes,
                                                          R"({"model_type": "gemma3n_text"})",
                                                          kGemma3nMultimodalFields,
                                                          kSoundAndImageIgnored);

}  // namespace tgi
