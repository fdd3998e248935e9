// Mistral Large 4: latent attention whose queries are made of the stream and scaled by head and
// position, in some layers not rotated, in some over the latents of a layer before; frequencies of
// the rope are learned; an indexer of its own queries chooses what is seen; experts are chosen by a
// softmax, in groups. Its checkpoints are multimodal, and its text model is read.
// Source: models/mistral_large4 in `transformers`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/indexer_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/latent_fields.h"
#include "engine/model/multimodal_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr std::string_view kKvSources = "kv_source_layers";
constexpr std::string_view kRotatedLayers = "no_rope_layers";  // 1: the layer has one

// A config without any is taken to have these.
Json with_default_large4_rope(const Json& config) {
  return with_default_rope(config, "rope_parameters",
                           {{"rope_type", "yarn"},
                            {"rope_theta", 10000.0},
                            {"factor", 2048.0},
                            {"original_max_position_embeddings", 512},
                            {"beta_fast", 32.0},
                            {"beta_slow", 1.0},
                            {"attention_factor", 1.0}});
}

void read_rotated_layers(const JsonReader& config, ModelConfig& model) {
  const std::vector<bool> rotated = read_layer_switches(config, kRotatedLayers, model);
  const int32_t interval = read_size(config, "no_rope_layer_interval", 4, kMaxLayers);
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const bool rotates =
        rotated.empty() ? !ends_pattern(static_cast<int64_t>(i), interval) : rotated[i];
    if (!rotates) model.layers[i].rope = kNoRope;
  }
}

// The class hands on the latents of the last layer of either kind, rotated or not, that another one
// is said to read: a list that means others can't be followed.
void check_sources(const JsonReader& config,
                   const std::vector<int32_t>& sources,
                   const ModelConfig& model) {
  const auto is_read = [&](size_t layer) {
    return std::ranges::count(sources, static_cast<int32_t>(layer)) > 1;
  };
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto source = static_cast<size_t>(sources[i]);
    if (source == i) continue;
    size_t last = i;
    for (size_t before = 0; before < i; ++before) {
      const bool is_alike = model.layers[before].rope == model.layers[i].rope;
      if (is_alike && sources[before] == static_cast<int32_t>(before) && is_read(before)) {
        last = before;
      }
    }
    if (last == source) continue;
    throw Error(Code::kUnsupported,
                fmt::format("{}: layer {} reads the latents of layer {}, which is not the last one "
                            "before it that is {} and read by others",
                            config.path_of(kKvSources), i, source,
                            model.layers[i].rope == kNoRope ? "not rotated" : "rotated"));
  }
}

void read_kv_sources(const JsonReader& config, ModelConfig& model) {
  if (!config.has(kKvSources)) return;
  const Json& list = read_layer_numbers(config, kKvSources, model);
  std::vector<int32_t> sources;
  for (size_t i = 0; i < list.size(); ++i) {
    const bool is_before = list[i].is_number_integer() && list[i].get<int64_t>() >= 0 &&
                           list[i].get<int64_t>() <= static_cast<int64_t>(i);
    const auto source = is_before ? list[i].get<size_t>() : i;
    if (!is_before || (source < i && sources[source] != static_cast<int32_t>(source))) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: entry {} is {}, expected the layer itself or one before it that "
                              "has latents of its own",
                              config.path_of(kKvSources), i, list[i].dump()));
    }
    sources.push_back(static_cast<int32_t>(source));
    if (source < i) model.layers[i].kv_layer = static_cast<int32_t>(source);
  }
  check_sources(config, sources, model);
}

void read_large4_indexer(const JsonReader& config, ModelConfig& model) {
  read_indexer(config, {.default_num_heads = 32}, model);
  IndexerConfig& indexer = model.indexer;
  indexer.weighs_heads = true;
  indexer.norms_stream = true;
  indexer.norm_kind = NormKind::kLayer;
  indexer.norm_eps = 1e-6F;
  read_indexer_types(config, model);
}

ModelConfig read_mistral_large4(const JsonReader& given) {
  const Json json = with_default_large4_rope(given.json());
  const JsonReader config = given.in_place(json);
  ModelConfig model =
      read_decoder_config(config, latent_decoder_fields({.default_vocab_size = 204800,
                                                         .default_hidden_size = 6144,
                                                         .default_num_layers = 72,
                                                         .default_num_heads = 64,
                                                         .default_intermediate = 24576,
                                                         .default_max_positions = 1048576,
                                                         .default_norm_eps = 1e-5}));
  read_latent_attention(config, {.default_query_rank = 0, .default_kept_dim = 64},
                        {.interleaved = true, .widens_context = false}, model);
  model.latent.norm_eps = model.norm_eps;
  read_large4_indexer(config, model);
  read_rotated_layers(config, model);
  read_kv_sources(config, model);
  model.logit_softcap = read_positive(config, "final_logit_softcapping", 30.0);
  read_deepseek_experts(config,
                        {.default_num_experts = 128,
                         .default_top_k = 4,
                         .default_intermediate = 6144,
                         .default_scale = 1.0},
                        model);
  model.experts.route.score = RouterScore::kSoftmax;
  model.experts.has_choice_bias = false;
  if (!read_mlp_layer_types(config, model)) read_first_sparse_layer(config, 1, model);
  return model;
}

