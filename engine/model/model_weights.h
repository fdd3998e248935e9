// All weights of a model on one device, fused as the forward pass wants them. Immutable once
// loaded; shared by every step. What is absent in the checkpoint is empty here, and that is the
// only switch the forward pass has.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/device/backend.h"
#include "engine/model/architecture.h"
#include "engine/model/linear.h"
#include "engine/weights/checkpoint.h"

namespace tgi {

struct LayerWeights {
  DeviceVector attention_norm;
  DeviceVector attention_norm_bias;
  Linear qkv;  // (q + 2 kv, hidden): rows q, k, v; and the gates of what attention gives
  DeviceVector q_norm;
  DeviceVector q_norm_bias;
  DeviceVector k_norm;
  DeviceVector k_norm_bias;
  DeviceVector sinks;
  float difference = 0.0F;   // what the second half of the heads is multiplied by
  DeviceVector head_scales;  // (2, heads): QkvArgs.head_scales
  // Of latent attention; qkv is then q alone, of the stream or of the queries' short row.
  // (query_rank + key_dim, hidden): the queries' short row, latent, rotated; and where attention
  // has an output gate, a number for each head.
  Linear latent_down;
  DeviceVector query_norm;
  DeviceVector latent_norm;
  HeadMatrices key_up;    // each (rank, kept_dim): what a query keeps into the latent's space
  HeadMatrices value_up;  // each (value_dim, rank): what is attended to out of it
  Linear value_gate;      // (heads * value_dim, …) the gates of what is attended to, if there are
  // Of what the norms before the branches give: (rank, hidden), and back.
  Linear attention_norm_gate_in;
  Linear attention_norm_gate_out;
  Linear mlp_norm_gate_in;
  Linear mlp_norm_gate_out;
  // Of streams that are connected: (connections, streams * hidden).
  Linear attention_connection;
  DeviceVector attention_connection_base;
  DeviceVector attention_connection_scale;
  Linear mlp_connection;
  DeviceVector mlp_connection_base;
  DeviceVector mlp_connection_scale;
  // Of layers that choose the tokens they see.
  Linear indexer_query;    // (heads * head_dim, what its queries read)
  Linear indexer_key;      // (head_dim, hidden)
  Linear indexer_weights;  // (heads, hidden)
  DeviceVector indexer_query_norm;
  DeviceVector indexer_input_norm;
  DeviceVector indexer_input_norm_bias;
  DeviceVector indexer_scales;  // (2, heads)
  DeviceVector indexer_key_norm;
  DeviceVector indexer_key_norm_bias;
  // Of layers that see entries: what a token adds to them, and its gates.
  Linear entry_rows;  // (2 * values of a token, hidden)
  DeviceVector entry_gate_bias;
  DeviceVector entry_norm;
  Linear indexer_entry_rows;  // likewise
  DeviceVector indexer_entry_gate_bias;
  DeviceVector indexer_entry_norm;
  HeadMatrices output_groups;         // each (output_rank, values of a group)
  DeviceVector attention_inner_norm;  // of what attention gives
  Linear o;
  DeviceVector attention_post_norm;
  // Of layers with a state.
  Linear state_in;    // what the convolution, the gate and the recurrence read
  DeviceVector conv;  // (kernel, channels)
  DeviceVector conv_bias;
  Linear state_parts;  // of Mamba 1: rows dt, b, c
  DeviceVector step_norm;
  DeviceVector input_norm;   // of b
  DeviceVector output_norm;  // of c
  Linear state_gate_up;      // of the gated delta rule: (channels, gate_rank)
  Linear step;               // (channels of Mamba 1 or dt of the gated delta rule, step_rank)
  DeviceVector head_step_bias;
  DeviceVector decay;       // negative; of Mamba 1 (state_size, channels)
  HeadMatrices input_gate;  // of RG-LRU: each (head_dim, head_dim)
  HeadMatrices decay_gate;  // likewise
  DeviceVector input_gate_bias;
  DeviceVector decay_gate_bias;
  DeviceVector skip;
  DeviceVector state_norm;
  Linear state_out;
  DeviceVector mlp_norm;
  DeviceVector mlp_norm_bias;
  // (2 * intermediate, hidden): rows gate, up; without a gate (intermediate, hidden).
  Linear gate_up;
  // Of a block that layers share: beside qkv and gate_up, and what feeds the state.
  Linear qkv_low_in;  // (3 * low_rank, …)
  Linear q_low_out;
  Linear k_low_out;
  Linear v_low_out;
  Linear gate_up_low_in;
  Linear gate_up_low_out;
  DeviceVector block_norm;
  Linear block_out;             // (hidden, hidden)
  DeviceVector mlp_inner_norm;  // of what `down` reads
  Linear down;
  DeviceVector mlp_post_norm;
  // Of layers with experts beside a dense MLP.
  DeviceVector dense_post_norm;
  DeviceVector experts_norm;
  DeviceVector experts_post_norm;
  DeviceVector router_norm;
  // Of rows for each layer.
  Linear layer_input_gate;  // (size, hidden)
  Linear layer_input_out;   // (hidden, size)
  DeviceVector layer_input_post_norm;
  // Of the embedding of distances, where they are not those of the stream.
  Linear distance_key;
  Linear distance_query;
  float stream_scale = 1.0F;  // of the stream after the layer
  // Of several streams.
  Linear stream_router;  // (streams, hidden)
  DeviceVector stream_router_norm;
  DeviceVector stream_prediction;  // (streams * streams, streams), in one row
  DeviceVector stream_correction;  // (streams, streams), in one row
  DeviceVector stream_column_scales;
  Linear laurel_in;   // (laurel_rank, hidden)
  Linear laurel_out;  // (hidden, laurel_rank)
  DeviceVector laurel_norm;
  XieluNumbers xielu;  // where that is the activation
  Linear router;       // (num_experts, hidden)
  Linear experts_in;   // from the stream to what experts read, where that is of another width
  Linear experts_out;  // back
  DeviceVector choice_bias;
  DeviceIndices experts_by_token;  // (vocabulary, top_k)
  DeviceVector expert_scale;
  ExpertLinears experts_gate_up;  // each as gate_up
  ExpertLinears experts_down;
  Linear shared_gate_up;
  Linear shared_down;
  Linear shared_output_gate;  // (1, hidden)
};

struct ModelWeights {
  std::unique_ptr<Matrix> token_embedding;
  std::unique_ptr<Matrix> position_embedding;  // may be null
  std::unique_ptr<Matrix> type_embedding;      // may be null
  DeviceVector distance_bias;                  // (heads, 2 * kMaxDistance + 1)
  DeviceVector distance_embedding;             // (kinds, hidden), normed
  DeviceVector embedding_norm;
  DeviceVector embedding_norm_bias;
  DeviceVector final_norm;
  DeviceVector final_norm_bias;
  std::unique_ptr<Matrix> head_connection;  // may be null: (streams, streams * hidden)
  DeviceVector head_connection_base;
  DeviceVector head_connection_scale;
  std::unique_ptr<Matrix> untied_lm_head;  // null: the token embedding serves
  DeviceVector lm_head_bias;
  int32_t head_site = -1;       // as Linear's
  int32_t embedding_site = -1;  // likewise
  // Where the embeddings are not as wide as the stream: (hidden, embedding) and back.
  Linear embedding_in;
  DeviceVector hidden_norm;  // of a layer for the next tokens
  Linear head_in;
  // (hidden, hidden), behind the last norm: before an activation and a norm of its own.
  Linear head_dense;
  DeviceVector head_norm;
  DeviceVector head_norm_bias;
  // Of rows for each layer: (vocabulary, layers * size), (layers * size, hidden).
  std::unique_ptr<Matrix> layer_input_table;  // may be null
  Linear layer_input_in;
  DeviceVector layer_input_norm;
  // Of each stream but the first, (hidden, hidden): from the embedding, to the last hidden state.
  std::vector<Linear> stream_in;
  std::vector<Linear> stream_out;
  std::vector<LayerWeights> layers;
  // (rotary_dim / 2) of the ropes: what their frequencies are multiplied by; empty: nothing.
  std::vector<float> rope_scales;

