#include "engine/quantize/gguf/config_differences.h"

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

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

// A member with the name that people know it by.
template <typename T>
struct Named {
  const char* name;
  const T& value;
};

// Those that are compared by their value. A member that is added to a struct has to be added here:
// the bindings count them.
auto members_of(const ModelConfig& config) {
  const auto& [architecture, vocab_size, hidden_size, embedding_size, projects_embedding_last,
               attention_input_size, head_vocab_size, unread_rows, intermediate_size, num_layers,
               num_stored_layers, layers_after_last, num_heads, num_kv_heads, head_dim, value_dim,
               max_positions, stated_positions, layers, ropes, norm_kind, norm_eps, post_norm_eps,
               norm_weight_offset, final_norm_as_stored, has_inner_norms, has_post_norms,
               norms_have_biases, norms_have_weights, norms_embedding, parallel_branches,
               shares_branch_norm, residual_after_norm, activation, gate_limits, gated_mlp, experts,
               state, attention_bias, attention_output_bias, mlp_bias, lm_head_bias,
               head_dense_bias, learned_positions, sinusoids, position_offset, num_token_types,
               num_task_types, head_input, head_activation, latent, indexer, entries, layer_inputs,
               streams, shared_blocks, laurel_rank, norm_gate_rank, alibi_slopes, distance_buckets,
               distances, attention_scale, attention_softcap, is_causal, gives_vectors,
               has_output_gate, output_gate, gates_heads, qkv_clip, has_qk_norm, qk_norm,
               qk_norm_kind, qk_norm_after_rope, embedding_multiplier, residual_multiplier,
               attention_input_multiplier, key_multiplier, attention_output_multiplier,
               mlp_gate_multiplier, mlp_output_multiplier, logit_scale, logit_softcap,
               tied_embeddings, head_division, checkpoint_dtype, eos_token_ids, bos_token_id] =
      config;
  return std::tuple{Named{"vocab_size", vocab_size},
                    Named{"hidden_size", hidden_size},
                    Named{"embedding_size", embedding_size},
                    Named{"projects_embedding_last", projects_embedding_last},
                    Named{"attention_input_size", attention_input_size},
                    Named{"head_vocab_size", head_vocab_size},
                    Named{"unread_rows", unread_rows},
                    Named{"intermediate_size", intermediate_size},
                    Named{"num_layers", num_layers},
                    Named{"num_stored_layers", num_stored_layers},
                    Named{"num_heads", num_heads},
                    Named{"num_kv_heads", num_kv_heads},
                    Named{"head_dim", head_dim},
                    Named{"value_dim", value_dim},
                    Named{"max_positions", max_positions},
                    Named{"stated_positions", stated_positions},
                    Named{"norm_kind", norm_kind},
                    Named{"norm_eps", norm_eps},
                    Named{"post_norm_eps", post_norm_eps},
                    Named{"norm_weight_offset", norm_weight_offset},
                    Named{"final_norm_as_stored", final_norm_as_stored},
                    Named{"has_inner_norms", has_inner_norms},
                    Named{"has_post_norms", has_post_norms},
                    Named{"norms_have_biases", norms_have_biases},
                    Named{"norms_have_weights", norms_have_weights},
                    Named{"norms_embedding", norms_embedding},
                    Named{"parallel_branches", parallel_branches},
                    Named{"shares_branch_norm", shares_branch_norm},
                    Named{"residual_after_norm", residual_after_norm},
                    Named{"activation", activation},
                    Named{"gate_limits", gate_limits},
                    Named{"gated_mlp", gated_mlp},
                    Named{"attention_bias", attention_bias},
                    Named{"attention_output_bias", attention_output_bias},
                    Named{"mlp_bias", mlp_bias},
                    Named{"lm_head_bias", lm_head_bias},
                    Named{"head_dense_bias", head_dense_bias},
                    Named{"learned_positions", learned_positions},
                    Named{"position_offset", position_offset},
                    Named{"num_token_types", num_token_types},
                    Named{"num_task_types", num_task_types},
                    Named{"sinusoids", sinusoids},
                    Named{"head_input", head_input},
                    Named{"head_activation", head_activation},
                    Named{"entries", entries},
                    Named{"layer_inputs", layer_inputs},
                    Named{"streams", streams},
                    Named{"shared_blocks", shared_blocks},
                    Named{"laurel_rank", laurel_rank},
                    Named{"norm_gate_rank", norm_gate_rank},
                    Named{"alibi_slopes", alibi_slopes},
                    Named{"distance_buckets", distance_buckets},
                    Named{"distances", distances},
                    Named{"attention_scale", attention_scale},
                    Named{"attention_softcap", attention_softcap},
                    Named{"is_causal", is_causal},
                    Named{"gives_vectors", gives_vectors},
                    Named{"has_output_gate", has_output_gate},
                    Named{"output_gate", output_gate},
                    Named{"gates_heads", gates_heads},
                    Named{"qkv_clip", qkv_clip},
                    Named{"has_qk_norm", has_qk_norm},
                    Named{"qk_norm", qk_norm},
                    Named{"qk_norm_kind", qk_norm_kind},
                    Named{"qk_norm_after_rope", qk_norm_after_rope},
                    Named{"embedding_multiplier", embedding_multiplier},
                    Named{"residual_multiplier", residual_multiplier},
                    Named{"attention_input_multiplier", attention_input_multiplier},
                    Named{"key_multiplier", key_multiplier},
                    Named{"attention_output_multiplier", attention_output_multiplier},
                    Named{"mlp_gate_multiplier", mlp_gate_multiplier},
                    Named{"mlp_output_multiplier", mlp_output_multiplier},
                    Named{"logit_scale", logit_scale},
                    Named{"logit_softcap", logit_softcap},
                    Named{"tied_embeddings", tied_embeddings},
                    Named{"head_division", head_division}};
}

