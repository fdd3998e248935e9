// The forward pass of a transformer that is a decoder or an encoder, written once for every family:
// what differs is in the traits of ModelConfig and in which weights are there.
//
// Activations live in one device buffer sized for max_batch_tokens; a step allocates nothing.
// Belongs to the rank's worker thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/device/backend.h"
#include "engine/device/communicator.h"
#include "engine/model/kv_plan.h"
#include "engine/model/model_config.h"
#include "engine/model/model_weights.h"
#include "engine/model/reported_rows.h"

namespace tgi {

class Transformer final : public Forward {
 public:
  // `weights`, `device` and `communicator` must outlive it. Registers the model's rotary embeddings
  // with the device.
  Transformer(const ModelConfig& config,
              const ModelWeights& weights,
              Device& device,
              Communicator& communicator,
              const KvPlan& kv_plan,
              int32_t max_batch_tokens);

  // Bytes of activations it will allocate.
  static int64_t workspace_bytes(const ModelConfig& config,
                                 const DeviceInfo& device,
                                 int world_size,
                                 int32_t max_batch_tokens);

  void run(int32_t num_tokens, int32_t num_output_rows) override;
  void sample(int32_t num_output_rows) override;
  bool is_replayable() const override { return true; }

  // From now on pooled_rows count the rows of sample_rows: what tokens were drawn from. Before the
  // first step. REQUIRES: the model draws tokens, the device has the op `pool`.
  void report_hidden() { reports_hidden_ = true; }
  // From now on steps that want it report these rows. Before the first step. REQUIRES: the device
  // has the op `report_rows`; its SlotLayout was told of them; the model has one stream.
  void report_rows(ReportedRows rows) {
    TGI_CHECK(rows.is_empty() || !has_streams(config_));
    reported_ = std::move(rows);
  }

  // A step's parts one by one, for who holds the hidden states between them (engine/quantize); only
  // from within another Forward. `hidden`: (num_tokens, stream_cols) in the device's memory and its
  // type, at most max_batch_tokens rows; outside of it they are whole, no branch is left to add.
  // The bits are those of run().
  void run_embedding(const Tensor& hidden);
  void run_layer(int32_t layer, const Tensor& hidden);  // in place
  // The same of a layer whose attention reads `x` in place of what its norm makes of the stream:
  // (num_tokens, attention_input_cols).
  void run_layer_beside(int32_t layer, const Tensor& x, const Tensor& hidden);
  void run_head(const Tensor& hidden);  // every row goes to Device::sample

