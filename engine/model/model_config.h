// What a model is, in the field's words, after its family has read config.json: sizes and traits of
// the whole, and a plan for each layer. The forward pass looks at nothing else, and at no family's
// name. Defaults are those of a Llama block.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/device/backend.h"
#include "engine/device/choice_ops.h"
#include "engine/model/head_spec.h"

namespace tgi {

inline constexpr int32_t kNoRope = -1;
inline constexpr int32_t kOwnKv = -1;
inline constexpr int32_t kNoSharedBlock = -1;

// kBoth: experts beside a dense MLP, each between norms of its own. kShortcut: experts that read
// what a dense MLP reads, and whose sum is added at the end of the next layer, which has none
// (shortcut-connected experts, https://arxiv.org/abs/2404.05019).
enum class MlpKind : uint8_t { kDense, kExperts, kBoth, kShortcut, kNone };

constexpr bool has_dense_part(MlpKind kind) {
  return kind == MlpKind::kDense || kind == MlpKind::kBoth || kind == MlpKind::kShortcut;
}
constexpr bool has_expert_part(MlpKind kind) {
  return kind == MlpKind::kExperts || kind == MlpKind::kBoth || kind == MlpKind::kShortcut;
}

// What layers that carry a state do with it: engine/device/state_ops.h. All such layers of a model
// are of one kind.
enum class StateKind : uint8_t {
  kNone,
  kShortConv,
  kMamba,
  kMamba2,
  kDeltaRule,
  kRgLru,
  kLightning
};

// Which of the tokens before it a token sees: all within the layer's window; those that the layer's
// indexer chooses; those that the last one before it chose.
enum class SeenTokens : uint8_t { kAll, kOwnChoice, kLastChoice };

// Of what a branch makes of the stream: what both are multiplied by before they are added.
struct ResidualFactors {
  float stream = 1.0F;
  float branch = 1.0F;

  bool operator==(const ResidualFactors&) const = default;
};

// In what layers of one model differ.
struct LayerPlan {
  bool has_attention = true;
  bool has_state = false;  // beside attention: both read the same, and their sum is the branch
  MlpKind mlp = MlpKind::kDense;
  bool experts_by_token = false;  // a table says which: the router only weighs them
  int32_t sliding_window = 0;     // tokens; 0: none
  int32_t attention_chunk = 0;    // tokens that see each other; 0: all
  int32_t rope = kNoRope;         // which of ModelConfig::ropes rotates q and k
  SeenTokens seen = SeenTokens::kAll;
  PositionScale query_scale{};
  float score_multiplier = 1.0F;  // beside attention_scale
  bool divides_qk = false;        // heads of q and k are normed, without weights
  bool divides_v = false;         // likewise those of v
  bool keys_are_values = false;   // v is what the matrix of k gives, before the keys' norm
  // Where layers differ; 0: as the model says. Those of one that reads another's keys and values
  // are as that one's.
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t intermediate_size = 0;
  int32_t kv_layer = kOwnKv;  // the layer before this one whose keys and values it reads
  // Attention and MLP are a block that follows the stream and the embedding beside it, and that
  // only feeds the state: what it gives is added to what the state reads, not to the stream. The
  // layer whose matrices it has, this one or one before (SharedBlocks).
  int32_t block_layer = kNoSharedBlock;
  // Differential attention (https://arxiv.org/abs/2410.05258): what the second half of the heads
  // gives is taken from what the first half does, times a learned number that training begins with
  // this one for. 0: there is no such difference.
  float first_difference = 0.0F;
  // Behind its window it sees entries, each of so many tokens; 0: nothing (EntriesConfig).
  int32_t tokens_per_entry = 0;
  bool entries_overlap = false;  // engine/device/compress_ops.h
  int32_t back_rope = kNoRope;   // which of ModelConfig::ropes turns back what attention gives
  // Of the dense MLP's gate, before its activation: so many standard deviations above the row's
  // mean is 0 (statistical top-k). None: there is no such cut.
  std::optional<float> gate_cutoff{};
  // Of the dense MLP and the expert that all tokens go to, and of those that are chosen; without a
  // limit: as the model says.
  GateLimits gate_limits{};
  GateLimits expert_limits{};
  // Of attention or a state, and of the MLP. The stream's are of models whose branches follow each
  // other.
  ResidualFactors mixer_factors{};
  ResidualFactors mlp_factors{};

