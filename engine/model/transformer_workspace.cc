// Transformer: where its activations lie.
#include <algorithm>

#include "engine/model/transformer.h"

namespace tgi {
namespace {

constexpr int64_t kAlignment = 64;

// Hands out consecutive tensors from a base address, which may be null to only count.
class Layout {
 public:
  Layout(void* base, DType dtype, int64_t rows, int64_t offset = 0)
      : base_(static_cast<std::byte*>(base)), dtype_(dtype), rows_(rows), offset_(offset) {}

  Tensor take(int64_t cols) {
    const Tensor tensor{base_ == nullptr ? nullptr : base_ + offset_, dtype_, rows_, cols, cols};
    const auto size = rows_ * cols * static_cast<int64_t>(dtype_size(dtype_));
    offset_ += (size + kAlignment - 1) / kAlignment * kAlignment;
    return tensor;
  }
  int64_t offset() const { return offset_; }

 private:
  std::byte* base_;
  DType dtype_;
  int64_t rows_;
  int64_t offset_;
};

int64_t qkv_width(const ModelConfig& config, int world_size) {
  int64_t most = 0;
  for (int32_t layer = 0; layer < config.num_layers; ++layer) {
    const KvHeads heads = kv_heads_of(config, layer);
    const int64_t q = int64_t{num_heads_of(config, layer) / world_size} * heads.head_dim;
    const int64_t num_kv_heads = heads.num_kv_heads / world_size;
    const int64_t kv = num_kv_heads * (int64_t{heads.head_dim} + heads.value_cols());
    const int64_t attended = int64_t{num_heads_of(config, layer) / world_size} * heads.value_cols();
    most = std::max(most, q + kv + (config.has_output_gate ? attended : 0));
  }
  return most;
}

bool has_both_mixers(const ModelConfig& config) {
  return std::ranges::any_of(
      config.layers, [](const LayerPlan& plan) { return plan.has_attention && plan.has_state; });
}

bool has_both_mlps(const ModelConfig& config) {
  return std::ranges::any_of(config.layers,
                             [](const LayerPlan& plan) { return plan.mlp == MlpKind::kBoth; });
}

bool has_shortcuts(const ModelConfig& config) {
  return std::ranges::any_of(config.layers,
                             [](const LayerPlan& plan) { return plan.mlp == MlpKind::kShortcut; });
}

bool multiplies_inputs(const ModelConfig& config) {
  return config.state.input_multiplier != 1.0F || config.attention_input_multiplier != 1.0F;
}

// What layers have that share blocks: ranks have none of them.
template <typename Workspace>
void take_blocks(const ModelConfig& config, Layout& layout, Workspace& out) {
  out.normed_streams = layout.take(stream_cols(config));
  const int64_t low_rank = config.shared_blocks.low_rank;
  if (low_rank == 0) return;
  out.low_short = layout.take(3 * low_rank);
  const KvHeads kv = most_kv_heads(config);
  out.low_added = layout.take(
      std::max({int64_t{most_heads(config)} * kv.head_dim, int64_t{kv.num_kv_heads} * kv.head_dim,
                int64_t{2} * most_intermediate(config)}));
}

// What layers with a state have of the workspace.
template <typename Workspace>
Layout take_state(const StateConfig& state, Layout layout, Workspace& out) {
  out.state_in = layout.take(state.num_inputs());
  out.convolved = layout.take(state.num_conv_channels());
  if (state.kind == StateKind::kMamba) {
    out.state_parts = layout.take(state.step_rank + int64_t{2} * state.state_size);
    out.steps = layout.take(state.num_channels());
  }
  if (state.kind == StateKind::kRgLru) out.state_parts = layout.take(2 * state.num_channels());
  if (state.kind == StateKind::kDeltaRule) {
    if (state.gate_rank > 0) out.state_gates = layout.take(state.num_channels());
    if (state.step_rank > 0) out.steps = layout.take(state.num_steps());
  }
  return layout;
}

}  // namespace

Transformer::Workspace Transformer::lay_out(
    const ModelConfig& config, DType dtype, int world_size, int32_t max_batch_tokens, void* base) {
  const KvHeads kv_heads = most_kv_heads(config);
  const int64_t num_heads = most_heads(config) / world_size;
  const int64_t intermediate =
      std::max(most_intermediate(config), config.experts.shared_intermediate_size) / world_size;
  Workspace out;
  Layout shared(base, dtype, max_batch_tokens);
  out.residual = shared.take(config.hidden_size);
  out.normed = shared.take(config.hidden_size);
  out.branch = shared.take(config.hidden_size);
  out.last_rows = shared.take(config.hidden_size);
  if (has_streams(config)) {
    out.streams = shared.take(stream_cols(config));
    if (config.streams.connects) {
      out.connections = shared.take(config.streams.num_connections());
    } else if (num_further_streams(config) > 0) {
      out.stream_routed = shared.take(config.streams.count);
    }
  }
  if (has_blocks(config)) take_blocks(config, shared, out);
  if (config.norm_gate_rank > 0) {
    out.norm_gate_short = shared.take(config.norm_gate_rank);
    out.norm_gates = shared.take(config.hidden_size);
  }
  if (config.laurel_rank > 0) {
    out.laurel_short = shared.take(config.laurel_rank);
    out.laurel = shared.take(config.hidden_size);
  }
  if (config.embedding_size > 0) out.embedded = shared.take(config.embedding_size);
  if (multiplies_inputs(config)) out.scaled = shared.take(config.hidden_size);
  if (config.layer_inputs.size > 0) {
    const int64_t all = int64_t{config.num_layers} * config.layer_inputs.size;
    out.layer_inputs = shared.take(all);
    out.layer_input_in = shared.take(all);
    out.layer_gate = shared.take(int64_t{2} * config.layer_inputs.size);
    out.layer_product = shared.take(config.layer_inputs.size);
  }
  if (config.parallel_branches || has_both_mixers(config) || has_both_mlps(config))
    out.second_branch = shared.take(config.hidden_size);
  if (has_shortcuts(config)) out.shortcut = shared.take(config.hidden_size);
  if (config.experts.shared_intermediate_size > 0) {
    out.shared_expert = shared.take(config.hidden_size);
  }
  Layout attention(base, dtype, max_batch_tokens, shared.offset());
  if (has_entries(config)) {
    const LatentConfig& latent = config.latent;
    out.qkv = attention.take((num_heads + 1) * latent.rank);
    out.latent_down = attention.take(int64_t{latent.query_rank} + latent.key_dim());
    out.attended = attention.take(num_heads * latent.rank);
    out.entry_rows = attention.take(most_entry_row(config));
    out.group_rows =
        attention.take(int64_t{config.entries.output_groups} * config.entries.output_rank);
  } else if (has_latents(config)) {
    out.qkv = attention.take(num_heads * kv_heads.head_dim);
    const bool gates_heads = config.has_output_gate && !config.latent.gates_values;
    const int64_t gates = gates_heads ? num_heads : 0;
    if (config.latent.reads_row_twice)
      out.query_pair = attention.take(int64_t{2} * config.latent.query_rank);
    if (config.latent.gates_values)
      out.value_gates = attention.take(num_heads * config.latent.value_dim);
    out.latent_down = attention.take(config.latent.query_rank + config.latent.key_dim() + gates);
    out.latent_q = attention.take(num_heads * config.latent.key_dim());
    out.latents = attention.take(num_heads * config.latent.rank);
    out.attended = attention.take(num_heads * config.latent.value_dim);
  } else {
    out.qkv = attention.take(qkv_width(config, world_size));
    out.attended = attention.take(num_heads * kv_heads.value_cols());
    if (has_differences(config)) out.difference = attention.take(num_heads * kv_heads.head_dim);
    if (config.distances.has_products()) {
      if (config.distances.has_keys)
        out.of_queries = attention.take(num_heads * config.distances.num_kinds);
      if (config.distances.has_queries)
        out.of_keys = attention.take(num_heads * config.distances.num_kinds);
    }
  }
  if (has_indexer(config)) {
    const IndexerConfig& indexer = config.indexer;
    out.indexer = attention.take(int64_t{indexer.query_cols()} + indexer.head_dim);
    if (indexer.norms_stream) out.indexer_input = attention.take(config.hidden_size);
    if (indexer.weighs_heads) out.indexer_weights = attention.take(indexer.num_heads);
  }
  const Layout state =
      take_state(config.state, Layout(base, dtype, max_batch_tokens, shared.offset()), out);
  Layout mlp(base, dtype, max_batch_tokens, shared.offset());
  out.gate_up = mlp.take(config.gated_mlp ? 2 * intermediate : intermediate);
  out.activated = mlp.take(intermediate);
  const int64_t top_k = config.experts.num_experts > 0 ? config.experts.route.top_k : 0;
  const int64_t routed_size = config.experts.intermediate_size / world_size;
  Layout chosen(base, dtype, max_batch_tokens, shared.offset());
  out.router_logits = chosen.take(config.experts.num_choices());
  if (config.experts.hidden_size > 0) {
    out.experts_in = chosen.take(config.experts.hidden_size);
    out.experts_out = chosen.take(config.experts.hidden_size);
  }
  Layout routed(base, dtype, max_batch_tokens * top_k, chosen.offset());
  out.routed_gate_up = routed.take(config.gated_mlp ? 2 * routed_size : routed_size);
  out.routed_activated = routed.take(routed_size);
  out.routed_down = routed.take(expert_cols(config));
  Layout last(base, DType::kF32, 1,
              std::max({attention.offset(), state.offset(), mlp.offset(), routed.offset()}));
  if (!config.norms_have_weights || config.norms_embedding || config.state.norms_parts ||
      has_entries(config) || has_differences(config) ||
      count_layers(config, &LayerPlan::divides_qk) > 0 ||
      count_layers(config, &LayerPlan::divides_v) > 0) {
    out.ones = last.take(std::max({config.hidden_size, kv_heads.head_dim, kv_heads.value_cols(),
                                   config.state.step_rank, config.state.state_size}));
  }
  if (config.state.kind == StateKind::kLightning) out.zeros = last.take(config.state.num_heads);
  if (!config.alibi_slopes.empty()) out.slopes = last.take(config.num_heads / world_size);
  out.size_bytes = last.offset();
  return out;
}

int64_t Transformer::workspace_bytes(const ModelConfig& config,
                                     const DeviceInfo& device,
                                     int world_size,
                                     int32_t max_batch_tokens) {
  return lay_out(config, device.activation_dtype, world_size, max_batch_tokens, nullptr).size_bytes;
}

}  // namespace tgi