auto members_of(const ExpertsConfig& config) {
  const auto& [num_experts, hidden_size, intermediate_size, shared_intermediate_size,
               has_shared_gate, num_unread, weighs_inputs, has_choice_bias, has_scale,
               output_multiplier, route] = config;
  return std::tuple{Named{"experts: num_experts", num_experts},
                    Named{"experts: hidden_size", hidden_size},
                    Named{"experts: intermediate_size", intermediate_size},
                    Named{"experts: shared_intermediate_size", shared_intermediate_size},
                    Named{"experts: has_shared_gate", has_shared_gate},
                    Named{"experts: num_unread", num_unread},
                    Named{"experts: weighs_inputs", weighs_inputs},
                    Named{"experts: has_choice_bias", has_choice_bias},
                    Named{"experts: has_scale", has_scale},
                    Named{"experts: output_multiplier", output_multiplier},
                    Named{"experts: route", route}};
}

template <typename Config>
void compare_members(const Config& a, const Config& b, Differences& out) {
  const auto all_a = members_of(a);
  const auto all_b = members_of(b);
  [&]<size_t... I>(std::index_sequence<I...>) {
    (out.compare(std::get<I>(all_a).name, std::get<I>(all_a).value, std::get<I>(all_b).value), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<decltype(all_a)>>());
}

}  // namespace

std::vector<std::string> config_differences(const ModelConfig& source, const ModelConfig& other) {
  Differences out;
  compare_members(source, other, out);
  compare_layers(source, other, out);
  compare_members(source.experts, other.experts, out);
  if (source.state.kind != StateKind::kNone || other.state.kind != StateKind::kNone) {
    out.add("layers that carry a state");
  }
  if (has_indexer(source) || has_indexer(other)) out.add("an indexer that chooses tokens");
  if (source.latent.rank != other.latent.rank || source.latent.rank != 0) {
    out.add("latent attention");
  }
  return out.take();
}

}  // namespace tgi
