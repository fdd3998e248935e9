#include "engine/quantize/gguf/config_differences.h"

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <string_view>
#include <type_traits>

namespace tgi {
namespace {

bool are_near(float a, float b) {
  constexpr float kRounding = 2e-6F;
  return a == b || std::fabs(a - b) <= kRounding * std::max(std::fabs(a), std::fabs(b));
}

bool are_near(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!are_near(a[i], b[i])) return false;
  }
  return true;
}

class Differences {
 public:
  template <typename T>
  void compare(std::string_view name, const T& a, const T& b) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, std::vector<float>>) {
      if (are_near(a, b)) return;
    } else {
      if (a == b) return;
    }
    if constexpr (std::is_same_v<T, float> || std::integral<T>) {
      add(fmt::format("{}: {} where the source has {}", name, b, a));
    } else {
      add(std::string(name));
    }
  }
  void add(std::string what) {
    for (const std::string& known : found_) {
      if (known == what) return;
    }
    found_.push_back(std::move(what));
  }
  std::vector<std::string> take() { return std::move(found_); }

 private:
  std::vector<std::string> found_;
};

void compare_ropes(const RopeSpec& a, const RopeSpec& b, Differences& out) {
  out.compare("columns of a head that are rotated", a.rotary_dim, b.rotary_dim);
  out.compare("which columns are rotated together", a.interleaved, b.interleaved);
  out.compare("frequencies of positions (rope)", a.inv_freq, b.inv_freq);
  out.compare("attention factor of the rope", a.attention_factor, b.attention_factor);
  out.compare("dynamic rope", a.dynamic_original_positions, b.dynamic_original_positions);
  out.compare("factor of the dynamic rope", a.dynamic_factor, b.dynamic_factor);
}

// 0: none, or one that no text outgrows.
int32_t window_of(const LayerPlan& layer, const ModelConfig& config) {
  return layer.sliding_window >= config.max_positions ? 0 : layer.sliding_window;
}

void compare_layers(const ModelConfig& a, const ModelConfig& b, Differences& out) {
  if (a.layers.size() != b.layers.size()) return;  // num_layers says it
  for (size_t i = 0; i < a.layers.size(); ++i) {
    LayerPlan left = a.layers[i];
    LayerPlan right = b.layers[i];
    if ((left.rope == kNoRope) != (right.rope == kNoRope)) {
      out.add("which layers have positions (rope)");
    } else if (left.rope != kNoRope) {
      compare_ropes(a.ropes[static_cast<size_t>(left.rope)],
                    b.ropes[static_cast<size_t>(right.rope)], out);
    }
    left.rope = right.rope = kNoRope;
    out.compare("sliding_window of layers", window_of(left, a), window_of(right, b));
    left.sliding_window = right.sliding_window = 0;
    if (left != right) out.add(fmt::format("the plan of layer {}", i));
  }
}

// A member that is added to a struct has to be added here: the bindings count them.
void compare_experts(const ExpertsConfig& a, const ExpertsConfig& b, Differences& out) {
  const auto& [a_num_experts, a_hidden_size, a_intermediate_size, a_shared_intermediate_size,
               a_has_shared_gate, a_weighs_inputs, a_has_choice_bias, a_route] = a;
  const auto& [b_num_experts, b_hidden_size, b_intermediate_size, b_shared_intermediate_size,
               b_has_shared_gate, b_weighs_inputs, b_has_choice_bias, b_route] = b;
  out.compare("experts: num_experts", a_num_experts, b_num_experts);
  out.compare("experts: hidden_size", a_hidden_size, b_hidden_size);
  out.compare("experts: intermediate_size", a_intermediate_size, b_intermediate_size);
  out.compare("experts: shared_intermediate_size", a_shared_intermediate_size,
              b_shared_intermediate_size);
  out.compare("experts: has_shared_gate", a_has_shared_gate, b_has_shared_gate);
  out.compare("experts: weighs_inputs", a_weighs_inputs, b_weighs_inputs);
  out.compare("experts: has_choice_bias", a_has_choice_bias, b_has_choice_bias);
  out.compare("experts: route", a_route, b_route);
}

}  // namespace