 private:
  struct Workspace {
    int64_t size_bytes = 0;
    Tensor residual;        // (max_batch_tokens, hidden): the sum of all branches so far
    Tensor streams;         // (max_batch_tokens, streams * hidden), where there are several
    Tensor normed_streams;  // the same size, where a block reads all of them
    Tensor low_short;       // (max_batch_tokens, 3 * low_rank), where blocks are shared
    Tensor low_added;       // (max_batch_tokens, the widest row that something is added to)
    Tensor stream_routed;   // (max_batch_tokens, streams)
    Tensor laurel_short;    // (max_batch_tokens, laurel_rank)
    Tensor laurel;          // (max_batch_tokens, hidden): what is added beside attention
    Tensor normed;          // (max_batch_tokens, hidden)
    Tensor branch;          // (max_batch_tokens, hidden): what the last branch adds
    Tensor second_branch;   // (max_batch_tokens, hidden), where two are made of one input
    Tensor scaled;          // (max_batch_tokens, hidden), where a branch reads it multiplied
    Tensor shared_expert;   // (max_batch_tokens, hidden), where there is one
    Tensor qkv;             // (max_batch_tokens, q + 2 kv), and the gates of what is attended
    Tensor attended;        // (max_batch_tokens, q), or the values of all heads
    Tensor difference;      // (max_batch_tokens, q), where halves of the heads are subtracted
    Tensor of_queries;      // (max_batch_tokens, heads * kinds of distances), where there are such
    Tensor of_keys;         // likewise
    Tensor latent_down;     // (max_batch_tokens, query_rank + key_dim + gates), of latent attention
    Tensor latent_q;        // (max_batch_tokens, heads * key_dim)
    Tensor latents;         // (max_batch_tokens, heads * rank): what was attended to
    // (max_batch_tokens, heads * head_dim of the indexer + one head), where tokens are chosen
    Tensor indexer;
    // (max_batch_tokens, what a token adds to entries and its gates), of layers that see entries
    Tensor entry_rows;
    Tensor group_rows;       // (max_batch_tokens, output_groups * output_rank)
    Tensor query_pair;       // (max_batch_tokens, 2 * query_rank), where q reads the row twice
    Tensor value_gates;      // (max_batch_tokens, heads * value_dim), of latent attention
    Tensor norm_gate_short;  // (max_batch_tokens, norm_gate_rank), of what norms give
    Tensor norm_gates;       // (max_batch_tokens, hidden)
    Tensor connections;      // (max_batch_tokens, numbers), of streams that are connected
    Tensor indexer_input;    // (max_batch_tokens, hidden), where it norms the stream
    Tensor indexer_weights;  // (max_batch_tokens, heads of the indexer), where they have some
    Tensor gate_up;  // (max_batch_tokens, 2 * intermediate), or (…, intermediate) without a gate
    Tensor activated;         // (max_batch_tokens, intermediate)
    Tensor shortcut;          // (max_batch_tokens, hidden): of experts, for the next layer
    Tensor router_logits;     // (max_batch_tokens, num_choices)
    Tensor routed_gate_up;    // (max_batch_tokens * top_k, …) as gate_up, and so on
    Tensor routed_activated;  // (max_batch_tokens * top_k, intermediate of an expert)
    Tensor routed_down;       // (max_batch_tokens * top_k, hidden)
    // (max_batch_tokens, hidden of experts) each, where that is not the stream's.
    Tensor experts_in;
    Tensor experts_out;
    // (max_batch_tokens, hidden): rows whose logits are wanted, normed; for sample()
    Tensor last_rows;
    Tensor embedded;   // (max_batch_tokens, embedding), where that is not as wide as the stream
    Tensor state_in;   // (max_batch_tokens, what in_proj of a layer with a state gives)
    Tensor convolved;  // (max_batch_tokens, channels of the convolution)
    // (max_batch_tokens, step_rank + 2 * state_size); of RG-LRU its two gates
    Tensor state_parts;
    Tensor state_gates;     // (max_batch_tokens, channels)
    Tensor steps;           // (max_batch_tokens, channels, or numbers of dt)
    Tensor layer_inputs;    // (max_batch_tokens, layers * size), where there are such rows
    Tensor layer_input_in;  // (max_batch_tokens, layers * size): what the embedding gives to them
    // (max_batch_tokens, 2 * size): what the stream makes of a layer's row, then the row.
    Tensor layer_gate;
    Tensor layer_product;  // (max_batch_tokens, size)
    Tensor ones;           // (1, hidden at least), f32: of norms without weights
    Tensor slopes;         // (1, num_heads), f32, of ALiBi
    Tensor zeros;          // (1, heads of a state), f32, of lightning attention
  };
  // transformer_workspace.cc: lays the tensors out from `base`; qkv/attended, those of a state,
  // gate_up/activated and those of experts are never alive together and share memory.
  static Workspace lay_out(
      const ModelConfig& config, DType dtype, int world_size, int32_t max_batch_tokens, void* base);

  // The residual stream: a sum, and a branch that is still to be added to it. Devices add it in the
  // pass of the norm that reads the stream next. Where there are several, it is the one that a
  // layer works on.
  struct Stream {
    Tensor sum;
    Tensor branch;
    bool has_branch = false;
    Tensor all{};  // (rows, streams * hidden), where there are several
  };
  Stream stream_at(const Tensor& hidden) const;

