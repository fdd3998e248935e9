// MiniMax M3, a checkpoint that sees, and its text model: M2's experts beside one that all tokens
// go to, with gpt-oss's gate, norms that keep their weights less one, also of the heads of q and k,
// and an indexer in some layers whose heads choose the blocks of tokens that the query heads of a
// key see. Source: models/minimax_m3_vl in `transformers`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
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
#include "engine/model/multimodal_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr std::string_view kSparseFields = "sparse_attention_config";
constexpr std::string_view kSparseAttention = "minimax_m3_sparse";

// What published files say in an object of its own.
constexpr auto kSparseSpellings = std::to_array<FieldAlias>({
    {"sparse_block_size", "index_block_size"},
    {"sparse_topk_blocks", "index_topk_blocks"},
    {"sparse_num_index_heads", "index_n_heads"},
    {"sparse_index_dim", "index_head_dim"},
    {"sparse_local_block", "index_local_blocks"},
});
constexpr auto kSparseOthers = std::to_array<std::string_view>({
    "use_sparse_attention",
    "sparse_attention_freq",
    "sparse_init_block",
    "sparse_score_type",
    "sparse_disable_index_value",
});

// The config as the class in `transformers` writes it.
Json with_own_minimax_spelling(const JsonReader& config) {
  Json out = config.json();
  out.erase("hidden_act");  // see kMinimaxM3Fields
  name_layers(config, "moe_layer_freq", "mlp_layer_types", "dense", "sparse", out);
  if (!config.has(kSparseFields)) return out;
  const JsonReader sparse = config.object(kSparseFields);
  std::vector<std::string_view> known(kSparseOthers.begin(), kSparseOthers.end());
  for (const FieldAlias& spelling : kSparseSpellings) {
    known.push_back(spelling.alias);
    if (sparse.has(spelling.alias)) {
      out[std::string(spelling.name)] = sparse.json().at(std::string(spelling.alias));
    }
  }
  sparse.refuse_unknown(known);
  if (!config.has("layer_types")) {
    name_layers(sparse, "sparse_attention_freq", "layer_types", "full_attention",
                kSparseAttention.data(), out);
  }
  return out;
}

// False where no layer chooses.
bool read_sparse_attention_layers(const JsonReader& config, ModelConfig& model) {
  if (!config.has("layer_types")) return false;
  const std::vector<std::string> types = read_layer_names(config, "layer_types", model);
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] != "full_attention" && types[i] != kSparseAttention) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: entry {}: expected full_attention or {}, got '{}'",
                              config.path_of("layer_types"), i, kSparseAttention, types[i]));
    }
    if (types[i] == kSparseAttention) model.layers[i].seen = SeenTokens::kOwnChoice;
  }
  return std::ranges::find(types, kSparseAttention) != types.end();
}

void read_choice_of_blocks(const JsonReader& config, ModelConfig& model) {
  const int32_t block_size = read_size(config, "index_block_size", 128, kMaxPositions);
  const int64_t local_blocks = config.integer_or("index_local_blocks", 1);
  if (local_blocks < 0 || local_blocks > kMaxPositions) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected 0 to {}, got {}", config.path_of("index_local_blocks"),
                            kMaxPositions, local_blocks));
  }
  if (!read_sparse_attention_layers(config, model)) return;
  read_indexer(config, {.default_num_heads = 4, .default_top_k = 16, .top_k = "index_topk_blocks"},
               model);
  IndexerConfig& indexer = model.indexer;
  if (model.num_heads % indexer.num_heads != 0) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected a divisor of num_attention_heads = {}, got {}",
                            config.path_of("index_n_heads"), model.num_heads, indexer.num_heads));
  }
  indexer.norm_eps = model.norm_eps;
  indexer.rule.block_size = block_size;
  indexer.rule.local_blocks = static_cast<int32_t>(local_blocks);
}