  constexpr bool has_difference() const { return first_difference > 0.0F; }
  constexpr bool has_block() const { return block_layer != kNoSharedBlock; }
  constexpr bool has_own_kv() const { return has_attention && kv_layer == kOwnKv; }

  // The tokens that a token sees at most, itself included; 0: all before it.
  int32_t reach() const {
    if (sliding_window == 0) return attention_chunk;
    return attention_chunk == 0 ? sliding_window : std::min(sliding_window, attention_chunk);
  }

  bool operator==(const LayerPlan&) const = default;
};

// Of the head, while it is loaded: each row, or each column, is divided by its length.
enum class HeadDivision : uint8_t { kNone, kRows, kColumns };

// What the norm of q and k is taken over.
enum class QkNorm : uint8_t {
  kHead,  // each head by itself; one weight of head_dim for all, or one for each head
  kRow,   // all heads of a token together
};

// Of the layers whose MLP consists of experts.
struct ExpertsConfig {
  int32_t num_experts = 0;               // that have matrices: route.num_identity have none
  int32_t hidden_size = 0;               // that they read and give; 0: that of the stream
  int32_t intermediate_size = 0;         // of each
  int32_t shared_intermediate_size = 0;  // of the expert that all tokens go to; 0: none
  bool has_shared_gate = false;          // its output is multiplied by the sigmoid of a logit
  int32_t num_unread = 0;          // stored behind the others: no token of a text goes to them
  bool weighs_inputs = false;      // what an expert reads is weighed, not what it gives
  bool has_choice_bias = false;    // added to the scores by which experts are chosen
  bool has_scale = false;          // of each expert: its weight is multiplied by it
  float output_multiplier = 1.0F;  // of what all of them give together
  RouteRule route;

  int32_t num_choices() const { return num_experts + route.num_identity; }  // of the router
};

// Of the layers that carry a state.
struct StateConfig {
  StateKind kind = StateKind::kNone;
  int32_t conv_kernel = 0;
  // Mamba 1 has one head of all its channels; the value heads of the gated delta rule; those that
  // the matrices of RG-LRU's gates are of.
  int32_t num_heads = 0;
  int32_t head_dim = 0;
  int32_t state_size = 0;  // numbers for each channel
  // Of heads that share b and c; the key heads of the gated delta rule and of lightning attention.
  int32_t num_groups = 1;
  // What dt is made of: by Mamba 1 always; by the gated delta rule a row of so many numbers, or 0,
  // the stream.
  int32_t step_rank = 0;
  float min_step = 0.0F;
  float max_step = std::numeric_limits<float>::infinity();
  bool has_conv_bias = false;
  bool has_in_bias = false;
  bool has_out_bias = false;
  // Of the gated delta rule: engine/device/state_ops.h.
  bool decays_numbers = false;  // each number of a head by itself
  float strength = 1.0F;
  float floor = 0.0F;
  int32_t gate_rank = 0;  // what its gate is made of; 0: of the stream
  GateKind gate = GateKind::kSilu;
  bool has_norm = false;     // of what comes out, in groups
  bool norm_first = false;   // before the gate
  bool norms_parts = false;  // dt, b and c of Mamba 1
  float norm_eps = 0.0F;     // of both
  // Of what it reads, of z, x, b, c and dt of Mamba 2, of what it gives.
  float input_multiplier = 1.0F;
  std::array<float, 5> part_multipliers = {1.0F, 1.0F, 1.0F, 1.0F, 1.0F};
  float output_multiplier = 1.0F;

  int64_t num_channels() const { return int64_t{num_heads} * head_dim; }
  int64_t num_keys() const { return int64_t{num_groups} * state_size; }  // numbers of b, or of c
  int64_t num_steps() const { return decays_numbers ? int64_t{num_heads} * state_size : num_heads; }
  // Of what the gated delta rule makes of the stream for its gate and for dt.
  int64_t num_gate_inputs() const { return gate_rank > 0 ? gate_rank : num_channels(); }
  int64_t num_step_inputs() const { return step_rank > 0 ? step_rank : num_steps(); }
  int64_t num_conv_channels() const;  // of what the recurrence reads where there is no convolution
  int64_t num_inputs() const;         // numbers that a layer makes of the stream first
};

// Latent attention (MLA): the keys and values of all heads are made of one row of `rank` numbers,
// which is cached in their place beside the rotated columns of the keys, which all heads share.
struct LatentConfig {
  int32_t rank = 0;           // 0: the model's attention is another
  int32_t query_rank = 0;     // q is made of a row of so many numbers; 0: of the stream
  int32_t kept_dim = 0;       // of a head of q and k: columns that are not rotated
  int32_t rotary_dim = 0;     // those that are, which follow; in a layer without a rope, kept too
  int32_t value_dim = 0;      // of a head
  float norm_eps = 1e-6F;     // of both rows
  float multiplier = 1.0F;    // of the row of `rank`, after its norm
  bool gates_values = false;  // has_output_gate: of each number of a head, not of each head
  bool reads_row_twice = false;  // q and its gates read the queries' row as it was, too