  void embed_tokens(const Tensor& hidden);
  void norm_embedding(const Tensor& embedded);
  void add_to_embedding(const Tensor& embedded);
  void run_layer_on(int32_t layer, Stream& stream);
  void run_branches(int32_t layer, const LayerWeights& weights, Stream& stream);
  // transformer_blocks.cc: layers whose block of attention and MLP feeds their state.
  void run_fed_state(int32_t layer, const LayerWeights& weights, Stream& stream);
  void run_block_mlp(const LayerWeights& weights, const Tensor& x, const Tensor& out);
  void add_low_rank(const Linear& in,
                    std::span<const Linear* const> outs,
                    const Tensor& x,
                    const Tensor& out);
  void run_connected_branches(int32_t layer, const LayerWeights& weights, Stream& stream);
  void run_mlp_branch(int32_t layer, const LayerWeights& weights, Stream& stream);
  void run_branches_at_once(const LayerWeights& weights, int32_t layer, Stream& stream);

  void report_before(int32_t layer, Stream& stream);
  void report_last(Stream& stream);

  void add_branch(Stream& stream);
  // The stream as a branch reads it: normed where there is such a norm.
  Tensor read(Stream& stream, const DeviceVector& norm, const DeviceVector& norm_bias);
  // What `branch` holds will be added to the stream, through a norm of its own where there is one.
  void write(Stream& stream, const DeviceVector& post_norm);
  // The same of one that ranks have summed up already.
  void write_whole(Stream& stream, const DeviceVector& post_norm);
  void multiply_parts(const ResidualFactors& factors, Stream& stream);  // before they are added

