// DeepSeek V4: attention whose heads share one key, which is the value too, in a window of tokens;
// in most layers tokens see what lies behind it as entries that stand for several tokens, all of
// them or those that an indexer chooses. Values are rotated as keys are, so that what is attended
// to is turned back. The hidden states are several streams, which are connected to every branch.
// All layers have experts; in the first ones a table has those of each token. Source:
// models/deepseek_v4 in `transformers`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/indexer_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr int64_t kMaxShortRow = 1 << 16;
constexpr int64_t kMaxTokensPerEntry = 1 << 12;
constexpr double kRotatedPart = 64.0 / 512.0;
constexpr auto kRopeTypes = std::to_array<std::string_view>({"main", "compress"});

constexpr std::string_view kWindow = "sliding_attention";
constexpr std::string_view kSparse = "compressed_sparse_attention";
constexpr std::string_view kHeavy = "heavily_compressed_attention";

[[noreturn]] void refuse_entry(const JsonReader& config,
                               std::string_view key,
                               const std::string& why) {
  throw Error(Code::kInvalidArgument, fmt::format("{}: {}", config.path_of(key), why));
}

// By layer: layer_types, or the numbers of compress_ratios, which are older; else heavily
// compressed ones twice, and from there on every second one.
std::vector<std::string> read_attention_types(const JsonReader& config, const ModelConfig& model) {
  if (config.has("layer_types")) return read_layer_names(config, "layer_types", model);
  std::vector<std::string> out;
  if (!config.has("compress_ratios")) {
    for (size_t i = 0; i < model.layers.size(); ++i) {
      out.emplace_back(i < 2 || i % 2 == 0 ? kHeavy : kSparse);
    }
    return out;
  }
  const std::vector<int32_t> ratios = read_token_ids(config, "compress_ratios");
  if (ratios.size() < model.layers.size()) {
    refuse_entry(config, "compress_ratios",
                 fmt::format("expected {} numbers, one per layer, got {}", model.layers.size(),
                             ratios.size()));
  }
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const int32_t ratio = ratios[i];
    if (ratio != 0 && ratio != 4 && ratio != 128) {
      refuse_entry(config, "compress_ratios",
                   fmt::format("entry {}: expected 0, 4 or 128, got {}", i, ratio));
    }
    out.emplace_back(ratio == 0 ? kWindow : ratio == 4 ? kSparse : kHeavy);
  }
  return out;
}

int32_t read_rate_of(const JsonReader& rates, std::string_view key, int64_t fallback) {
  const int32_t rate = read_size(rates, key, fallback, kMaxTokensPerEntry);
  if (rate < 2) refuse_entry(rates, key, "expected 2 tokens or more for an entry, got 1");
  return rate;
}

// The tokens of an entry, of layers of the type.
int32_t read_rate(const JsonReader& config,
                  std::string_view type,
                  std::string_view old_name,
                  int64_t fallback) {
  if (config.has(old_name)) return read_rate_of(config, old_name, fallback);
  if (!config.has("compress_rates")) return static_cast<int32_t>(fallback);
  const JsonReader rates = config.object("compress_rates");
  rates.refuse_unknown(std::vector<std::string_view>{kSparse, kHeavy});
  return read_rate_of(rates, type, fallback);
}

// Layers that see nothing behind their window have a rope of their own.
void read_ropes(const JsonReader& config, ModelConfig& model) {
  const auto old_size = config.optional_number("qk_rope_head_dim");
  const double part = old_size ? *old_size / model.head_dim : kRotatedPart;
  (void)add_rope(config,
                 {.interleaved = true,
                  .takes_partial = true,
                  .default_partial = part,
                  .layer_type = "main",
                  .layer_types = kRopeTypes,
                  .is_scaled = false,
                  .widens_context = false},
                 model);
  const int32_t scaled = add_rope(config,
                                  {.default_theta = 160000.0,
                                   .theta_name = "compress_rope_theta",
                                   .interleaved = true,
                                   .takes_partial = true,
                                   .default_partial = part,
                                   .layer_type = "compress",
                                   .layer_types = kRopeTypes,
                                   .theta_is_outside = true,
                                   .widens_context = false},
                                  model);
  // Unless the file says so, what is rotated keeps its length, whatever yarn would make of it.
  for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
    if (!config.has(key)) continue;
    const JsonReader object = config.object(key);
    const bool says = object.has("compress") || object.has("attention_factor");
    if (!says) model.ropes[static_cast<size_t>(scaled)].attention_factor = 1.0F;
  }
  // What turns back what these have turned.
  for (size_t i = 0; i < 2; ++i) {
    RopeSpec back = model.ropes[i];
    for (float& frequency : back.inv_freq) frequency = -frequency;
    model.ropes.push_back(std::move(back));
  }
}

