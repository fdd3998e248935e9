#include "engine/model/expert_fields.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/model/config_fields.h"

namespace tgi {
namespace {

constexpr int32_t kMaxGroups = 64;

[[noreturn]] void refuse_value(const JsonReader& config,
                               std::string_view key,
                               const std::string& message) {
  throw Error(Code::kInvalidArgument, fmt::format("{}: {}", config.path_of(key), message));
}

// Only experts of the best groups can be chosen; and what the weights are multiplied by. REQUIRES:
// read_experts.
void read_expert_groups(const JsonReader& config, const ExpertFields& fields, ModelConfig& model) {
  RouteRule& route = model.experts.route;
  route.num_groups = read_size(config, "n_group", fields.default_num_groups, kMaxGroups);
  route.top_groups = read_size(config, "topk_group", fields.default_top_groups, kMaxGroups);
  route.group_best = 2;
  if (model.experts.num_experts % route.num_groups != 0) {
    refuse_value(config, "n_group",
                 fmt::format("{} experts can't be cut into {} groups evenly",
                             model.experts.num_experts, route.num_groups));
  }
  if (route.top_groups > route.num_groups) {
    refuse_value(config, "topk_group",
                 fmt::format("{} groups of {}", route.top_groups, route.num_groups));
  }
  const int32_t eligible = model.experts.num_experts / route.num_groups * route.top_groups;
  if (route.top_k > eligible) {
    refuse_value(config, "topk_group",
                 fmt::format("the {} best groups have {} experts, but a token goes to {}",
                             route.top_groups, eligible, route.top_k));
  }
  route.scale = static_cast<float>(config.number_or("routed_scaling_factor", fields.default_scale));
}

}  // namespace

void read_experts(const JsonReader& config, const ExpertFields& fields, ModelConfig& model) {
  ExpertsConfig& experts = model.experts;
  experts.num_experts =
      read_size(config, fields.num_experts, fields.default_num_experts, kMaxExperts);
  experts.route.top_k = read_size(config, fields.top_k, fields.default_top_k, kMaxExperts);
  experts.route.num_identity = fields.num_identity;
  if (experts.route.top_k > experts.num_choices()) {
    refuse_value(config, fields.top_k,
                 fmt::format("{} experts for a token, but {} is {}{}", experts.route.top_k,
                             fields.num_experts, experts.num_experts,
                             fields.num_identity == 0 ? ""
                                                      : fmt::format(", beside {} without matrices",
                                                                    fields.num_identity)));
  }
  experts.intermediate_size = fields.intermediate_size.empty()
                                  ? model.intermediate_size
                                  : read_size(config, fields.intermediate_size,
                                              fields.default_intermediate, kMaxIntermediateSize);
  if (!fields.shared_intermediate_size.empty()) {
    experts.shared_intermediate_size =
        read_size(config, fields.shared_intermediate_size, fields.default_shared_intermediate,
                  kMaxIntermediateSize);
  }
  experts.route.score = fields.score;
  experts.route.normalises = fields.normalises_name.empty()
                                 ? fields.normalises
                                 : config.boolean_or(fields.normalises_name, fields.normalises);
}

GateLimits read_swiglu_limits(const JsonReader& config) {
  const float limit = read_positive(config, "swiglu_limit", 7.0);
  return {.limit = limit,
          .up_limit = limit,
          .slope = read_positive(config, "swiglu_alpha", 1.702),
          .up_offset = 1.0F};
}

void read_deepseek_experts(const JsonReader& config,
                           const ExpertFields& defaults,
                           ModelConfig& model) {
  ExpertFields fields = defaults;
  fields.num_experts = "n_routed_experts";
  fields.intermediate_size = "moe_intermediate_size";
  fields.normalises_name = "norm_topk_prob";
  fields.score = RouterScore::kSigmoid;
  fields.normalises = true;
  read_experts(config, fields, model);
  read_expert_groups(config, fields, model);
  model.experts.has_choice_bias = true;
  read_shared_experts(config, defaults.default_num_shared, model);
}

void read_shared_experts(const JsonReader& config, int64_t fallback, ModelConfig& model) {
  const int64_t num_shared = config.has("n_shared_experts") ? config.integer("n_shared_experts")
                             : config.json().contains("n_shared_experts") ? 0
                                                                          : fallback;
  if (num_shared == 0) return;
  const int64_t shared = num_shared * model.experts.intermediate_size;
  model.experts.shared_intermediate_size =
      check_size(config, "n_shared_experts", shared, kMaxIntermediateSize);
}

void use_experts_in_all_layers(ModelConfig& model) {
  for (LayerPlan& layer : model.layers) layer.mlp = MlpKind::kExperts;
}

void read_sparse_steps(const JsonReader& config, ModelConfig& model) {
  const int32_t step = read_size(config, "decoder_sparse_step", 1, kMaxLayers);
  std::set<int32_t> dense;
  if (config.has("mlp_only_layers")) {
    for (const int32_t layer : read_token_ids(config, "mlp_only_layers")) {
      if (layer >= model.num_layers) {
        refuse_value(config, "mlp_only_layers",
                     fmt::format("names layer {}, but there are {}", layer, model.num_layers));
      }
      dense.insert(layer);
    }
  }
  for (int32_t i = 0; i < model.num_layers; ++i) {
    const bool is_sparse = !dense.contains(i) && (i + 1) % step == 0;
    if (is_sparse) model.layers[static_cast<size_t>(i)].mlp = MlpKind::kExperts;
  }
}

bool read_mlp_layer_types(const JsonReader& config, ModelConfig& model) {
  static constexpr std::string_view kKey = "mlp_layer_types";
  if (!config.has(kKey)) return false;
  const std::vector<std::string> types = config.strings_or_empty(kKey);
  if (types.size() != model.layers.size()) {
    refuse_value(
        config, kKey,
        fmt::format("expected {} entries, one per layer, got {}", model.num_layers, types.size()));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] != "sparse" && types[i] != "dense") {
      refuse_value(config, kKey,
                   fmt::format("entry {}: expected dense or sparse, got '{}'", i, types[i]));
    }
    model.layers[i].mlp = types[i] == "sparse" ? MlpKind::kExperts : MlpKind::kDense;
  }
  return true;
}

void read_first_sparse_layer(const JsonReader& config,
                             int64_t fallback,
                             ModelConfig& model,
                             int32_t step) {
  const int64_t first = config.integer_or("first_k_dense_replace", fallback);
  if (first < 0) {
    refuse_value(config, "first_k_dense_replace", fmt::format("expected 0 or more, got {}", first));
  }
  for (int64_t i = first; i < model.num_layers; ++i) {
    if (i % step == 0) model.layers[static_cast<size_t>(i)].mlp = MlpKind::kExperts;
  }
}

}  // namespace tgi