  int32_t key_dim() const { return rank + rotary_dim; }  // of what is cached, at most
};

// Small heads beside those of attention, which choose the tokens that a later one sees
// (engine/device/choice_ops.h): each token has queries and one key for them.
struct IndexerConfig {
  int32_t num_heads = 0;  // 0: all tokens are seen
  int32_t head_dim = 0;
  int32_t rope = kNoRope;               // which of ModelConfig::ropes rotates some columns
  int32_t first_rotated = 0;            // the first of them; none in a layer without a rope
  bool weighs_heads = false;            // by what the stream says; else each head chooses by itself
  bool reads_short_queries = false;     // of latent attention; else the stream
  bool norms_stream = false;            // before its queries are made of it
  NormKind norm_kind = NormKind::kRms;  // of the heads of q and k that have weights for it
  float norm_eps = 0.0F;
  ChoiceRule rule;

  int32_t num_choices() const { return weighs_heads ? 1 : num_heads; }
  int32_t query_cols() const { return num_heads * head_dim; }
};

// Attention whose heads share one key, which is the value too (LatentConfig, of which nothing is
// rotated apart), and which sees what lies behind a window as entries. As values are rotated, what
// it gives is turned back. Its heads are in groups, of which each is made into a short row.
struct EntriesConfig {
  int32_t output_groups = 0;  // 0: attention is another
  int32_t output_rank = 0;    // of the short row of each

  bool operator==(const EntriesConfig&) const = default;
};

// Positions that are not learned: sines of the position at falling frequencies, then cosines.
// Source: https://arxiv.org/abs/1706.03762, section 3.5
struct SinusoidConfig {
  int32_t steps = 0;           // frequencies fall as 10000^(-i / steps); 0: there are none
  int32_t first_position = 0;  // of the first token

  bool operator==(const SinusoidConfig&) const = default;
};

// What is learned of the distance of two tokens is a row for each kind of distance, of which each
// layer makes a key and a query for each head: scores are sums of products of query and key, of
// query and the distance's key, of the distance's query and key.
// Source: DeBERTa (https://arxiv.org/abs/2006.03654), section 3.1
struct DistanceConfig {
  int32_t num_kinds = 0;  // half of them to each side, the nearest in the middle; 0: there are none
  // 0: the kinds are distances. Else those up to a quarter of num_kinds are, and farther ones are
  // told apart by their logarithm, as many up to this one (DeBERTa v2).
  int32_t log_reach = 0;
  bool has_keys = false;
  bool has_queries = false;
  bool shares_projections = false;  // they are made by the matrices that make those of the stream
  bool norms_rows = false;

  bool has_products() const { return num_kinds > 0 && (has_keys || has_queries); }
  bool operator==(const DistanceConfig&) const = default;
};

// Rows of each token for each layer: of a table of their own, and of the token's embedding
// (Gemma 3n, where they are called per-layer embeddings).
struct LayerInputs {
  int32_t size = 0;        // of a row; 0: there are none
  int32_t vocab_size = 0;  // of the table