  // Attention, a state, or both of one input.
  void run_mixers(int32_t layer, const LayerWeights& weights, const Tensor& x, const Tensor& out);
  // state_mixers.cc
  void run_state(int32_t layer, const LayerWeights& weights, const Tensor& x, const Tensor& out);
  void run_short_conv(int32_t state, const LayerWeights& weights, const Tensor& x);
  void run_mamba(int32_t state, const LayerWeights& weights, const Tensor& x);
  void run_mamba2(int32_t state, const LayerWeights& weights, const Tensor& x);
  void run_delta_rule(int32_t state, const LayerWeights& weights, const Tensor& x);
  void run_rg_lru(int32_t state, const LayerWeights& weights, const Tensor& x);
  void run_lightning(int32_t state, const LayerWeights& weights, const Tensor& x);
  Tensor widened(const Linear& up, const Tensor& row, const Tensor& room);
  void convolve(int32_t state, const LayerWeights& weights, bool silu, const Tensor& x);
  void norm_mamba_parts(const LayerWeights& weights, const Tensor& parts);
  void multiply(const Tensor& x, float factor);      // in place
  Tensor multiplied(const Tensor& x, float factor);  // a copy, unless by 1
  KvHeads heads_of(int32_t layer) const;             // of this rank
  // The device's number of one of ModelConfig::ropes.
  int32_t added_rope(int32_t rope) const {
    return rope == kNoRope ? kNoRope : ropes_[static_cast<size_t>(rope)];
  }
  void run_attention(int32_t layer,
                     const LayerWeights& weights,
                     const Tensor& x,
                     const Tensor& out);
  // transformer_latent.cc
  void run_latent_attention(int32_t layer,
                            const LayerWeights& weights,
                            const Tensor& x,
                            const Tensor& out);
  // transformer_indexer.cc: what attention of the layer sees.
  SeenChoice choose_tokens(int32_t layer,
                           const LayerWeights& weights,
                           const Tensor& x,
                           const Tensor& short_q);
  // transformer_entries.cc
  void run_entries_attention(int32_t layer,
                             const LayerWeights& weights,
                             const Tensor& x,
                             const Tensor& out);
  SeenChoice choose_entries(int32_t layer,
                            const LayerWeights& weights,
                            const Tensor& x,
                            const Tensor& short_q);
  void rotate_queries(int32_t num_heads, int32_t head_dim, int32_t rope, const Tensor& queries);
  int32_t first_rotated(int32_t head_dim, int32_t rope) const;
  void norm_in_place(NormKind kind, float eps, const Tensor* weight, const Tensor& x);
  void norm_inner(const DeviceVector& weight, const Tensor& x);  // where there is such a norm
  // Of what the heads give, where the plan has such a difference.
  Tensor subtract_heads(const LayerPlan& plan, const LayerWeights& weights, const Tensor& attended);
  void norm_qk_rows(const LayerWeights& weights, const Tensor& q, const Tensor& k);
  void run_mlp(int32_t layer, const LayerWeights& weights, const Tensor& x, const Tensor& out);
  void run_dense_mlp(const XieluNumbers& xielu,
                     const Linear& gate_up,
                     const DeviceVector& inner_norm,
                     const Linear& down,
                     const GateLimits& limits,
                     const std::optional<float>& gate_cutoff,
                     const Tensor& x,
                     const Tensor& out);
  void activate(const XieluNumbers& xielu,
                const GateLimits& limits,
                const Tensor& gate_up,
                const Tensor& out);
  void run_experts(int32_t layer, const LayerWeights& weights, const Tensor& x, const Tensor& out);
  void choose_experts(const LayerWeights& weights, const Tensor& x);
  void run_chosen_experts(int32_t layer,
                          const LayerWeights& weights,
                          const Tensor& x,
                          const Tensor& out);
  // Experts beside a dense MLP.
  void run_both_mlps(int32_t layer, const LayerWeights& weights, Stream& stream);
  void run_mlp_beside_shortcut(int32_t layer, const LayerWeights& weights, Stream& stream);
  // transformer_layer_inputs.cc: rows of each token for each layer.
  void embed_layer_inputs(const Tensor& embedded);
  void add_layer_input(int32_t layer, const LayerWeights& weights, Stream& stream);
  void scale_stream(const LayerWeights& weights, Stream& stream);
  // transformer_streams.cc: hidden states of several streams, and what is added beside attention.
  Tensor stream_of(const Tensor& all, int32_t index) const;
  void make_streams(const Tensor& all);  // from the embedding, which is the first
  StreamRouting route_streams(const LayerWeights& weights,
                              const DeviceVector& matrix,
                              const Tensor& x);
  void predict_streams(const LayerWeights& weights, Stream& stream);
  void correct_streams(const LayerWeights& weights, Stream& stream);
  void add_to_further_streams(Stream& stream);
  // What the last norm reads: of the rows that the step gives out, or of all.
  void join_streams(const Tensor& all, bool takes_output_rows, const Tensor& out);
  // Of streams that are connected.
  StreamConnection connect(const Linear& made,
                           const DeviceVector& base,
                           const DeviceVector& scale,
                           const Tensor& all);
  void expand(const StreamConnection& connection, const Tensor& branch);
  void join_connected(const Tensor& all, const Tensor& out);
  void copy_to_streams(const Tensor& all);                               // the first
  void gate_norm(const Linear& in, const Linear& out, const Tensor& x);  // where there is such
  void run_laurel(const LayerWeights& weights, const Tensor& x);
  void add_laurel(Stream& stream);
  void add_shared_expert(int32_t layer,
                         const LayerWeights& weights,
                         const Tensor& x,
                         const Tensor& out);
  void run_head_dense(const Tensor& rows);
  void sample_rows(const Tensor& rows);
  void copy_constants();
  // transformer_distances.cc: the keys and queries of distances of all layers.
  void make_distances();
  HeadMatrices make_heads(const Linear& linear, int64_t first_row);
  DistanceProducts multiply_distances(int32_t layer, const Tensor& q, const Tensor& k);
  bool has_norm(const DeviceVector& weight) const;
  NormArgs norm_args(const DeviceVector& weight, const DeviceVector& bias) const;

  const ModelConfig config_;
  const ModelWeights& weights_;
  Device& device_;
  Communicator& communicator_;
  const int32_t num_heads_;                    // of this rank
  std::vector<int32_t> ropes_;                 // of the device, by their index in the config
  const std::vector<KvPlace> kv_places_;       // by layer
  const std::vector<KvPlace> indexer_places_;  // by layer; empty: there are no indexers
  const std::vector<KvPlan::EntryPlaces> entry_places_;  // by layer; empty: there are no entries
  const std::vector<KvPlan::EntryPlaces> indexer_entry_places_;  // likewise
  std::vector<HeadMatrices> distance_keys_;                      // by layer; empty: none, likewise
  std::vector<HeadMatrices> distance_queries_;
  std::vector<int32_t> distance_kinds_;
  std::vector<int32_t> state_index_;  // by layer: which of those with a state it is
  Buffer memory_;
  Workspace workspace_;
  bool reports_hidden_ = false;
  ReportedRows reported_;
};

}  // namespace tgi