ModelConfig read_minimax_m3(const JsonReader& given) {
  const Json json = with_own_minimax_spelling(given);
  const JsonReader config = given.in_place(json);
  ModelConfig model = read_decoder_config(config, {.intermediate_size = "dense_intermediate_size",
                                                   .default_vocab_size = 200064,
                                                   .default_hidden_size = 6144,
                                                   .default_num_layers = 60,
                                                   .default_num_heads = 64,
                                                   .default_num_kv_heads = 4,
                                                   .default_head_dim = 128,
                                                   .default_intermediate = 12288,
                                                   .default_max_positions = 524288,
                                                   .default_norm_eps = 1e-6,
                                                   .default_bos = 200034,
                                                   .default_eos = 200020});
  model.norm_weight_offset = 1.0F;
  model.gate_limits = read_swiglu_limits(config);
  read_rope(config, model, {.default_theta = 5e6, .takes_partial = true});
  read_experts(config,
               {.num_experts = "num_local_experts",
                .intermediate_size = "intermediate_size",
                .shared_intermediate_size = "shared_intermediate_size",
                .default_num_experts = 128,
                .default_top_k = 4,
                .default_intermediate = 3072,
                .default_shared_intermediate = 3072,
                .score = RouterScore::kSigmoid,
                .normalises = true},
               model);
  model.experts.has_choice_bias = true;
  model.experts.route.scale = read_positive(config, "routed_scaling_factor", 2.0);
  if (!read_mlp_layer_types(config, model)) use_experts_in_all_layers(model);
  read_choice_of_blocks(config, model);
  return model;
}

constexpr std::string_view kMinimaxM3OneBlock = "there is one kind of block";

constexpr auto kMinimaxM3Fields = join_fields(
    std::to_array<KnownField>({
        harmless("hidden_act",
                 "gates are silu with swiglu_alpha and swiglu_limit, whatever it says"),
        read("dense_intermediate_size"),
        read("shared_intermediate_size"),
        read("swiglu_alpha"),
        read("swiglu_limit"),
        read("num_local_experts"),
        read("num_experts_per_tok"),
        read("routed_scaling_factor"),
        read("index_block_size"),
        read("index_topk_blocks"),
        read_or_null("layer_types"),
        read_or_null("mlp_layer_types"),
        read_or_null("moe_layer_freq"),
        read_or_null("sparse_attention_config"),
        read("index_n_heads"),
        read("index_head_dim"),
        read("index_local_blocks"),
        harmless("rotary_dim", "partial_rotary_factor says how much of a head is rotated"),
        harmless_if("scoring_func", R"(["sigmoid"])", "scores are sigmoids"),
        harmless_if("use_routing_bias", "[true]", "experts are chosen with a bias"),
        harmless_if("use_gemma_norm", "[true]", "norms keep their weights less one"),
        harmless_if("use_qk_norm", "[true]", "heads of q and k are normed"),
        harmless_if("qk_norm_type", R"(["per_head"])", "heads of q and k are normed"),
        harmless_if("n_shared_experts", "[1]", "one expert is for all tokens"),
        harmless_if("attention_output_gate", "[false]", kMinimaxM3OneBlock),
        harmless_if("attention_bias", "[false]", "there are no biases"),
        harmless_if("mlp_bias", "[false]", "there are no biases"),
        harmless("use_mtp", kOnlyDrafts),
        harmless("num_mtp_modules", kOnlyDrafts),
        harmless("mtp_transformer_layers", kOnlyDrafts),
        harmless("router_jitter_noise", kTrainsRouter),
        harmless("router_aux_loss_coef", kTrainsRouter),
        harmless("output_router_logits", kTrainsRouter),
    }),
    kDecoderFields);
constexpr auto kMinimaxM3SeeingFields =
    join_fields(kMultimodalFields,
                std::to_array<KnownField>({
                    harmless("video_token_index", kImages),
                    harmless("projector_hidden_size", kImages),
                    harmless("merged_hidden_size", kImages),
                    harmless("img_token_compression_config", kImages),
                    harmless("image_grid_pinpoints", kImages),
                    harmless("process_image_mode", kImages),
                }));

constexpr auto kMinimaxM3Aliases = std::to_array<FieldAlias>({
    {"num_experts", "num_local_experts"},
});

constexpr auto kMinimaxM3Names = std::to_array<std::string_view>({"MiniMaxM3VLForCausalLM"});
constexpr auto kMinimaxM3Types = std::to_array<std::string_view>({"minimax_m3_vl_text"});
constexpr auto kMinimaxM3SeeingNames =
    std::to_array<std::string_view>({"MiniMaxM3SparseForConditionalGeneration"});
constexpr auto kMinimaxM3SeeingTypes = std::to_array<std::string_view>({"minimax_m3_vl"});

constexpr auto kMinimaxM3CommonTensors =
    join_tensors(kLlamaOuterTensors, kLlamaNormTensors, kLlamaAttentionTensors, kQkNormTensors);

