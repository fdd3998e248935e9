// Zamba 2: Mamba 2 in every layer, which in some is fed by a block of attention and MLP over the
// stream and the embedding. Few such blocks are stored, and used in turn, each time with pairs of
// small matrices of its own. Source: models/zamba2 in `transformers`.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"
#include "engine/model/state_fields.h"
#include "engine/model/state_tensors.h"

namespace tgi {
namespace {

constexpr std::string_view kLayerKinds = "layers_block_type";
constexpr std::string_view kHeadDim = "attention_head_dim";
constexpr int64_t kLongContext = 16384;

// What the class makes of other fields, where the file does not say it.
Json with_derived_fields(const JsonReader& config) {
  Json out = config.json();
  const int64_t hidden = config.integer_or("hidden_size", 2560);
  const int64_t num_heads = config.integer_or("num_attention_heads", 32);
  // Other sizes are refused later.
  if (!config.has(kHeadDim) && num_heads > 0 && hidden > 0 && hidden <= kMaxHiddenSize)
    out[std::string(kHeadDim)] = 2 * hidden / num_heads;
  if (config.boolean_or("use_long_context", false)) out["max_position_embeddings"] = kLongContext;
  if (config.has(kLayerKinds)) return out;
  std::vector<std::string> layers(54, "linear_attention");
  for (const size_t hybrid : {6, 12, 18, 24, 30, 36, 42, 47, 51}) layers[hybrid] = "hybrid";
  out[std::string(kLayerKinds)] = layers;
  return out;
}

// The first layers with a block have those that are stored.
void read_blocks(const JsonReader& config, ModelConfig& model) {
  read_mixer_types(config, kLayerKinds,
                   {.attention = "hybrid", .state = "linear_attention", .old_state = "mamba"},
                   model);
  const int32_t num_stored = read_size(config, "num_mem_blocks", 1, kMaxLayers);
  std::vector<int32_t> with_block;
  for (int32_t i = 0; i < model.num_layers; ++i) {
    LayerPlan& layer = model.layers[static_cast<size_t>(i)];
    layer.has_state = true;
    layer.mlp = layer.has_attention ? MlpKind::kDense : MlpKind::kNone;
    if (!layer.has_attention) continue;
    const size_t use = with_block.size();
    with_block.push_back(i);
    layer.block_layer = with_block[use % static_cast<size_t>(num_stored)];
  }
  model.streams = {.count = 2, .keeps_embedding = true};
  model.attention_input_size = 2 * model.hidden_size;
  model.shared_blocks = {.low_rank = read_size(config, "adapter_rank", 128, kMaxHiddenSize),
                         .low_rank_qkv = config.boolean_or("use_shared_attention_adapter", false)};
}

// Fields that say again what others do.
void check_repeated_fields(const JsonReader& config, const ModelConfig& model) {
  Json with_block = Json::array();
  for (int32_t i = 0; i < model.num_layers; ++i) {
    if (model.layers[static_cast<size_t>(i)].has_block()) with_block.push_back(i);
  }
  const auto check = [&](std::string_view key, const Json& expected) {
    if (!config.has(key) || config.json().at(std::string(key)) == expected) return;
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected {}, as other fields say, got {}", config.path_of(key),
                            expected.dump(), config.json().at(std::string(key)).dump()));
  };
  check("attention_hidden_size", model.attention_input_size);
  check("hybrid_layer_ids", with_block);
}

// The small matrices beside q, k and v give rows as wide as what those read.
void check_adapters(const JsonReader& config, const ModelConfig& model) {
  if (!model.shared_blocks.low_rank_qkv) return;
  const int32_t keys = model.num_kv_heads * model.head_dim;
  if (keys == model.attention_input_size && model.num_heads == model.num_kv_heads) return;
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: needs as many numbers of keys as q, k and v read, {}, but there are "
                          "{} KV heads of {}",
                          config.path_of("use_shared_attention_adapter"),
                          model.attention_input_size, model.num_kv_heads, model.head_dim));
}

