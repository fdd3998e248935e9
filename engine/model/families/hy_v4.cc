// Hunyuan 4: DeepSeek V3.2's latent attention and experts, with a sink for each head and gates of
// what is attended to; an indexer in some layers, which others see what it chose by; experts whose
// gates are held within a limit. The hidden states are several streams, which are connected to
// every branch. Hy 4 with eyes has a larger one of these inside. Source: models/hy_v4 and hy_v4_vl
// in `transformers`.
#include <array>
#include <string_view>

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

void read_connected_streams(const JsonReader& config, ModelConfig& model) {
  model.streams = {.count = read_size(config, "hc_mult", 4, kMaxStreams),
                   .connects = true,
                   .eps = read_positive(config, "hc_eps", 1e-6),
                   .magnitude = read_positive(config, "hc_magnitude", 2.0),
                   .adds_eps_to_branch = true};
}

struct HySizes {
  int64_t hidden = 2816;
  int64_t layers = 34;
  int64_t heads = 32;
  int64_t intermediate = 6912;
  int64_t expert_intermediate = 768;
  int64_t query_rank = 1536;
  int64_t index_heads = 16;
};

// What differs between the two.
struct HyTraits {
  HySizes defaults{};
  bool rotates_pairs = false;  // neighbours of a head, rather than its halves
};

// The first layer and every fourth behind it choose, unless the file says otherwise. The last
// columns of a head are rotated.
void read_hy_indexer(const JsonReader& config, const HyTraits& traits, ModelConfig& model) {
  read_sparse_attention(config, {.default_num_heads = traits.defaults.index_heads},
                        traits.rotates_pairs, model);
  model.indexer.norm_eps = model.norm_eps;
  model.indexer.first_rotated = model.indexer.head_dim - model.latent.rotary_dim;
  if (config.has("indexer_types")) return read_indexer_types(config, model);
  for (size_t i = 0; i < model.layers.size(); ++i) {
    model.layers[i].seen =
        i == 0 || (i - 1) % 4 == 0 ? SeenTokens::kOwnChoice : SeenTokens::kLastChoice;
  }
}

ModelConfig read_hy_v4_of(const JsonReader& config, const HyTraits& traits) {
  const HySizes& defaults = traits.defaults;
  ModelConfig model = read_decoder_config(
      config, latent_decoder_fields({.default_vocab_size = 120832,
                                     .default_hidden_size = defaults.hidden,
                                     .default_num_layers = defaults.layers,
                                     .default_num_heads = defaults.heads,
                                     .default_intermediate = defaults.intermediate,
                                     .default_max_positions = 262144,
                                     .default_norm_eps = 1e-5,
                                     .default_bos = 120000,
                                     .default_eos = 120025}));
  read_latent_attention(config,
                        {.default_query_rank = defaults.query_rank,
                         .default_kept_dim = 192,
                         .default_value_dim = 256},
                        {.interleaved = traits.rotates_pairs}, model);
  read_deepseek_experts(config,
                        {.default_num_experts = 256,
                         .default_top_k = 8,
                         .default_intermediate = defaults.expert_intermediate,
                         .default_scale = 2.827},
                        model);
  if (!read_mlp_layer_types(config, model)) {
    for (size_t i = 1; i < model.layers.size(); ++i) model.layers[i].mlp = MlpKind::kExperts;
  }
  const float limit = read_positive(config, "swiglu_limit", 10.0);
  for (LayerPlan& layer : model.layers) layer.expert_limits = {.limit = limit, .up_limit = limit};
  read_hy_indexer(config, traits, model);
  read_connected_streams(config, model);
  model.has_output_gate = true;
  model.latent.gates_values = true;
  return model;
}

ModelConfig read_hy_v4(const JsonReader& config) {
  return read_hy_v4_of(config, {});
}

ModelConfig read_hy_v4_vl_text(const JsonReader& config) {
  ModelConfig model = read_hy_v4_of(config, {.defaults = {.hidden = 6144,
                                                          .layers = 78,
                                                          .heads = 64,
                                                          .intermediate = 18432,
                                                          .expert_intermediate = 2048,
                                                          .query_rank = 2048,
                                                          .index_heads = 32},
                                             .rotates_pairs = true});
  model.latent.norm_eps = model.norm_eps;
  return model;
}

constexpr auto kHyV4Fields = join_fields(
    std::to_array<KnownField>({
        read("hc_mult"),
        read("hc_magnitude"),
        read("hc_eps"),
        read("swiglu_limit"),
        read_or_null("indexer_types"),
        harmless("learnable_sink_init", "is where training begins"),
        harmless("first_k_dense_replace", "mlp_layer_types says which layers have experts"),
    }),
    kSparseAttentionFields,
    kLatentFields,
    kDecoderFields,
    kDeepSeekExpertFields);