std::vector<std::string> config_differences(const ModelConfig& source, const ModelConfig& other) {
  Differences out;
  const auto& [a_architecture, a_vocab_size, a_hidden_size, a_embedding_size, a_intermediate_size,
               a_num_layers, a_num_heads, a_num_kv_heads, a_head_dim, a_max_positions, a_layers,
               a_ropes, a_norm_kind, a_norm_eps, a_norm_weight_offset, a_has_inner_norms,
               a_has_post_norms, a_norms_have_biases, a_norms_have_weights, a_parallel_branches,
               a_shares_branch_norm, a_residual_after_norm, a_activation, a_gate_limits,
               a_gated_mlp, a_experts, a_state, a_attention_bias, a_attention_output_bias,
               a_mlp_bias, a_lm_head_bias, a_learned_positions, a_position_offset,
               a_num_token_types, a_head_input, a_latent, a_alibi_slopes, a_distance_buckets,
               a_attention_scale, a_attention_softcap, a_is_causal, a_gives_vectors,
               a_has_output_gate, a_qkv_clip, a_has_qk_norm, a_qk_norm, a_qk_norm_kind,
               a_qk_norm_after_rope, a_embedding_multiplier, a_residual_multiplier,
               a_attention_input_multiplier, a_key_multiplier, a_attention_output_multiplier,
               a_mlp_gate_multiplier, a_mlp_output_multiplier, a_logit_scale, a_logit_softcap,
               a_tied_embeddings, a_divides_head_rows, a_checkpoint_dtype, a_eos_token_ids,
               a_bos_token_id] = source;
  const auto& [b_architecture, b_vocab_size, b_hidden_size, b_embedding_size, b_intermediate_size,
               b_num_layers, b_num_heads, b_num_kv_heads, b_head_dim, b_max_positions, b_layers,
               b_ropes, b_norm_kind, b_norm_eps, b_norm_weight_offset, b_has_inner_norms,
               b_has_post_norms, b_norms_have_biases, b_norms_have_weights, b_parallel_branches,
               b_shares_branch_norm, b_residual_after_norm, b_activation, b_gate_limits,
               b_gated_mlp, b_experts, b_state, b_attention_bias, b_attention_output_bias,
               b_mlp_bias, b_lm_head_bias, b_learned_positions, b_position_offset,
               b_num_token_types, b_head_input, b_latent, b_alibi_slopes, b_distance_buckets,
               b_attention_scale, b_attention_softcap, b_is_causal, b_gives_vectors,
               b_has_output_gate, b_qkv_clip, b_has_qk_norm, b_qk_norm, b_qk_norm_kind,
               b_qk_norm_after_rope, b_embedding_multiplier, b_residual_multiplier,
               b_attention_input_multiplier, b_key_multiplier, b_attention_output_multiplier,
               b_mlp_gate_multiplier, b_mlp_output_multiplier, b_logit_scale, b_logit_softcap,
               b_tied_embeddings, b_divides_head_rows, b_checkpoint_dtype, b_eos_token_ids,
               b_bos_token_id] = other;
  out.compare("vocab_size", a_vocab_size, b_vocab_size);
  out.compare("hidden_size", a_hidden_size, b_hidden_size);
  out.compare("embedding_size", a_embedding_size, b_embedding_size);
  out.compare("intermediate_size", a_intermediate_size, b_intermediate_size);
  out.compare("num_layers", a_num_layers, b_num_layers);
  out.compare("num_heads", a_num_heads, b_num_heads);
  out.compare("num_kv_heads", a_num_kv_heads, b_num_kv_heads);
  out.compare("head_dim", a_head_dim, b_head_dim);
  out.compare("max_positions", a_max_positions, b_max_positions);
  out.compare("norm_kind", a_norm_kind, b_norm_kind);
  out.compare("norm_eps", a_norm_eps, b_norm_eps);
  out.compare("norm_weight_offset", a_norm_weight_offset, b_norm_weight_offset);
  out.compare("has_inner_norms", a_has_inner_norms, b_has_inner_norms);
  out.compare("has_post_norms", a_has_post_norms, b_has_post_norms);
  out.compare("norms_have_biases", a_norms_have_biases, b_norms_have_biases);
  out.compare("norms_have_weights", a_norms_have_weights, b_norms_have_weights);
  out.compare("parallel_branches", a_parallel_branches, b_parallel_branches);
  out.compare("shares_branch_norm", a_shares_branch_norm, b_shares_branch_norm);
  out.compare("residual_after_norm", a_residual_after_norm, b_residual_after_norm);
  out.compare("activation", a_activation, b_activation);
  out.compare("gate_limits", a_gate_limits, b_gate_limits);
  out.compare("gated_mlp", a_gated_mlp, b_gated_mlp);
  out.compare("attention_bias", a_attention_bias, b_attention_bias);
  out.compare("attention_output_bias", a_attention_output_bias, b_attention_output_bias);
  out.compare("mlp_bias", a_mlp_bias, b_mlp_bias);
  out.compare("lm_head_bias", a_lm_head_bias, b_lm_head_bias);
  out.compare("learned_positions", a_learned_positions, b_learned_positions);
  out.compare("position_offset", a_position_offset, b_position_offset);
  out.compare("num_token_types", a_num_token_types, b_num_token_types);
  out.compare("head_input", a_head_input, b_head_input);
  out.compare("alibi_slopes", a_alibi_slopes, b_alibi_slopes);
  out.compare("distance_buckets", a_distance_buckets, b_distance_buckets);
  out.compare("attention_scale", a_attention_scale, b_attention_scale);
  out.compare("attention_softcap", a_attention_softcap, b_attention_softcap);
  out.compare("is_causal", a_is_causal, b_is_causal);
  out.compare("gives_vectors", a_gives_vectors, b_gives_vectors);
  out.compare("has_output_gate", a_has_output_gate, b_has_output_gate);
  out.compare("qkv_clip", a_qkv_clip, b_qkv_clip);
  out.compare("has_qk_norm", a_has_qk_norm, b_has_qk_norm);
  out.compare("qk_norm", a_qk_norm, b_qk_norm);
  out.compare("qk_norm_kind", a_qk_norm_kind, b_qk_norm_kind);
  out.compare("qk_norm_after_rope", a_qk_norm_after_rope, b_qk_norm_after_rope);
  out.compare("embedding_multiplier", a_embedding_multiplier, b_embedding_multiplier);
  out.compare("residual_multiplier", a_residual_multiplier, b_residual_multiplier);
  out.compare("attention_input_multiplier", a_attention_input_multiplier,
              b_attention_input_multiplier);
  out.compare("key_multiplier", a_key_multiplier, b_key_multiplier);
  out.compare("attention_output_multiplier", a_attention_output_multiplier,
              b_attention_output_multiplier);
  out.compare("mlp_gate_multiplier", a_mlp_gate_multiplier, b_mlp_gate_multiplier);
  out.compare("mlp_output_multiplier", a_mlp_output_multiplier, b_mlp_output_multiplier);
  out.compare("logit_scale", a_logit_scale, b_logit_scale);
  out.compare("logit_softcap", a_logit_softcap, b_logit_softcap);
  out.compare("tied_embeddings", a_tied_embeddings, b_tied_embeddings);
  out.compare("divides_head_rows", a_divides_head_rows, b_divides_head_rows);
  compare_layers(source, other, out);
  compare_experts(a_experts, b_experts, out);
  if (a_state.kind != StateKind::kNone || b_state.kind != StateKind::kNone) {
    out.add("layers that carry a state");
  }
  if (a_latent.rank != b_latent.rank || a_latent.rank != 0) out.add("latent attention");
  return out.take();
}

}  // namespace tgi