ModelConfig read_zamba2(const JsonReader& given) {
  const Json json = with_derived_fields(given);
  const JsonReader config = given.in_place(json);
  ModelConfig model = read_decoder_config(config, {.head_dim = kHeadDim,
                                                   .default_hidden_size = 2560,
                                                   .default_num_layers = 54,
                                                   .default_intermediate = 0,
                                                   .default_max_positions = 4096,
                                                   .default_norm_eps = 1e-5,
                                                   .default_activation = "gelu",
                                                   .default_tied = true});
  model.attention_scale = static_cast<float>(std::sqrt(2.0 / model.head_dim));
  model.mlp_bias = config.boolean_or("add_bias_linear", false);
  if (config.boolean_or("use_mem_rope", false)) read_rope(config, model);
  read_mamba2(config,
              {.num_heads = "n_mamba_heads",
               .head_dim = "mamba_headdim",
               .state_size = "mamba_d_state",
               .num_groups = "mamba_ngroups",
               .conv_kernel = "mamba_d_conv",
               .conv_bias = "use_conv_bias",
               .in_bias = "add_bias_linear",
               .out_bias = "add_bias_linear",
               .expand = "mamba_expand",
               .default_num_heads = 8,
               .default_state_size = 64,
               .default_num_groups = 1},
              model);
  model.state.has_conv_bias = true;
  model.state.norm_eps = 1e-5F;
  model.state.min_step = static_cast<float>(config.number_or("time_step_min", 0.001));
  read_blocks(config, model);
  check_repeated_fields(config, model);
  check_adapters(config, model);
  return model;
}

constexpr std::string_view kUnused = "is looked at by nothing in the class";
constexpr auto kZamba2Fields = join_fields(
    std::to_array<KnownField>({
        read_or_null("layers_block_type"),
        read_or_null("intermediate_size"),
        harmless_if("tie_word_embeddings",
                    "[true]",
                    "blocks are shared only where the head is the embedding"),
        read("num_mem_blocks"),
        read("adapter_rank"),
        read("use_shared_attention_adapter"),
        read("use_mem_rope"),
        read("use_long_context"),
        read("add_bias_linear"),
        read("n_mamba_heads"),
        read("mamba_d_state"),
        read("mamba_ngroups"),
        read("mamba_d_conv"),
        read("mamba_expand"),
        read("time_step_min"),
        harmless("time_step_max", kStartsTraining),
        harmless("time_step_floor", kStartsTraining),
        harmless_if("time_step_limit",
                    R"([[0.0, "Infinity"], [0.0, {"__float__": "Infinity"}]])",
                    "time_step_min is the least step, and there is no other limit"),
        harmless("use_conv_bias", "convolutions have a bias, always"),
        harmless_if("use_shared_mlp_adapter", "[true]", "gate and up have them, always"),
        harmless("chunk_size", kSameSums),
        harmless("use_mamba_kernels", kSameSums),
        harmless("use_mem_eff_path", kSameSums),
        harmless("num_logits_to_keep", "requests say which logits are wanted"),
        read_or_null("mamba_headdim"),
        read_or_null("attention_head_dim"),
        read_or_null("attention_hidden_size"),
        read_or_null("hybrid_layer_ids"),
        harmless("kv_channels", kUnused),
        harmless("num_query_groups", kUnused),
    }),
    kDecoderFields);

constexpr auto kZamba2Names = std::to_array<std::string_view>({"Zamba2ForCausalLM"});
constexpr auto kZamba2Types = std::to_array<std::string_view>({"zamba2"});
constexpr auto kZamba2Aliases = std::to_array<FieldAlias>(
    {{"layer_types", "layers_block_type"}, {"head_dim", "attention_head_dim"}});

// Mamba's tensors of layers with a block.
constexpr auto kZamba2Renames = std::to_array<TensorRename>({
    {".mamba_decoder.mamba.", ".mamba."},
    {".mamba_decoder.input_layernorm.", ".input_layernorm."},
});

constexpr bool has_block(const ModelConfig& config, int32_t layer) {
  return config.layers[static_cast<size_t>(layer)].has_block();
}
constexpr bool has_block_bias(const ModelConfig& config, int32_t layer) {
  return has_block(config, layer) && config.mlp_bias;
}
constexpr bool has_low_rank_qkv(const ModelConfig& config, int32_t layer) {
  return has_block(config, layer) && config.shared_blocks.low_rank_qkv;
}