void read_attention(const JsonReader& config, ModelConfig& model) {
  LatentConfig& latent = model.latent;
  latent.rank = model.head_dim;
  latent.value_dim = model.head_dim;
  latent.query_rank = read_size(config, "q_lora_rank", 1024, kMaxShortRow);
  latent.norm_eps = model.norm_eps;
  EntriesConfig& entries = model.entries;
  entries.output_groups = read_size(config, "o_groups", 8, kMaxShortRow);
  entries.output_rank = read_size(config, "o_lora_rank", 1024, kMaxShortRow);
  if (model.num_heads % entries.output_groups != 0) {
    refuse_entry(config, "o_groups",
                 fmt::format("{} heads can't be cut into {} groups evenly", model.num_heads,
                             entries.output_groups));
  }
  read_ropes(config, model);
  const int32_t window = read_size(config, "sliding_window", 128, kMaxPositions);
  const int32_t few = read_rate(config, kSparse, "compress_rate_csa", 4);
  const int32_t many = read_rate(config, kHeavy, "compress_rate_hca", 128);
  const std::vector<std::string> types = read_attention_types(config, model);
  for (size_t i = 0; i < types.size(); ++i) {
    LayerPlan& layer = model.layers[i];
    layer.sliding_window = window;
    if (types[i] != kWindow && types[i] != kSparse && types[i] != kHeavy) {
      refuse_entry(config, "layer_types",
                   fmt::format("entry {}: expected {}, {} or {}, got '{}'", i, kWindow, kSparse,
                               kHeavy, types[i]));
    }
    layer.rope = types[i] == kWindow ? 0 : 1;
    layer.back_rope = layer.rope + 2;
    if (types[i] == kWindow) continue;
    layer.entries_overlap = types[i] == kSparse;
    layer.tokens_per_entry = layer.entries_overlap ? few : many;
    if (layer.entries_overlap) layer.seen = SeenTokens::kOwnChoice;
  }
  read_indexer(config, {.default_top_k = 512}, model);
  model.indexer.rope = 1;
  model.indexer.weighs_heads = true;
  model.indexer.reads_short_queries = true;
}

RouterScore read_score(const JsonReader& config) {
  const std::string name = config.string_or("scoring_func", "sqrtsoftplus");
  if (name == "sqrtsoftplus") return RouterScore::kSqrtSoftplus;
  if (name == "sigmoid") return RouterScore::kSigmoid;
  throw Error(Code::kUnsupported, fmt::format("{}: expected sqrtsoftplus or sigmoid, got '{}'",
                                              config.path_of("scoring_func"), name));
}

// The first layers have the experts of each token in a table.
void read_tables(const JsonReader& config, ModelConfig& model) {
  if (!config.has("mlp_layer_types")) {
    const int64_t count = config.integer_or("num_hash_layers", 3);
    for (size_t i = 0; i < model.layers.size(); ++i) {
      model.layers[i].experts_by_token = static_cast<int64_t>(i) < count;
    }
    return;
  }
  const std::vector<std::string> types = read_layer_names(config, "mlp_layer_types", model);
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] != "hash_moe" && types[i] != "moe") {
      refuse_entry(config, "mlp_layer_types",
                   fmt::format("entry {}: expected hash_moe or moe, got '{}'", i, types[i]));
    }
    model.layers[i].experts_by_token = types[i] == "hash_moe";
  }
}

