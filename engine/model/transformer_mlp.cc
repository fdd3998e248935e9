// Transformer: the MLP of a layer, dense or of experts.
#include <optional>

#include "engine/model/transformer.h"

namespace tgi {

void Transformer::run_mlp(int32_t layer,
                          const LayerWeights& weights,
                          const Tensor& x,
                          const Tensor& out) {
  const LayerPlan& plan = config_.layers[static_cast<size_t>(layer)];
  if (plan.mlp == MlpKind::kExperts) {
    run_experts(layer, weights, x, out);
  } else {
    run_dense_mlp(weights.xielu, weights.gate_up, weights.mlp_inner_norm, weights.down,
                  gate_limits_of(config_, layer, &LayerPlan::gate_limits), plan.gate_cutoff, x,
                  out);
  }
}

void Transformer::run_dense_mlp(const XieluNumbers& xielu,
                                const Linear& gate_up_linear,
                                const DeviceVector& inner_norm,
                                const Linear& down,
                                const GateLimits& limits,
                                const std::optional<float>& gate_cutoff,
                                const Tensor& x,
                                const Tensor& out) {
  const int64_t width = down.weight->cols;
  const Tensor gate_up =
      workspace_.gate_up.first_rows(x.rows).columns(0, gate_up_linear.weight->rows);
  const Tensor activated = workspace_.activated.first_rows(x.rows).columns(0, width);
  gate_up_linear.apply(device_, x, gate_up);
  const Tensor gate = gate_up.columns(0, width);
  multiply(gate, config_.mlp_gate_multiplier);
  if (gate_cutoff) device_.statistical_top_k({.deviations = *gate_cutoff, .x = gate});
  activate(xielu, limits, gate_up, activated);
  norm_inner(inner_norm, activated);
  down.apply(device_, activated, out);
  multiply(out, config_.mlp_output_multiplier);
}

void Transformer::activate(const XieluNumbers& xielu,
                           const GateLimits& limits,
                           const Tensor& gate_up,
                           const Tensor& out) {
  device_.activation({.kind = config_.activation,
                      .gated = config_.gated_mlp,
                      .limits = limits,
                      .xielu = xielu,
                      .in = gate_up,
                      .out = out});
}

void Transformer::run_experts(int32_t layer,
                              const LayerWeights& weights,
                              const Tensor& x,
                              const Tensor& out) {
  choose_experts(weights, x);
  run_chosen_experts(layer, weights, x, out);
}

void Transformer::choose_experts(const LayerWeights& weights, const Tensor& x) {
  const Tensor logits = workspace_.router_logits.first_rows(x.rows);
  weights.router.apply(device_, x, logits);
  device_.route({.rule = config_.experts.route,
                 .logits = logits,
                 .choice_bias = weights.choice_bias.get(),
                 .expert_scale = weights.expert_scale.get(),
                 .experts_by_token = weights.experts_by_token.get(),
                 .num_ids = weights.experts_by_token.rows});
}

void Transformer::run_chosen_experts(int32_t layer,
                                     const LayerWeights& weights,
                                     const Tensor& x,
                                     const Tensor& out) {
  const Workspace& w = workspace_;
  const int64_t num_routed = x.rows * config_.experts.route.top_k;
  const Tensor gate_up = w.routed_gate_up.first_rows(num_routed);
  const Tensor activated = w.routed_activated.first_rows(num_routed);
  const Tensor down = w.routed_down.first_rows(num_routed);

  // Experts may be narrower than the stream.
  const bool is_narrow = weights.experts_in.weight != nullptr;
  const Tensor in = is_narrow ? w.experts_in.first_rows(x.rows) : x;
  const Tensor given = is_narrow ? w.experts_out.first_rows(x.rows) : out;
  const bool weighs_inputs = config_.experts.weighs_inputs;

  if (is_narrow) weights.experts_in.apply(device_, x, in);
  weights.experts_gate_up.apply(device_, false, in, gate_up);
  // The product with what is weighed is the weighed product.
  if (weighs_inputs) device_.weigh_experts({.x = gate_up});
  activate(weights.xielu, gate_limits_of(config_, layer, &LayerPlan::expert_limits), gate_up,
           activated);
  weights.experts_down.apply(device_, true, activated, down);
  // Of all ranks one gives what experts without matrices read.
  const bool gives_back = config_.experts.route.num_identity > 0 && communicator_.rank() == 0;
  device_.combine_experts(
      {.is_weighted = weighs_inputs, .x = down, .given = gives_back ? &in : nullptr, .out = given});
  if (is_narrow) weights.experts_out.apply(device_, given, out);
  if (weights.shared_down.weight != nullptr) add_shared_expert(layer, weights, x, out);
  multiply(out, config_.experts.output_multiplier);
}

void Transformer::add_shared_expert(int32_t layer,
                                    const LayerWeights& weights,
                                    const Tensor& x,
                                    const Tensor& out) {
  const Tensor shared = workspace_.shared_expert.first_rows(x.rows);
  run_dense_mlp(weights.xielu, weights.shared_gate_up, {}, weights.shared_down,
                gate_limits_of(config_, layer, &LayerPlan::gate_limits), {}, x, shared);
  const Tensor gate = workspace_.gate_up.first_rows(x.rows).columns(0, 1);
  const bool has_gate = weights.shared_output_gate.weight != nullptr;
  if (has_gate) weights.shared_output_gate.apply(device_, x, gate);
  device_.add({.x = out, .y = shared, .y_gate = has_gate ? &gate : nullptr, .out = out});
}

}  // namespace tgi