constexpr auto kHyV4VlTextNames = std::to_array<std::string_view>({"HYV4VLTextModel"});
constexpr auto kHyV4VlTextTypes = std::to_array<std::string_view>({"hy_v4_vl_text"});
constexpr auto kHyV4VlNames = std::to_array<std::string_view>({"HYV4VLForConditionalGeneration"});
constexpr auto kHyV4VlTypes = std::to_array<std::string_view>({"hy_v4_vl"});

constexpr auto kHyV4Names = std::to_array<std::string_view>({"HYV4ForCausalLM"});
constexpr auto kHyV4Types = std::to_array<std::string_view>({"hy_v4"});

constexpr auto kHyV4CommonTensors = join_tensors(
    kLlamaOuterTensors,
    kLlamaNormTensors,
    kLatentAttentionTensors,
    kSparseAttentionTensors,
    kLlamaMlpTensors,
    kDeepSeekExpertTensors,
    std::to_array<TensorSpec>({
        {Role::kHeadConnection, "model.hc_head.hc_fn", Dim::kHeadConnection, Dim::kAllStreams},
        {Role::kHeadConnectionBase, "model.hc_head.hc_base", Dim::kOne, Dim::kHeadConnection},
        {Role::kHeadConnectionScale, "model.hc_head.hc_scale", Dim::kOne, Dim::kOne},
        {Role::kAttentionConnection, "model.layers.{layer}.attn_hc.fn", Dim::kConnection,
         Dim::kAllStreams},
        {Role::kAttentionConnectionBase, "model.layers.{layer}.attn_hc.base", Dim::kOne,
         Dim::kConnection},
        {Role::kAttentionConnectionScale, "model.layers.{layer}.attn_hc.scale", Dim::kOne,
         Dim::kConnectionScales},
        {Role::kMlpConnection, "model.layers.{layer}.ffn_hc.fn", Dim::kConnection,
         Dim::kAllStreams},
        {Role::kMlpConnectionBase, "model.layers.{layer}.ffn_hc.base", Dim::kOne, Dim::kConnection},
        {Role::kMlpConnectionScale, "model.layers.{layer}.ffn_hc.scale", Dim::kOne,
         Dim::kConnectionScales},
        {Role::kValueGate, "model.layers.{layer}.self_attn.gate_proj.weight", Dim::kHeadValues,
         Dim::kHidden, Split::kRows},
        {Role::kSinks, "model.layers.{layer}.self_attn.sinks", Dim::kOne, Dim::kHeads,
         Split::kRows},
    }));
constexpr auto kHyV4Tensors = join_tensors(kHyV4CommonTensors, kStackedExpertTensors);
constexpr auto kHyV4SeparateTensors = join_tensors(kHyV4CommonTensors, kExpertTensors);

// As they are published, and as `transformers` writes them.
constexpr auto kHyV4Renames = std::to_array<TensorRename>({
    {".hc_pre.hc_", ".hc_"},
    {".hc_attn_layer.hc_pre.", ".hc_attn_layer."},
    {".hc_mlp_layer.hc_pre.", ".hc_mlp_layer."},
    {".hc_attn_layer.hc_", ".attn_hc."},
    {".hc_mlp_layer.hc_", ".ffn_hc."},
    {".hc_head_fn", ".hc_fn"},
    {".hc_head_base", ".hc_base"},
    {".hc_head_scale", ".hc_scale"},
    {".learnable_sink_param", ".sinks"},
    {".linear_gate.", ".gate_proj."},
});

constexpr auto kHyV4Ignored =
    with_indexer_tensors(std::to_array<std::string_view>({"mtp_layers.*"}));

constexpr auto kHyV4VlIgnored =
    std::to_array<std::string_view>({"vision_tower.*", "vit.*", "perceive.*", "patch_merger.*"});

}  // namespace

extern const Architecture kHyV4;
constexpr Architecture kHyV4 = {
    .names = kHyV4Names,
    .model_types = kHyV4Types,
    .prefix = "model.",
    .read_config = read_hy_v4,
    .fields = kHyV4Fields,
    .aliases = kDeepSeekExpertAliases,
    .tensors = kHyV4Tensors,
    .tensors_of_separate_experts = kHyV4SeparateTensors,
    .renames = kHyV4Renames,
    .ignored = kHyV4Ignored,
};

extern const Architecture kHyV4VlText, kHyV4Vl;
constexpr Architecture kHyV4VlText = [] {
  Architecture text = kHyV4;
  text.names = kHyV4VlTextNames;
  text.model_types = kHyV4VlTextTypes;
  text.read_config = read_hy_v4_vl_text;
  return text;
}();
constexpr Architecture kHyV4Vl = multimodal_of(kHyV4VlNames,
                                               kHyV4VlTypes,
                                               R"({"model_type": "hy_v4_vl_text"})",
                                               kMultimodalFields,
                                               kHyV4VlIgnored);

}  // namespace tgi