  bool operator==(const LayerInputs&) const = default;
};

// Hidden states of several streams: the first begins as the embedding, the others as what matrices
// make of it, and what they end as is brought back and averaged. A layer works on one of them, and
// all are predicted before it and corrected after it. What a row of a layer adds goes to all but
// the first.
// Source: AltUp (https://arxiv.org/abs/2301.13310)
//
// Or streams are connected (hyper-connections, https://arxiv.org/abs/2409.19606): all begin as the
// embedding, a branch reads a weighted sum of them, and what it gives is added to each with another
// weight; the last norm reads a weighted sum. The weights are made of all streams.
//
// Or there are two, of which the second stays the embedding, beside the one that layers work on.
struct StreamsConfig {
  int32_t count = 1;
  int32_t active = 0;       // the one that layers work on
  bool has_scales = false;  // of the columns of the active one, where a layer's row reads it
  bool connects = false;
  bool keeps_embedding = false;
  float eps = 0.0F;        // added to weights, where they are connected
  float magnitude = 1.0F;  // of the weights of what a branch gives
  // Streams are mixed before that is added, by weights whose rows and columns sum to 1 after so
  // many turns (https://arxiv.org/abs/2512.24880); 0: they stay.
  int32_t mixing_turns = 0;
  bool adds_eps_to_branch = false;  // to the weights of what a branch gives, too

  int32_t num_kinds() const { return mixing_turns > 0 ? 3 : 2; }
  int32_t num_connections() const { return (2 + (mixing_turns > 0 ? count : 0)) * count; }

  bool operator==(const StreamsConfig&) const = default;
};

// Blocks of attention and MLP that several layers have in common (LayerPlan::block_layer). What
// such a layer has for itself is a pair of matrices beside some of theirs, to a short row and back,
// whose product with what that one reads is added to what it gives. Source:
// https://arxiv.org/abs/2411.15242, figure 2
struct SharedBlocks {
  int32_t low_rank = 0;       // of the short row
  bool low_rank_qkv = false;  // beside q, k and v too, not gate and up alone

  bool operator==(const SharedBlocks&) const = default;
};

struct ModelConfig {
  std::string architecture;  // "LlamaForCausalLM"

  int32_t vocab_size = 0;
  int32_t hidden_size = 0;
  int32_t embedding_size = 0;  // of a token in the table and the head; 0: hidden_size
  // Positions, types and the norm of embeddings are of embedding_size, else of the stream.
  bool projects_embedding_last = false;
  // Where a layer is loaded that drafts: what its q, k and v read, and the rows of its head.
  int32_t attention_input_size = 0;  // 0: hidden_size
  int32_t head_vocab_size = 0;       // 0: vocab_size
  // Rows of the embedding behind those of tokens that can be drawn, of images and sounds: left out.
  int32_t unread_rows = 0;
  int32_t intermediate_size = 0;
  int32_t num_layers = 0;
  // Layers that follow each other have the same weights, and so many are stored; 0: all are.
  int32_t num_stored_layers = 0;
  int32_t layers_after_last = 0;  // stored too, of the layers' shape: they draft, and are left out
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;       // of q and k
  int32_t value_dim = 0;      // of v, where attention is no latent one; 0: head_dim
  int32_t max_positions = 0;  // the longest context the model is meant for
  // The same as config.json has it, where leave_out_indexer ended it before. 0: it did not.
  int32_t stated_positions = 0;

  std::vector<LayerPlan> layers;  // (num_layers)
  std::vector<RopeSpec> ropes;

  NormKind norm_kind = NormKind::kRms;
  float norm_eps = 1e-5F;
  float post_norm_eps = 0.0F;         // of the norms behind the branches; 0: norm_eps
  float norm_weight_offset = 0.0F;    // 1 where the checkpoint stores weight - 1
  bool final_norm_as_stored = false;  // that of the last norm is 0, whatever the others'
  bool has_inner_norms = false;       // of what the last matrix of each branch reads
  bool has_post_norms = false;        // after each branch, where the family leaves it to the config
  bool norms_have_biases = false;     // where the family leaves it to the config
  bool norms_have_weights = true;     // false: those of stream and head only divide
  bool norms_embedding = false;       // without a weight, where the family has none for it
  // Attention and MLP of a layer read the same stream, and their sum is added to it. Else the MLP
  // reads what attention has been added to.
  bool parallel_branches = false;
  bool shares_branch_norm = false;  // parallel branches read what one norm gives
  // The stream goes on from what a norm before a branch gives, not from what it was given.
  bool residual_after_norm = false;

  Activation activation = Activation::kSilu;
  GateLimits gate_limits{};
  bool gated_mlp = true;
  ExpertsConfig experts;
  StateConfig state;

  bool attention_bias = false;         // of q, k, v and o, where the family leaves it to the config
  bool attention_output_bias = false;  // of o, where the family has a field for it
  bool mlp_bias = false;               // of gate, up and down, likewise
  bool lm_head_bias = false;           // of the head, likewise
  bool head_dense_bias = false;        // of the matrix before it, likewise