ModelConfig read_deepseek_v4(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.num_kv_heads = {},
                                                   .intermediate_size = "moe_intermediate_size",
                                                   .default_vocab_size = 129280,
                                                   .default_hidden_size = 4096,
                                                   .default_num_layers = 43,
                                                   .default_num_heads = 64,
                                                   .default_head_dim = 512,
                                                   .default_intermediate = 2048,
                                                   .default_max_positions = 1048576,
                                                   .default_bos = 0,
                                                   .default_eos = 1});
  read_attention(config, model);
  model.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(model.head_dim)));
  read_experts(config,
               {.num_experts = "n_routed_experts",
                .default_num_experts = 256,
                .default_top_k = 6,
                .score = read_score(config),
                .normalises = true},
               model);
  model.experts.shared_intermediate_size = model.experts.intermediate_size;
  model.experts.has_choice_bias = true;
  model.experts.route.scale = static_cast<float>(config.number_or("routed_scaling_factor", 1.5));
  use_experts_in_all_layers(model);
  read_tables(config, model);
  if (model.activation != Activation::kSilu) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: {} is not supported, expected silu: gates are limited",
                            config.path_of("hidden_act"), config.json().at("hidden_act").dump()));
  }
  const float limit = read_positive(config, "swiglu_limit", 10.0);
  for (LayerPlan& layer : model.layers) {
    layer.expert_limits = {.limit = limit, .up_limit = limit};
    layer.gate_limits = layer.expert_limits;
  }
  model.streams = {.count = read_size(config, "hc_mult", 4, kMaxStreams),
                   .connects = true,
                   .eps = read_positive(config, "hc_eps", 1e-6),
                   .magnitude = 2.0F,
                   .mixing_turns = read_size(config, "hc_sinkhorn_iters", 20, 1000)};
  return model;
}

constexpr auto kDeepSeekV4Fields = join_fields(
    std::to_array<KnownField>({
        read("q_lora_rank"),
        read("o_groups"),
        read("o_lora_rank"),
        read("sliding_window"),
        read_or_null("layer_types"),
        read_or_null("mlp_layer_types"),
        read_or_null("compress_rates"),
        read_or_null("compress_ratios"),
        read_or_null("compress_rate_csa"),
        read_or_null("compress_rate_hca"),
        read_or_null("num_hash_layers"),
        read_or_null("qk_rope_head_dim"),
        read("compress_rope_theta"),
        read("hc_mult"),
        read("hc_eps"),
        read("hc_sinkhorn_iters"),
        read("swiglu_limit"),
        read("index_topk"),
        read("index_head_dim"),
        read("index_n_heads"),
        read("n_routed_experts"),
        read("num_experts_per_tok"),
        read("moe_intermediate_size"),
        read("routed_scaling_factor"),
        read("scoring_func"),
        harmless("intermediate_size", "all layers have experts, of moe_intermediate_size"),
        harmless_if("num_key_value_heads", "[1]", "all heads share one key"),
        harmless_if("n_shared_experts", "[1]", "one expert is shared"),
        harmless_if("norm_topk_prob", "[true]", "weights are divided by their sum"),
        harmless_if("topk_method", "[\"noaux_tc\"]", "there are no groups of experts"),
        harmless_if("attention_bias", "[false]", "attention has no biases"),
        harmless_if("mlp_bias", "[false]", "MLPs have no biases"),
        harmless("num_nextn_predict_layers", kOnlyDrafts),
        harmless("router_aux_loss_coef", kTrainsRouter),
        harmless("router_jitter_noise", kTrainsRouter),
        harmless("output_router_logits", kTrainsRouter),
    }),
    kDecoderFields);

constexpr bool sees_entries(const ModelConfig& config, int32_t layer) {
  return config.layers[static_cast<size_t>(layer)].tokens_per_entry > 0;
}