constexpr auto kMinimaxM3Tensors = join_tensors(
    kMinimaxM3CommonTensors,
    kStackedExpertTensors,
    std::to_array<TensorSpec>({
        {Role::kIndexerQuery, "model.layers.{layer}.self_attn.indexer.q_proj.weight",
         Dim::kIndexerQueries, Dim::kHidden, Split::kNone, chooses_tokens},
        {Role::kIndexerKey, "model.layers.{layer}.self_attn.indexer.k_proj.weight",
         Dim::kIndexerHeadDim, Dim::kHidden, Split::kNone, chooses_tokens},
        {Role::kIndexerQueryNorm, "model.layers.{layer}.self_attn.indexer.q_norm.weight", Dim::kOne,
         Dim::kIndexerHeadDim, Split::kNone, chooses_tokens},
        {Role::kIndexerKeyNorm, "model.layers.{layer}.self_attn.indexer.k_norm.weight", Dim::kOne,
         Dim::kIndexerHeadDim, Split::kNone, chooses_tokens},
    }),
    std::to_array<TensorSpec>({
        {Role::kChoiceBias, "model.layers.{layer}.mlp.gate.e_score_correction_bias", Dim::kOne,
         Dim::kExperts, Split::kNone, has_choice_bias},
        {Role::kGateUp, "model.layers.{layer}.mlp.gate_up_proj.weight", Dim::kGateUp, Dim::kHidden,
         Split::kRows, has_dense_mlp},
        {Role::kDown, "model.layers.{layer}.mlp.down_proj.weight", Dim::kHidden, Dim::kIntermediate,
         Split::kColumns, has_dense_mlp},
        {Role::kSharedGateUp, "model.layers.{layer}.mlp.shared_experts.gate_up_proj.weight",
         Dim::kSharedGateUp, Dim::kHidden, Split::kRows, has_shared_expert},
        {Role::kSharedDown, "model.layers.{layer}.mlp.shared_experts.down_proj.weight",
         Dim::kHidden, Dim::kSharedIntermediate, Split::kColumns, has_shared_expert},
    }));

// Published ones.
constexpr auto kMinimaxM3SeparateTensors = join_tensors(
    kMinimaxM3CommonTensors,
    kLlamaMlpTensors,
    kMixtralExpertTensors,
    kMixtralSharedExpertsTensors,
    std::to_array<TensorSpec>({
        {Role::kIndexerQuery, "model.layers.{layer}.self_attn.index_q_proj.weight",
         Dim::kIndexerQueries, Dim::kHidden, Split::kNone, chooses_tokens},
        {Role::kIndexerKey, "model.layers.{layer}.self_attn.index_k_proj.weight",
         Dim::kIndexerHeadDim, Dim::kHidden, Split::kNone, chooses_tokens},
        {Role::kIndexerQueryNorm, "model.layers.{layer}.self_attn.index_q_norm.weight", Dim::kOne,
         Dim::kIndexerHeadDim, Split::kNone, chooses_tokens},
        {Role::kIndexerKeyNorm, "model.layers.{layer}.self_attn.index_k_norm.weight", Dim::kOne,
         Dim::kIndexerHeadDim, Split::kNone, chooses_tokens},
        {Role::kChoiceBias, "model.layers.{layer}.block_sparse_moe.e_score_correction_bias",
         Dim::kOne, Dim::kExperts, Split::kNone, has_choice_bias},
    }));

constexpr auto kMinimaxM3Ignored = std::to_array<std::string_view>({
    kRotaryTables[0],
    ".indexer.q_proj.weight",
    ".indexer.k_proj.weight",
    ".indexer.q_norm.weight",
    ".indexer.k_norm.weight",
    ".self_attn.index_q_proj.weight",
    ".self_attn.index_k_proj.weight",
    ".self_attn.index_q_norm.weight",
    ".self_attn.index_k_norm.weight",
    "mtp.*",
});
constexpr auto kMinimaxM3SeeingIgnored = std::to_array<std::string_view>(
    {"vision_tower.*", "multi_modal_projector.*", "patch_merge_mlp.*"});

}  // namespace

extern const Architecture kMinimaxM3;
constexpr Architecture kMinimaxM3 = {
    .names = kMinimaxM3Names,
    .model_types = kMinimaxM3Types,
    .prefix = "model.",
    .read_config = read_minimax_m3,
    .fields = kMinimaxM3Fields,
    .aliases = kMinimaxM3Aliases,
    .tensors = kMinimaxM3Tensors,
    .tensors_of_separate_experts = kMinimaxM3SeparateTensors,
    .ignored = kMinimaxM3Ignored,
};

extern const Architecture kMinimaxM3Seeing;
constexpr Architecture kMinimaxM3Seeing = multimodal_of(kMinimaxM3SeeingNames,
                                                        kMinimaxM3SeeingTypes,
                                                        R"({"model_type": "minimax_m3_vl_text"})",
                                                        kMinimaxM3SeeingFields,
                                                        kMinimaxM3SeeingIgnored);

}  // namespace tgi