  bool learned_positions = false;
  SinusoidConfig sinusoids;
  int32_t position_offset = 0;               // rows of that table before the one of position 0
  int32_t num_token_types = 0;               // rows of the table of types; 0: there is none
  int32_t num_task_types = 0;                // likewise of a table of kinds of texts
  HeadInput head_input = HeadInput::kFirst;  // where a family's head leaves it to the config
  Activation head_activation = Activation::kGelu;  // of the matrix before the head, where there is

  LatentConfig latent;
  IndexerConfig indexer;
  EntriesConfig entries;
  LayerInputs layer_inputs;
  StreamsConfig streams;
  SharedBlocks shared_blocks;
  // Of two matrices that make of what attention reads what is added beside it (LAuReL,
  // https://arxiv.org/abs/2411.07501); 0: there are none.
  int32_t laurel_rank = 0;
  int32_t norm_gate_rank = 0;  // of the row that gates what norms give; 0: there is none

  std::vector<float> alibi_slopes;  // (num_heads); empty: no ALiBi
  // T5's kinds of distances between two tokens, half of them to each side: near ones are told
  // apart, farther ones by their logarithm, up to kMaxDistance. 0: scores have no such bias.
  int32_t distance_buckets = 0;
  DistanceConfig distances;

  // Set by the reader: 1 / sqrt(head_dim) unless the family says otherwise.
  float attention_scale = 0.0F;
  float attention_softcap = 0.0F;
  bool is_causal = true;  // else a token sees those after it too, within the window of a layer
  // The answer is hidden states: there is no head, and tokens are not drawn.
  bool gives_vectors = false;
  // What attention gives is multiplied by what `output_gate` makes of a second q, or of a number
  // for each head.
  bool has_output_gate = false;
  GateKind output_gate = GateKind::kSigmoid;
  bool gates_heads = false;  // the latter, where the family leaves it to the config
  float qkv_clip = 0.0F;     // q, k and v are held between -qkv_clip and qkv_clip; 0: off
  // Of q and k, where they have such weights.
  bool has_qk_norm = false;  // where the family leaves it to the config
  QkNorm qk_norm = QkNorm::kHead;
  NormKind qk_norm_kind = NormKind::kRms;
  bool qk_norm_after_rope = false;  // of kHead

  float embedding_multiplier = 1.0F;
  float residual_multiplier = 1.0F;  // of every branch
  // Of what attention reads, of its keys before they are rotated, of what it gives; of the gate
  // before the activation, of what the MLP gives.
  float attention_input_multiplier = 1.0F;
  float key_multiplier = 1.0F;
  float attention_output_multiplier = 1.0F;
  float mlp_gate_multiplier = 1.0F;
  float mlp_output_multiplier = 1.0F;
  float logit_scale = 1.0F;
  float logit_softcap = 0.0F;
  bool tied_embeddings = false;
  HeadDivision head_division = HeadDivision::kNone;