constexpr auto kDeepSeekV4AttentionTensors = std::to_array<TensorSpec>({
    {Role::kQueryDown, "model.layers.{layer}.self_attn.q_a_proj.weight", Dim::kQueryRank,
     Dim::kHidden},
    {Role::kQueryDownNorm, "model.layers.{layer}.self_attn.q_a_norm.weight", Dim::kOne,
     Dim::kQueryRank},
    {Role::kQ, "model.layers.{layer}.self_attn.q_b_proj.weight", Dim::kQ, Dim::kQueryRank,
     Split::kRows},
    {Role::kLatentDown, "model.layers.{layer}.self_attn.kv_proj.weight", Dim::kLatentKey,
     Dim::kHidden},
    {Role::kLatentNorm, "model.layers.{layer}.self_attn.kv_norm.weight", Dim::kOne, Dim::kLatent},
    {Role::kOutputGroups, "model.layers.{layer}.self_attn.o_a_proj.weight", Dim::kOutputGroups,
     Dim::kHeadsOfGroup},
    {Role::kO, "model.layers.{layer}.self_attn.o_b_proj.weight", Dim::kHidden, Dim::kOutputGroups},
    {Role::kSinks, "model.layers.{layer}.self_attn.sinks", Dim::kOne, Dim::kHeads, Split::kRows},
    {Role::kEntryValues, "model.layers.{layer}.self_attn.compressor.kv_proj.weight",
     Dim::kEntryValues, Dim::kHidden, Split::kNone, sees_entries},
    {Role::kEntryGates, "model.layers.{layer}.self_attn.compressor.gate_proj.weight",
     Dim::kEntryValues, Dim::kHidden, Split::kNone, sees_entries},
    {Role::kEntryGateBias, "model.layers.{layer}.self_attn.compressor.position_bias", Dim::kOne,
     Dim::kEntryBias, Split::kNone, sees_entries},
    {Role::kEntryNorm, "model.layers.{layer}.self_attn.compressor.kv_norm.weight", Dim::kOne,
     Dim::kLatent, Split::kNone, sees_entries},
    {Role::kIndexerEntryValues, "model.layers.{layer}.self_attn.compressor.indexer.kv_proj.weight",
     Dim::kIndexerEntryValues, Dim::kHidden, Split::kNone, chooses_tokens},
    {Role::kIndexerEntryGates, "model.layers.{layer}.self_attn.compressor.indexer.gate_proj.weight",
     Dim::kIndexerEntryValues, Dim::kHidden, Split::kNone, chooses_tokens},
    {Role::kIndexerEntryGateBias, "model.layers.{layer}.self_attn.compressor.indexer.position_bias",
     Dim::kOne, Dim::kIndexerEntryBias, Split::kNone, chooses_tokens},
    {Role::kIndexerEntryNorm, "model.layers.{layer}.self_attn.compressor.indexer.kv_norm.weight",
     Dim::kOne, Dim::kIndexerHeadDim, Split::kNone, chooses_tokens},
    {Role::kIndexerQuery, "model.layers.{layer}.self_attn.compressor.indexer.q_b_proj.weight",
     Dim::kIndexerQueries, Dim::kQueryRank, Split::kNone, chooses_tokens},
    {Role::kIndexerWeights,
     "model.layers.{layer}.self_attn.compressor.indexer.scorer.weights_proj.weight",
     Dim::kIndexerHeads, Dim::kHidden, Split::kNone, chooses_tokens},
});

constexpr auto kDeepSeekV4StreamTensors = std::to_array<TensorSpec>({
    {Role::kHeadConnection, "model.hc_head.hc_fn", Dim::kHeadConnection, Dim::kAllStreams},
    {Role::kHeadConnectionBase, "model.hc_head.hc_base", Dim::kOne, Dim::kHeadConnection},
    {Role::kHeadConnectionScale, "model.hc_head.hc_scale", Dim::kOne, Dim::kOne},
    {Role::kAttentionConnection, "model.layers.{layer}.attn_hc.fn", Dim::kConnection,
     Dim::kAllStreams},
    {Role::kAttentionConnectionBase, "model.layers.{layer}.attn_hc.base", Dim::kOne,
     Dim::kConnection},
    {Role::kAttentionConnectionScale, "model.layers.{layer}.attn_hc.scale", Dim::kOne,
     Dim::kConnectionScales},
    {Role::kMlpConnection, "model.layers.{layer}.ffn_hc.fn", Dim::kConnection, Dim::kAllStreams},
    {Role::kMlpConnectionBase, "model.layers.{layer}.ffn_hc.base", Dim::kOne, Dim::kConnection},
    {Role::kMlpConnectionScale, "model.layers.{layer}.ffn_hc.scale", Dim::kOne,
     Dim::kConnectionScales},
});