constexpr auto kZamba2Blocks = std::to_array<TensorSpec>({
    {Role::kFinalNorm, "model.final_layernorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kBlockNorm, "model.layers.{block}.shared_transformer.input_layernorm.weight", Dim::kOne,
     Dim::kAllStreams, Split::kNone, has_block},
    {Role::kQ, "model.layers.{block}.shared_transformer.self_attn.q_proj.weight", Dim::kQ,
     Dim::kAttentionInput, Split::kRows},
    {Role::kK, "model.layers.{block}.shared_transformer.self_attn.k_proj.weight", Dim::kKv,
     Dim::kAttentionInput, Split::kRows},
    {Role::kV, "model.layers.{block}.shared_transformer.self_attn.v_proj.weight", Dim::kKv,
     Dim::kAttentionInput, Split::kRows},
    {Role::kO, "model.layers.{block}.shared_transformer.self_attn.o_proj.weight", Dim::kHidden,
     Dim::kQ, Split::kColumns},
    {Role::kMlpNorm, "model.layers.{block}.shared_transformer.pre_ff_layernorm.weight", Dim::kOne,
     Dim::kHidden, Split::kNone, has_block},
    {Role::kGateUp, "model.layers.{block}.shared_transformer.feed_forward.gate_up_proj.weight",
     Dim::kGateUp, Dim::kHidden, Split::kRows, has_block},
    {Role::kGateUpBias, "model.layers.{block}.shared_transformer.feed_forward.gate_up_proj.bias",
     Dim::kOne, Dim::kGateUp, Split::kRows, has_block_bias},
    {Role::kDown, "model.layers.{block}.shared_transformer.feed_forward.down_proj.weight",
     Dim::kHidden, Dim::kIntermediate, Split::kColumns, has_block},
    {Role::kDownBias, "model.layers.{block}.shared_transformer.feed_forward.down_proj.bias",
     Dim::kOne, Dim::kHidden, Split::kColumns, has_block_bias},
    {Role::kBlockOut, "model.layers.{layer}.linear.weight", Dim::kHidden, Dim::kHidden,
     Split::kNone, has_block},
});

// Of each use, beside the matrices of the block.
constexpr auto kZamba2Adapters = std::to_array<TensorSpec>({
    {Role::kQLowIn,
     "model.layers.{block}.shared_transformer.self_attn.linear_q_adapter_list.{use}.0.weight",
     Dim::kBlockLowRank, Dim::kAttentionInput, Split::kNone, has_low_rank_qkv},
    {Role::kQLowOut,
     "model.layers.{block}.shared_transformer.self_attn.linear_q_adapter_list.{use}.1.weight",
     Dim::kQ, Dim::kBlockLowRank, Split::kNone, has_low_rank_qkv},
    {Role::kKLowIn,
     "model.layers.{block}.shared_transformer.self_attn.linear_k_adapter_list.{use}.0.weight",
     Dim::kBlockLowRank, Dim::kAttentionInput, Split::kNone, has_low_rank_qkv},
    {Role::kKLowOut,
     "model.layers.{block}.shared_transformer.self_attn.linear_k_adapter_list.{use}.1.weight",
     Dim::kKv, Dim::kBlockLowRank, Split::kNone, has_low_rank_qkv},
    {Role::kVLowIn,
     "model.layers.{block}.shared_transformer.self_attn.linear_v_adapter_list.{use}.0.weight",
     Dim::kBlockLowRank, Dim::kAttentionInput, Split::kNone, has_low_rank_qkv},
    {Role::kVLowOut,
     "model.layers.{block}.shared_transformer.self_attn.linear_v_adapter_list.{use}.1.weight",
     Dim::kKv, Dim::kBlockLowRank, Split::kNone, has_low_rank_qkv},
    {Role::kGateUpLowIn,
     "model.layers.{block}.shared_transformer.feed_forward.gate_up_proj_adapter_list.{use}.0."
     "weight",
     Dim::kBlockLowRank, Dim::kHidden, Split::kNone, has_block},
    {Role::kGateUpLowOut,
     "model.layers.{block}.shared_transformer.feed_forward.gate_up_proj_adapter_list.{use}.1."
     "weight",
     Dim::kGateUp, Dim::kBlockLowRank, Split::kNone, has_block},
});

constexpr auto kZamba2Tensors = join_tensors(
    kLlamaEmbeddingTensors, kOneNormTensors, kHybridMamba2Tensors, kZamba2Blocks, kZamba2Adapters);

}  // namespace

extern const Architecture kZamba2;
constexpr Architecture kZamba2 = {
    .names = kZamba2Names,
    .model_types = kZamba2Types,
    .prefix = "model.",
    .read_config = read_zamba2,
    .fields = kZamba2Fields,
    .aliases = kZamba2Aliases,
    .tensors = kZamba2Tensors,
    .renames = kZamba2Renames,
    .ignored = kRotaryTables,
};

}  // namespace tgi
