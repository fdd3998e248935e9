// What the readers of families with experts share: counts and sizes of config.json, the rule by
// which a router chooses, and which layers have experts.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "engine/model/known_fields.h"
#include "engine/model/model_config.h"

namespace tgi {

inline constexpr std::string_view kTrainsRouter = "is about how the router is trained";

// The fields of Qwen's and OLMo's models with experts.
inline constexpr auto kExpertFields = std::to_array<KnownField>({
    read("num_experts"),
    read("num_experts_per_tok"),
    read("norm_topk_prob"),
    harmless("router_aux_loss_coef", kTrainsRouter),
    harmless("output_router_logits", kTrainsRouter),
});

// The fields of Mixtral's experts, which MiniMax has taken over; what they mean is kMixtralExperts.
inline constexpr auto kMixtralExpertFields = std::to_array<KnownField>({
    read("num_local_experts"),
    read("num_experts_per_tok"),
    harmless("router_jitter_noise", kTrainsRouter),
    harmless("router_aux_loss_coef", kTrainsRouter),
    harmless("output_router_logits", kTrainsRouter),
});

// The fields of DeepSeek V3's experts, which other families have taken over.
inline constexpr auto kDeepSeekExpertFields = std::to_array<KnownField>({
    read("n_routed_experts"),
    read_or_null("n_shared_experts"),
    read("num_experts_per_tok"),
    read("norm_topk_prob"),
    read("moe_intermediate_size"),
    read("first_k_dense_replace"),
    read("n_group"),
    read("topk_group"),
    read("routed_scaling_factor"),
    harmless_if("scoring_func", "[\"sigmoid\"]", "scores are sigmoids"),
    harmless_if("topk_method", "[\"noaux_tc\"]", "groups are as good as their two best experts"),
    harmless_if("moe_layer_freq", "[1]", "every layer from first_k_dense_replace on has experts"),
    harmless("aux_loss_alpha", kTrainsRouter),
    harmless("seq_aux", kTrainsRouter),
    harmless("router_aux_loss_coef", kTrainsRouter),
    harmless("output_router_logits", kTrainsRouter),
});

// Names of the fields, and what an absent one means.
struct ExpertFields {
  std::string_view num_experts = "num_experts";
  std::string_view top_k = "num_experts_per_tok";
  std::string_view intermediate_size{};         // empty: that of the dense MLP
  std::string_view shared_intermediate_size{};  // empty: no shared expert
  std::string_view normalises_name{};           // empty: `normalises` says it
  int64_t default_num_experts = 8;
  int64_t default_top_k = 2;
  int64_t default_intermediate = 0;
  int64_t default_shared_intermediate = 0;
  int32_t num_identity = 0;  // RouteRule::num_identity: can be chosen too
  // Of read_deepseek_experts alone.
  int64_t default_num_shared = 1;
  int64_t default_num_groups = 1;
  int64_t default_top_groups = 1;
  double default_scale = 1.0;
  RouterScore score = RouterScore::kSoftmax;
  bool normalises = false;
};

inline constexpr ExpertFields kMixtralExperts = {.num_experts = "num_local_experts",
                                                 .default_num_experts = 8,
                                                 .default_top_k = 2,
                                                 .normalises = true};

// What their config classes also call them; those of Qwen 3 (but for Omni) write files with that
// name alone since version 5.24.
inline constexpr auto kExpertAliases =
    std::to_array<FieldAlias>({{"num_local_experts", "num_experts"}});
inline constexpr auto kDeepSeekExpertAliases = std::to_array<FieldAlias>(
    {{"num_local_experts", "n_routed_experts"}, {"num_experts", "n_routed_experts"}});

inline constexpr int64_t kMaxExperts = 1 << 14;

// Sets model.experts. Throws kInvalidArgument for more experts per token than there are.
void read_experts(const JsonReader& config, const ExpertFields& fields, ModelConfig& model);

// gpt-oss's gate: swiglu_limit of gate and up, swiglu_alpha for the slope, and 1 added to up.
GateLimits read_swiglu_limits(const JsonReader& config);

// DeepSeek V3's: chosen by sigmoids with a bias, in groups, beside shared experts. Throws
// kInvalidArgument for counts that don't fit.
void read_deepseek_experts(const JsonReader& config,
                           const ExpertFields& defaults,
                           ModelConfig& model);

// n_shared_experts of them as one MLP; null is none. REQUIRES: read_experts.
void read_shared_experts(const JsonReader& config, int64_t fallback, ModelConfig& model);

void use_experts_in_all_layers(ModelConfig& model);

// Qwen's way: in every decoder_sparse_step-th layer that mlp_only_layers does not name.
void read_sparse_steps(const JsonReader& config, ModelConfig& model);

// By mlp_layer_types, a list of "dense" and "sparse". False: there is no such list, and nothing has
// changed. Throws kInvalidArgument where it has another length or other entries.
bool read_mlp_layer_types(const JsonReader& config, ModelConfig& model);

// From layer first_k_dense_replace on, those whose number is a multiple of `step`.
void read_first_sparse_layer(const JsonReader& config,
                             int64_t fallback,
                             ModelConfig& model,
                             int32_t step = 1);

}  // namespace tgi