constexpr auto kDeepSeekV4CommonTensors = join_tensors(kLlamaOuterTensors,
                                                       kLlamaNormTensors,
                                                       kDeepSeekV4AttentionTensors,
                                                       kDeepSeekV4StreamTensors,
                                                       kDeepSeekExpertTensors,
                                                       kExpertsByTokenTensors);
constexpr auto kDeepSeekV4Tensors = join_tensors(kDeepSeekV4CommonTensors, kStackedExpertTensors);
constexpr auto kDeepSeekV4SeparateTensors = join_tensors(kDeepSeekV4CommonTensors, kExpertTensors);

// As they are published, and as `transformers` writes them again.
constexpr auto kDeepSeekV4Renames = std::to_array<TensorRename>({
    {".attn.", ".self_attn."},
    {".ffn.", ".mlp."},
    {".indexer.compressor.", ".compressor.indexer."},
    {"embed.weight", "embed_tokens.weight"},
    {"lm_head.weight", "head.weight"},
    {"head.weight", "lm_head.weight"},
    {"hc_head_", "hc_head.hc_"},
    {".attn_norm.", ".input_layernorm."},
    {".ffn_norm.", ".post_attention_layernorm."},
    {".hc_attn_", ".attn_hc."},
    {".hc_ffn_", ".ffn_hc."},
    {".attn_sink", ".sinks"},
    {".self_attn.indexer.weights_proj.", ".self_attn.compressor.indexer.scorer.weights_proj."},
    {".self_attn.indexer.wq_b.", ".self_attn.compressor.indexer.q_b_proj."},
    {".self_attn.norm.", ".self_attn.kv_norm."},
    {".compressor.norm.", ".compressor.kv_norm."},
    {".compressor.indexer.norm.", ".compressor.indexer.kv_norm."},
    {".ape", ".position_bias"},
    {".wq_a.", ".q_a_proj."},
    {".wq_b.", ".q_b_proj."},
    {".wkv.", ".kv_proj."},
    {".wgate.", ".gate_proj."},
    {".wo_a.", ".o_a_proj."},
    {".wo_b.", ".o_b_proj."},
    {".q_norm.", ".q_a_norm."},
    {".gate.bias", ".gate.e_score_correction_bias"},
    {".w1.", ".gate_proj."},
    {".w2.", ".down_proj."},
    {".w3.", ".up_proj."},
});

constexpr auto kDeepSeekV4Ignored =
    std::to_array<std::string_view>({"mtp.*", ".rotary_emb.inv_freq"});

constexpr auto kDeepSeekV4Names = std::to_array<std::string_view>({"DeepseekV4ForCausalLM"});
constexpr auto kDeepSeekV4Types = std::to_array<std::string_view>({"deepseek_v4"});

}  // namespace

extern const Architecture kDeepSeekV4;
constexpr Architecture kDeepSeekV4 = {
    .names = kDeepSeekV4Names,
    .model_types = kDeepSeekV4Types,
    .prefix = "model.",
    .read_config = read_deepseek_v4,
    .fields = kDeepSeekV4Fields,
    .aliases = kDeepSeekExpertAliases,
    .tensors = kDeepSeekV4Tensors,
    .tensors_of_separate_experts = kDeepSeekV4SeparateTensors,
    .renames = kDeepSeekV4Renames,
    .ignored = kDeepSeekV4Ignored,
};

}  // namespace tgi