constexpr auto kLarge4TextFields =
    join_fields(std::to_array<KnownField>({
                    harmless_if("q_lora_rank", "[null]", "queries are made of the stream"),
                    harmless_if("norm_topk_prob", "[true]", "weights of experts are normalised"),
                    read_or_null("indexer_types"),
                    read_or_null("index_topk_pattern"),
                    read_or_null("index_topk_freq"),
                    read_or_null("index_skip_topk_offset"),
                    read_or_null("no_rope_layers"),
                    read_or_null("no_rope_layer_interval"),
                    read_or_null("kv_source_layers"),
                    read("final_logit_softcapping"),
                    harmless_if("scoring_func", R"(["softmax"])", "scores are of a softmax"),
                }),
                kSparseAttentionFields,
                kLatentFields,
                kDecoderFields,
                kDeepSeekExpertFields);

constexpr auto kLarge4TextNames = std::to_array<std::string_view>({"MistralLarge4TextModel"});
constexpr auto kLarge4TextTypes = std::to_array<std::string_view>({"mistral_large4_text"});
constexpr auto kLarge4Names =
    std::to_array<std::string_view>({"MistralLarge4ForConditionalGeneration"});
constexpr auto kLarge4Types = std::to_array<std::string_view>({"mistral_large4"});

constexpr auto kLarge4CommonTensors = join_tensors(
    kLlamaOuterTensors,
    kLlamaNormTensors,
    kLatentAttentionTensors,
    kIndexerTensors,
    kLlamaMlpTensors,
    kSharedExpertsTensors,
    std::to_array<TensorSpec>({
        {Role::kRopeScales, "model.rotary_emb.alpha", Dim::kOne, Dim::kRotaryPairs},
        {Role::kQueryScale, "model.layers.{layer}.self_attn.softmax_scaling.scale", Dim::kOne,
         Dim::kHeads, Split::kRows},
        {Role::kQueryScaleOffset, "model.layers.{layer}.self_attn.softmax_scaling.bias", Dim::kOne,
         Dim::kHeads, Split::kRows},
        {Role::kIndexerInputNorm, "model.layers.{layer}.self_attn.indexer.q_input_norm.weight",
         Dim::kOne, Dim::kHidden, Split::kNone, chooses_tokens},
        {Role::kIndexerInputNormBias, "model.layers.{layer}.self_attn.indexer.q_input_norm.bias",
         Dim::kOne, Dim::kHidden, Split::kNone, chooses_tokens},
        {Role::kIndexerQuery, "model.layers.{layer}.self_attn.indexer.wq_b.weight",
         Dim::kIndexerQueries, Dim::kHidden, Split::kNone, chooses_tokens},
        {Role::kIndexerScale, "model.layers.{layer}.self_attn.indexer.softmax_scaling.scale",
         Dim::kOne, Dim::kIndexerHeads, Split::kNone, chooses_tokens},
        {Role::kIndexerScaleOffset, "model.layers.{layer}.self_attn.indexer.softmax_scaling.bias",
         Dim::kOne, Dim::kIndexerHeads, Split::kNone, chooses_tokens},
    }));
constexpr auto kLarge4Tensors = join_tensors(kLarge4CommonTensors, kStackedExpertTensors);
constexpr auto kLarge4SeparateTensors = join_tensors(kLarge4CommonTensors, kExpertTensors);

// As they are published. What is within an MLP is not said to be.
constexpr auto kLarge4Renames = std::to_array<TensorRename>({
    {"language_model.", ""},
    {"tok_embeddings.", "embed_tokens."},
    {"lerope.alpha", "rotary_emb.alpha"},
    {"output.weight", "lm_head.weight"},
    {".attention.", ".self_attn."},
    {".attention_norm.", ".input_layernorm."},
    {".ffn_norm.", ".post_attention_layernorm."},
    {".kv_a_norm.", ".kv_a_layernorm."},
    {".wq.", ".q_proj."},
    {".wkv_a_with_mqa.", ".kv_a_proj_with_mqa."},
    {".wkv_b.", ".kv_b_proj."},
    {".wo.", ".o_proj."},
    {".ssmax_scaling.s", ".softmax_scaling.scale"},
    {".ssmax_scaling.b", ".softmax_scaling.bias"},
    {".feed_forward.", ".mlp."},
    {".gate.", ".mlp.gate."},
    {".experts.", ".mlp.experts."},
    {".shared_experts.", ".mlp.shared_experts."},
    {".mlp.mlp.", ".mlp."},
    {".w1.", ".gate_proj."},
    {".w2.", ".down_proj."},
    {".w3.", ".up_proj."},
});

constexpr auto kLarge4Ignored = with_indexer_tensors(std::to_array<std::string_view>({
    "vision_tower.*",
    "vision_encoder.*",
    "multi_modal_projector.*",
    "pre_mm_projector_norm.*",
    "patch_merger.*",
    "vision_language_adapter.*",
    "mtp_dspark.*",
    ".indexer.q_input_norm.weight",
    ".indexer.q_input_norm.bias",
    ".indexer.softmax_scaling.scale",
    ".indexer.softmax_scaling.bias",
}));

}  // namespace

extern const Architecture kMistralLarge4Text;
constexpr Architecture kMistralLarge4Text = {
    .names = kLarge4TextNames,
    .model_types = kLarge4TextTypes,
    .prefix = "model.",
    .read_config = read_mistral_large4,
    .fields = kLarge4TextFields,
    .aliases = kDeepSeekExpertAliases,
    .tensors = kLarge4Tensors,
    .tensors_of_separate_experts = kLarge4SeparateTensors,
    .renames = kLarge4Renames,
    .ignored = kLarge4Ignored,
};

extern const Architecture kMistralLarge4;
constexpr Architecture kMistralLarge4 = multimodal_of(kLarge4Names,
                                                      kLarge4Types,
                                                      R"({"model_type": "mistral_large4_text"})",
                                                      kMultimodalFields,
                                                      kLarge4Ignored,
                                                      "model.");

}  // namespace tgi