  DType dtype = DType::kBF16;  // of matrices that are not quantised
  int64_t num_params = 0;
  int64_t size_bytes = 0;  // on the device
  // Read from memory to decode one token: all but the embedding rows.
  int64_t streamed_bytes_per_token = 0;

  const Matrix& lm_head() const { return untied_lm_head ? *untied_lm_head : *token_embedding; }
};

struct LoadWeightsOptions {
  DType dtype = DType::kBF16;  // of the matrices on the device that are not quantised
  // How a plain checkpoint is quantised; one that is quantised keeps its own integers
  // (engine/weights/weight_format.h). This is for the layers' matrices: the head, on whose rows the
  // choice of a token hangs, is int8 at least; embeddings are only looked up and stay dense, except
  // where they are the head too.
  Quantization quantization = Quantization::kNone;
  // 0: the default of the kind, the last group being filled up. Groups begin anew in the columns of
  // each rank: where the cut is not on a border of groups, ranks round other numbers together than
  // one rank alone.
  int32_t group_size = 0;
  int rank = 0;
  int world_size = 1;
  bool takes_adapters = false;  // the linears have sites
};

inline constexpr int32_t kInt8GroupSize = 128;
inline constexpr int32_t kInt4GroupSize = 64;

// What a group size of 0 stands for; 0 without quantization.
int32_t effective_group_size(const LoadWeightsOptions& options);

// Throws what the plan would throw about the quantization, without a device: kInvalidArgument.
void check_quantization(const LoadedConfig& model, const LoadWeightsOptions& options);

// How the layers' matrices of a quantised checkpoint are held by a device that has kernels for
// integers, and for what else `keeps` says: "int4", "bf16", or several, "int4, bf16". Nothing for a
// plain checkpoint.
struct HeldWeights {
  std::string types{};
  int32_t group_size = 0;  // columns that share a scale; 0: decoded
};
HeldWeights held_weights(const LoadedConfig& model,
                         const LoadWeightsOptions& options,
                         const MatrixForms& keeps = {});

// What load_weights will put on the device, in bytes, from the config alone. Throws
// kInvalidArgument when the group size does not divide a matrix's columns, or the checkpoint is
// quantised already.
int64_t plan_weight_bytes(const LoadedConfig& model,
                          const Device& device,
                          const LoadWeightsOptions& options);

// Checks the whole table first: throws kInvalidArgument listing every missing, unused and misshapen
// tensor at once; later naming an index that is out of range.
ModelWeights load_weights(const LoadedConfig& model,
                          const Checkpoint& checkpoint,
                          Device& device,
                          const LoadWeightsOptions& options);

// The same in pieces, for who can't hold all layers at once (engine/quantize). Model, checkpoint
// and device outlive it. The constructor throws what load_weights throws for the table.
class WeightLoader {
 public:
  WeightLoader(const LoadedConfig& model,
               const Checkpoint& checkpoint,
               Device& device,
               const LoadWeightsOptions& options);
  ~WeightLoader();
  WeightLoader(const WeightLoader&) = delete;
  WeightLoader& operator=(const WeightLoader&) = delete;

  ModelWeights load();

  // All but the layers: there are num_layers of them, empty. The sizes are not filled in.
  ModelWeights load_outer();
  LayerWeights load_layer(int32_t layer);

 private:
  class Loader;
  const LoadWeightsOptions options_;
  const std::unique_ptr<Loader> loader_;
};

// The tensors the config asks for, filled with small random numbers that depend only on the seed
// and the tensor's name; made when asked for and dropped when released, so that memory does not
// double. With `device_makes_matrices` (DeviceInfo.makes_random_matrices) matrices are only named.
std::unique_ptr<Checkpoint> make_dummy_checkpoint(const LoadedConfig& model,
                                                  uint64_t seed,
                                                  bool device_makes_matrices = false);

}  // namespace tgi