  DType checkpoint_dtype = DType::kF32;  // dtype / torch_dtype; what "auto" loads as
  std::vector<int32_t> eos_token_ids;    // generation_config.json before config.json
  int32_t bos_token_id = -1;
};

inline constexpr int32_t kMaxDistance = 128;

// Of a layer, or of what is no layer's.
inline int32_t of_layer(const ModelConfig& config,
                        int32_t layer,
                        int32_t LayerPlan::*of_plan,
                        int32_t of_model) {
  if (layer < 0) return of_model;
  const int32_t own = config.layers[static_cast<size_t>(layer)].*of_plan;
  return own > 0 ? own : of_model;
}
inline KvHeads kv_heads_of(const ModelConfig& config, int32_t layer) {
  return {.num_kv_heads = of_layer(config, layer, &LayerPlan::num_kv_heads, config.num_kv_heads),
          .head_dim = of_layer(config, layer, &LayerPlan::head_dim, config.head_dim),
          .value_dim = config.value_dim};
}
// Of latent attention: what of a head is rotated in that layer, what is kept, what is cached of a
// token, and the rows of the matrix that makes a head's keys and values of that.
inline int32_t latent_rotary_dim(const ModelConfig& config, int32_t layer) {
  const bool rotates = layer < 0 || config.layers[static_cast<size_t>(layer)].rope != kNoRope;
  return rotates ? config.latent.rotary_dim : 0;
}
inline int32_t latent_kept_dim(const ModelConfig& config, int32_t layer) {
  const LatentConfig& latent = config.latent;
  return latent.kept_dim + latent.rotary_dim - latent_rotary_dim(config, layer);
}
inline int32_t latent_key_dim(const ModelConfig& config, int32_t layer) {
  return config.latent.rank + latent_rotary_dim(config, layer);
}
inline int32_t latent_head_rows(const ModelConfig& config, int32_t layer) {
  return latent_kept_dim(config, layer) + config.latent.value_dim;
}
inline int32_t num_heads_of(const ModelConfig& config, int32_t layer) {
  return of_layer(config, layer, &LayerPlan::num_heads, config.num_heads);
}
// Of a layer's dense MLP, or of its chosen experts.
inline const GateLimits& gate_limits_of(const ModelConfig& config,
                                        int32_t layer,
                                        GateLimits LayerPlan::*of_plan) {
  const GateLimits& own = config.layers[static_cast<size_t>(layer)].*of_plan;
  return own.limit > 0.0F ? own : config.gate_limits;
}
inline int32_t intermediate_size_of(const ModelConfig& config, int32_t layer) {
  return of_layer(config, layer, &LayerPlan::intermediate_size, config.intermediate_size);
}

// The most of any layer.
inline int32_t most_of_layers(const ModelConfig& config,
                              int32_t LayerPlan::*of_plan,
                              int32_t of_model) {
  int32_t most = config.layers.empty() ? of_model : 0;
  for (const LayerPlan& plan : config.layers) {
    most = std::max(most, plan.*of_plan > 0 ? plan.*of_plan : of_model);
  }
  return most;
}
inline KvHeads most_kv_heads(const ModelConfig& config) {
  return {.num_kv_heads = most_of_layers(config, &LayerPlan::num_kv_heads, config.num_kv_heads),
          .head_dim = most_of_layers(config, &LayerPlan::head_dim, config.head_dim),
          .value_dim = config.value_dim};
}
inline int32_t most_heads(const ModelConfig& config) {
  return most_of_layers(config, &LayerPlan::num_heads, config.num_heads);
}
inline int32_t most_intermediate(const ModelConfig& config) {
  return most_of_layers(config, &LayerPlan::intermediate_size, config.intermediate_size);
}

// Whether heads are not the same in all layers, or in keys and values.
inline bool has_unlike_heads(const ModelConfig& config) {
  return config.value_dim > 0 || std::ranges::any_of(config.layers, [](const LayerPlan& plan) {
           return plan.num_kv_heads > 0 || plan.head_dim > 0;
         });
}
constexpr bool has_entries(const ModelConfig& config) {
  return config.entries.output_groups > 0;
}
// The widest row of what a token adds to entries and of its gates.
inline int64_t most_entry_row(const ModelConfig& config) {
  int64_t most = 0;
  for (const LayerPlan& plan : config.layers) {
    if (plan.tokens_per_entry == 0) continue;
    most = std::max<int64_t>(most, (plan.entries_overlap ? 4 : 2) * int64_t{config.latent.rank});
    most = std::max<int64_t>(most, 4 * int64_t{config.indexer.head_dim});
  }
  return most;
}
constexpr bool has_indexer(const ModelConfig& config) {
  return config.indexer.num_heads > 0;
}
inline bool has_shared_kv(const ModelConfig& config) {
  return std::ranges::any_of(config.layers,
                             [](const LayerPlan& plan) { return plan.kv_layer != kOwnKv; });
}

// The widest row that a matrix of the model is multiplied with.
inline int32_t max_matmul_cols(const ModelConfig& config) {
  return std::max({config.hidden_size,
                   config.embedding_size,
                   config.attention_input_size,
                   most_intermediate(config),
                   config.experts.intermediate_size,
                   config.experts.hidden_size,
                   config.experts.shared_intermediate_size,
                   most_heads(config) * most_kv_heads(config).head_dim,
                   most_heads(config) * most_kv_heads(config).value_cols(),
                   config.latent.rank,
                   config.latent.query_rank,
                   config.num_heads * config.latent.value_dim,
                   static_cast<int32_t>(config.state.num_channels()),
                   config.state.step_rank,
                   config.state.gate_rank,
                   config.indexer.head_dim,
                   config.entries.output_groups * config.entries.output_rank,
                   config.layer_inputs.size,
                   config.laurel_rank,
                   config.norm_gate_rank,
                   config.shared_blocks.low_rank,
                   2 * config.latent.query_rank,
                   config.streams.connects ? config.streams.count * config.hidden_size : 0});
}

constexpr bool has_streams(const ModelConfig& config) {
  return config.streams.count > 1 || config.streams.connects;
}
// That begin as what matrices make of the embedding.
constexpr int32_t num_further_streams(const ModelConfig& config) {
  const StreamsConfig& streams = config.streams;
  return streams.connects || streams.keeps_embedding ? 0 : streams.count - 1;
}
inline bool has_differences(const ModelConfig& config) {
  return std::ranges::any_of(config.layers, &LayerPlan::has_difference);
}
inline bool has_blocks(const ModelConfig& config) {
  return std::ranges::any_of(config.layers, &LayerPlan::has_block);
}
// Of all streams together.
constexpr int64_t stream_cols(const ModelConfig& config) {
  return int64_t{config.streams.count} * config.hidden_size;
}
inline bool cuts_gates(const ModelConfig& config) {
  return std::ranges::any_of(config.layers,
                             [](const LayerPlan& plan) { return plan.gate_cutoff.has_value(); });
}

inline int64_t StateConfig::num_conv_channels() const {
  switch (kind) {
    case StateKind::kNone:
      return 0;
    case StateKind::kShortConv:
    case StateKind::kMamba:
    case StateKind::kRgLru:
      return num_channels();
    case StateKind::kMamba2:
    case StateKind::kDeltaRule:
    case StateKind::kLightning:
      return num_channels() + 2 * num_keys();
  }
  return 0;
}

inline int64_t StateConfig::num_inputs() const {
  switch (kind) {
    case StateKind::kNone:
      return 0;
    case StateKind::kShortConv:
      return 3 * num_channels();
    case StateKind::kMamba:
    case StateKind::kRgLru:
      return 2 * num_channels();
    case StateKind::kMamba2:
      return 2 * num_channels() + 2 * num_keys() + num_heads;
    case StateKind::kLightning:
      return 2 * num_channels() + 2 * num_keys();
    case StateKind::kDeltaRule:
      return num_channels() + 2 * num_keys() + num_gate_inputs() + num_heads + num_step_inputs();
  }
  return 0;
}

inline int32_t count_layers(const ModelConfig& config, bool LayerPlan::*trait) {
  return static_cast<int32_t>(std::ranges::count(config.layers, true, trait));
}

// Whether a layer's state would have to be there beside cached keys and values: then no prefix of
// another sequence can be taken over.
inline bool has_state(const ModelConfig& config) {
  return count_layers(config, &LayerPlan::has_state) > 0;
}

constexpr bool has_latents(const ModelConfig& config) {
  return config.latent.rank > 0;
}

// Where tokens can't be chosen: contexts end where all of them are seen.
inline void leave_out_indexer(ModelConfig& config) {
  if (!has_indexer(config)) return;
  const int64_t all = config.indexer.rule.sees_all_up_to();
  if (all < config.max_positions) {
    config.stated_positions = config.max_positions;
    config.max_positions = static_cast<int32_t>(all);
  }
  config.indexer = {};
  for (LayerPlan& layer : config.layers) layer.seen = SeenTokens::kAll;
}

// Of a row of the table of embeddings, and of the head.
constexpr int32_t embedding_cols(const ModelConfig& config) {
  return config.embedding_size > 0 ? config.embedding_size : config.hidden_size;
}

// What q, k and v read.
constexpr int32_t attention_input_cols(const ModelConfig& config) {
  return config.attention_input_size > 0 ? config.attention_input_size : config.hidden_size;
}
constexpr int32_t head_vocab_rows(const ModelConfig& config) {
  return config.head_vocab_size > 0 ? config.head_vocab_size : config.vocab_size;
}

// What an expert reads and gives.
constexpr int32_t expert_cols(const ModelConfig& config) {
  return config.experts.hidden_size > 0 ? config.experts.hidden_size : config.hidden_size;
}

// Of the layers that do not see all before a token; 0 where all do, or none is left alone: a token
// of an encoder may be seen from far behind it.
inline int32_t longest_window(const ModelConfig& config) {
  int32_t longest = 0;
  if (!config.is_causal) return 0;
  for (const LayerPlan& layer : config.layers) longest = std::max(longest, layer.reach());
  return longest;
}

}  // namespace tgi
