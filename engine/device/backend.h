// What a compute device must do: a specification header. engine/cpu implements it in the
// executable, cuda/ in a plugin. Pure interface, header-only (a plugin can't link an out-of-line
// virtual).
//
// A step has three phases: submit enqueues the forward pass, sample what is drawn from its logits
// (as soon as it is known which tokens may be), wait retires it. Ops enqueue: before wait nothing
// may be assumed done. An op's
// arguments are checked by the caller at load; the op assumes them. All reductions run in one fixed
// order per output element, so that a row's result does not depend on which other rows are in the
// batch, how a prompt was cut into chunks, or the threads. Every op has a plain double-precision
// twin (engine/cpu/reference_device) and any device must agree with it: tests/conformance is the
// other half of this specification.
//
// Threads: one thread (the rank's worker) uses a Device; a constructor may run elsewhere.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/device/choice_ops.h"
#include "engine/device/communicator.h"
#include "engine/device/compress_ops.h"
#include "engine/device/state_ops.h"
#include "engine/device/stream_ops.h"
#include "engine/tensor/batch.h"
#include "engine/tensor/kv_groups.h"
#include "engine/tensor/low_rank.h"
#include "engine/tensor/tensor.h"
#include "engine/tensor/weight.h"

namespace tgi {

// Kernels that the hardware announces but that failed when they were tried at start.
struct LeftOutKernels {
  std::string isa;     // "amx"
  std::string kernel;  // the first that failed, and with what: "matmul_many of bf16, 33 rows"
  std::string reason;  // what it did: "illegal instruction (SIGILL)"
};

// What else than numbers of its dtype a device holds matrices as: has kernels for. What it has none
// for reaches it as numbers (engine/model/storage_plan.h).
struct MatrixForms {
  bool stored_integers = false;  // of quantised checkpoints
  bool stored_f8 = false;        // their 8-bit floats, as Quantization::kF8E4M3
  bool integer_heads = false;    // of head_matmul, where weights are rounded while loading
  bool stored_tables = false;    // of checkpoints: 4 bits that stand for numbers, as kNf4 and kFp4
  bool stacks = false;           // takes stack_matrices
};

struct DeviceInfo {
  std::string backend;       // "cpu"
  std::string isa;           // "avx512bf16", "avx2", ...; of a GPU "sm_90"
  std::string description;   // of the hardware, for people: its maker's name for it
  int num_threads = 0;       // 0 where it means nothing
  int64_t memory_bytes = 0;  // that the plan of this rank may use in all
  DType activation_dtype = DType::kF32;
  bool makes_random_matrices = false;  // takes WeightPart.random
  MatrixForms keeps{};
  int num_steps_in_flight = 1;  // that may be submitted before the first is waited for
  // Of a step, when nobody says: enough to keep the device busy.
  int32_t max_running = 64;                                      // sequences
  int32_t max_batch_tokens = 512;                                // token rows
  int32_t max_logit_bias = std::numeric_limits<int32_t>::max();  // entries of a sequence
  // Reported alternatives, ties included.
  int32_t max_top_tokens = std::numeric_limits<int32_t>::max();
  std::vector<LeftOutKernels> left_out{};  // better ones than those of `isa`
  bool takes_adapters = false;             // has make_adapter, set_adapter and add_low_rank
  // Of models whose answer is their hidden states: has pool, token types, and attention that is
  // not causal or has a bias of distances.
  bool takes_encoders = false;
  bool chooses_tokens = false;     // has choose_tokens, and attention that sees a choice
  bool compresses_tokens = false;  // has compress, and attention that sees entries
  // Has report_rows, and pool of models that draw tokens: what drafters of hidden states need.
  bool reports_rows = false;
};

// What a rank's device is asked to be. A backend ignores what is another's.
struct DeviceOptions {
  int rank = 0;
  int world_size = 1;
  DType dtype = DType::kBF16;  // of dense weights: accelerators compute in it
  // Bits of a row don't depend on the batch. The cpu backend is so always.
  bool deterministic = false;
  double memory_fraction = 0.9;  // of the accelerator's free memory that a plan may use
  std::string cache_dir{};       // for what is measured once and kept; empty: nowhere
  std::string cpu_isa = "auto";
  int num_threads = 0;       // of this rank; 0: its share of the physical cores
  bool pin_threads = false;  // each to one processor
};

enum class NormKind : uint8_t { kRms, kLayer };
// kXielu has numbers of its own: XieluNumbers.
enum class Activation : uint8_t { kSilu, kGelu, kGeluTanh, kRelu, kReluSquared, kXielu };

// Where rotary angles come from. angle(p, i) = float(p) * inv_freq(p)[i]; cos and sin are
// multiplied by attention_factor. inv_freq depends on p only for dynamic scaling (YaRN, llama3 and
// linear are folded in at load).
struct RopeSpec {
  int32_t rotary_dim = 0;       // of the head, from its start; even
  bool interleaved = false;     // pairs (2i, 2i+1); else (i, i + rotary_dim/2)
  std::vector<float> inv_freq;  // (rotary_dim / 2)
  float attention_factor = 1.0F;
  // Dynamic NTK: at position p >= original_max_positions the base is
  // base * (factor*(p+1)/original_max_positions - (factor-1)) ^ (rotary_dim/(rotary_dim-2)). A pure
  // function of the position, so that cached keys never depend on what came after them. 0: off.
  int32_t dynamic_original_positions = 0;
  float dynamic_factor = 1.0F;
  float base = 10000.0F;
};

struct KvLayout {
  int32_t num_layers = 0;    // of a group: those that find theirs in one block
  int32_t num_kv_heads = 0;  // of this rank
  int32_t head_dim = 0;
  int32_t block_size = 16;  // tokens per block; the device may support only some (kKvBlockSizes)
  int32_t num_blocks = 0;
  DType dtype = DType::kBF16;
  int32_t latent_dim = 0;  // a key's first columns, which are its value too; 0: values are apart
  // (optional) Where layers differ: the layers of each group, those of one block (KvPlace.layer).
  // Then a block is as large as the largest group wants it, and num_layers, num_kv_heads and
  // head_dim are the most of any.
  std::vector<std::vector<KvHeads>> groups{};
};

// The fixed table of running sequences.
struct SlotLayout {
  int32_t num_slots = 0;
  int32_t max_blocks_per_slot = 0;
  int32_t max_batch_tokens = 0;  // token rows of one step
  int32_t vocab_size = 0;
  int32_t block_size = 16;      // of the KvLayout: bounds the context of a slot
  int32_t num_groups = 1;       // of layers: a slot has a block table for each
  int32_t max_matmul_cols = 0;  // the widest x that matmul or sample will be given
  int32_t num_heads = 0;        // of this rank: what attention will be given at most
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t num_experts = 0;        // of a layer; 0: none
  int32_t experts_per_token = 0;  // that route chooses at most
  bool has_alibi = false;         // attention will be given slopes
  StateLayout state{};            // of the layers that carry one
  int32_t latent_dim = 0;         // of the KvLayout
  int32_t max_adapters = 0;       // that rows of one step may have; 0: none
  int32_t max_drafts = 0;         // of a slot in a step
  bool norms_values = false;      // qk_norm_rope_store_kv will be given v_norm
  bool scales_experts = false;    // route will be given expert_scale
  int32_t num_streams = 1;        // of hidden states; above 1 the ops of streams are called
  bool cuts_gates = false;        // statistical_top_k is called
  int32_t reported_cols = 0;      // of a row of StepResult.reported
  int32_t pooled_cols = 0;        // of a row that pool is given; 0: it is not called
  // Where layers differ: the keys and values that attention will be given, each kind once;
  // num_kv_heads and head_dim are the most of any.
  std::vector<KvHeads> unlike_heads{};
  int32_t num_choices = 0;        // that choose_tokens makes for a token at most; 0: not called
  int32_t choice_block_size = 1;  // of its rule
};

// Of all that an adapter adds to one linear together.
inline constexpr int32_t kMaxStackedRank = 5 * kMaxAdapterRank;

struct EmbedArgs {
  // (vocab, hidden); null: the position's row is added to what `out` holds already. A token that it
  // has no row for takes the first.
  const Matrix* table = nullptr;
  const Matrix* position_table = nullptr;  // (optional) (positions, hidden), added
  const Matrix* type_table = nullptr;      // (optional) (types, hidden), added
  float multiplier = 1.0F;                 // of the token's embedding
  Tensor out;                              // (num_tokens, hidden)
};

struct NormArgs {
  NormKind kind = NormKind::kRms;
  float eps = 0.0F;
  const Tensor* weight = nullptr;  // (1, cols), f32
  const Tensor* bias = nullptr;    // (optional) (1, cols), f32
  Tensor x;                        // (rows, cols)
  // (optional: data null) (rows, cols): residual += x_multiplier * x first, and the sum is what is
  // normalised.
  Tensor residual;
  float x_multiplier = 1.0F;
  Tensor out;  // (rows, cols); may be x or residual
};

// x is rounded to the type that w is held in where that is bf16, and to int8 for integers (by the
// reference only for those that it rounded itself: of a checkpoint's own integers it is the exact
// value).
struct MatmulArgs {
  Tensor x;                      // (rows, w.cols)
  const Matrix* w = nullptr;     // (w.rows, w.cols)
  const Tensor* bias = nullptr;  // (optional) (1, w.rows), f32
  Tensor out;                    // (rows, w.rows); must not overlap x
};

// Changes each row as the adapter of its sequence (SlotStart.adapter) changes what the linear
// `site` gives (engine/tensor/low_rank.h). A row whose sequence has none, or whose adapter has
// nothing there, keeps its bits. x, and the short row between the two products after it was
// multiplied by `scale`, may be rounded to bf16 where the adapter is held in that.
struct LowRankArgs {
  int32_t site = 0;
  Tensor x;    // (num_tokens, cols), or a row for each that gather_output_rows gives
  Tensor out;  // (rows of x, outputs of the linear)
  bool of_output_rows = false;
};

// The same for the rows of experts, as expert_matmul gives them: what the adapter of a row's
// sequence changes of expert e is at site first_site + e.
struct ExpertLowRankArgs {
  int32_t first_site = 0;
  bool x_is_routed = false;  // as ExpertMatmulArgs
  Tensor x;
  Tensor out;  // (num_tokens * top_k, outputs of an expert): rows after route
};

// The same for head_matmul: what the adapter of a row's sequence changes of head h is at site
// first_site + h.
struct HeadLowRankArgs {
  int32_t first_site = 0;
  int32_t num_heads = 0;
  int64_t x_step = 0;  // as HeadMatmulArgs
  int64_t out_step = 0;
  int64_t x_cols = 0;  // of a head's matrix
  int64_t out_cols = 0;
  Tensor x;
  Tensor out;
};

// The same for the parts that are lookups: of each row's token.
struct LowRankLookupArgs {
  int32_t site = 0;
  Tensor out;  // (num_tokens, width of the embedding)
};

// A factor that grows with the position p: 1 + beta * ln(1 + floor((p + offset) / positions)), or
// with a power (1 + (p + offset) / positions)^power.
struct PositionScale {
  float beta = 0.0F;
  int32_t positions = 1;
  int32_t offset = 0;
  float power = 0.0F;  // 0, and beta too: off

  constexpr bool is_on() const { return beta != 0.0F || power != 0.0F; }
  bool operator==(const PositionScale&) const = default;
};

// In place on one fused row per token: [q heads | k heads | v heads], each head_dim wide, those of
// v value_cols(), none where the place has keys only. Clamps all of them, norms each q, k and v
// head when weights are given, one row of them for all heads or one for each head, rotates q and k,
// scales q, writes k and v of the step's tokens to the cache.
struct QkvArgs {
  KvPlace place{};  // of the layer's keys and values
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;  // 0: q alone, of a layer that reads another one's keys and values
  int32_t head_dim = 0;
  int32_t value_dim = 0;      // of the layer's KvHeads
  bool keys_only = false;     // likewise
  int32_t first_rotated = 0;  // column of a head; not 0 only where the place has keys only
  int32_t rope = -1;          // from add_rope; -1: none
  float clip = 0.0F;          // 0: off; else q, k and v are clamped to -clip..clip
  PositionScale query_scale{};
  // (optional) (2, num_heads), f32: slopes, then offsets. The q of a head is also multiplied by
  // slope * ln(1 + p) + offset.
  const Tensor* head_scales = nullptr;
  bool norm_after_rope = false;
  NormKind norm_kind = NormKind::kRms;
  const Tensor* q_norm = nullptr;  // (optional) (1, head_dim) or (1, num_heads * head_dim), f32
  const Tensor* k_norm = nullptr;  // (optional) as q_norm, of num_kv_heads
  // (optional) (1, value_cols()), f32. Given only where SlotLayout.norms_values.
  const Tensor* v_norm = nullptr;
  const Tensor* q_norm_bias = nullptr;  // (optional) as q_norm, added to what it gives
  const Tensor* k_norm_bias = nullptr;  // (optional) as k_norm
  float norm_eps = 0.0F;
  Tensor qkv;  // (num_tokens, (num_heads + num_kv_heads) * head_dim + num_kv_heads * value_cols())

  int32_t value_cols() const { return keys_only ? 0 : value_dim > 0 ? value_dim : head_dim; }
};

// Latent attention (DeepSeek V2, https://arxiv.org/abs/2405.04434): all heads share one key,
// [latent | rotated], whose latent is the value too. A query brings [kept | rotated] for each head;
// what it keeps is multiplied into the latent's space by head_matmul. Here queries are scaled in
// place, what is to be rotated of them goes to its place in `latent_q`, whose other columns stay;
// the key is rotated in place and written to the cache. REQUIRES: KvLayout.latent_dim, one KV head.
struct LatentArgs {
  KvPlace place{};  // of the layer's keys and values
  int32_t num_heads = 0;
  int32_t kept_dim = 0;
  int32_t latent_dim = 0;
  int32_t rope = -1;  // from add_rope: its rotary_dim are the rotated columns; -1: there are none
  PositionScale query_scale{};
  const Tensor* head_scales = nullptr;  // as QkvArgs
  Tensor q;                             // (num_tokens, num_heads * (kept_dim + rotary_dim))
  // (optional: data null, of a layer that reads another one's) (num_tokens, latent_dim +
  // rotary_dim)
  Tensor key;
  Tensor latent_q;  // (num_tokens, num_heads * (latent_dim + rotary_dim))
};

// Each head's columns of a row times that head's matrix. What is between those of `out` stays.
struct HeadMatmulArgs {
  std::span<const Matrix* const> heads;  // (num_heads), all of one shape and storage
  int64_t x_step = 0;                    // columns from one head's to the next one's
  int64_t out_step = 0;
  Tensor x;    // (rows, num_heads * x_step): a head's first w.cols are multiplied
  Tensor out;  // (rows, num_heads * out_step): a head's first w.rows; must not overlap x
};

// What a layer has learned of distances, multiplied with queries and with keys: for each head and
// kind of distance a number. Source: https://arxiv.org/abs/2006.03654, section 3.1.
struct DistanceProducts {
  // (num_tokens, num_heads * num_kinds) each; without rows: scores have none of it.
  Tensor of_queries{};
  Tensor of_keys{};
  int32_t num_kinds = 0;
  // (2 * reach + 1), on the host, of each distance from query to key from -reach on its kind; no
  // two tokens of a context are farther apart.
  std::span<const int32_t> kinds;
};

// Where the cache is bf16, queries and softmax weights are rounded to it before they meet keys and
// values. Attention of the step's queries over the cached context of their sequence
// (store_kv came before). Query head h reads KV head h / (num_heads / num_kv_heads). Tiles of KV
// have fixed boundaries from position 0 and are merged in order, whatever the chunk of queries.
// What lies before the tile of kKvTile tokens in which a window begins is not read: it may be
// another's.
struct AttentionArgs {
  KvPlace place{};  // of the layer's keys and values
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t value_dim = 0;  // of the layer's KvHeads
  float scale = 1.0F;
  float softcap = 0.0F;  // 0: off; else cap * tanh(score / cap)
  // 0: off; else a query sees itself and the window - 1 tokens before it.
  int32_t sliding_window = 0;
  // 0: off; else the context is cut into chunks of so many tokens, and a query sees those of its
  // own chunk.
  int32_t attention_chunk = 0;
  // (optional) (1, num_heads), f32: slope * the distance of key and query is taken off the score,
  // after softcap. Given only where SlotLayout.has_alibi.
  const Tensor* alibi_slopes = nullptr;
  // Else a query sees what is after it as well, to the end of its context, all of which is in the
  // step; with a window, those up to window - 1 tokens after it.
  bool is_causal = true;
  // (optional) (num_heads, 2 * reach + 1), f32: what is added to the score for the distance from
  // query to key, held between -reach and reach, after softcap.
  const Tensor* distance_bias = nullptr;
  // (optional) What is added to the product of query and key, before scale. Only where all of a
  // context is in the step, and each head has its own keys.
  const DistanceProducts* distance_products = nullptr;
  // (optional) (1, num_heads), f32: one more score of each head, after scale and softcap, that
  // takes its share of the softmax and has no value.
  const Tensor* sinks = nullptr;
  int32_t latent_dim = 0;  // of the KvLayout: the columns of a value
  // Where there are entries the window's keys and they are seen, of one KV head; the choice is one
  // of entries. REQUIRES: latent_dim, a sliding_window.
  SeenEntries entries{};
  SeenChoice seen{};  // of the last choose_tokens
  // Where head_dim is a multiple of 16, rows of both begin at multiples of 16 bytes.
  Tensor q;    // (num_tokens, num_heads * head_dim), stride may be that of the fused row
  Tensor out;  // (num_tokens, num_heads * value_cols())

  int32_t value_cols() const {
    return latent_dim > 0 ? latent_dim : value_dim > 0 ? value_dim : head_dim;
  }
};

// How gpt-oss bends the gated form of kSilu: with gate = min(gate, limit) and up held between
// -up_limit and up_limit, out = gate * sigmoid(slope * gate) * (up + up_offset).
struct GateLimits {
  float limit = 0.0F;  // 0: none of it
  float up_limit = 0.0F;
  float slope = 1.0F;
  float up_offset = 0.0F;

  bool operator==(const GateLimits&) const = default;
};

// What a layer has learned of kXielu: alpha_p * x^2 + beta * x above 0, and below
// alpha_n * (exp(min(x, eps)) - 1 - x) + beta * x.
// Source: https://arxiv.org/abs/2411.13010
struct XieluNumbers {
  float alpha_p = 0.0F;
  float alpha_n = 0.0F;
  float beta = 0.0F;
  float eps = 0.0F;
};

// gated: in is [gate | up], out = activation(gate) * up. Else out = activation(in); out may then be
// in.
struct ActivationArgs {
  Activation kind = Activation::kSilu;
  bool gated = true;
  GateLimits limits{};   // REQUIRES: none, or gated and kSilu
  XieluNumbers xielu{};  // of kXielu. REQUIRES: which is not gated
  Tensor in;             // (rows, 2 * cols) or (rows, cols)
  Tensor out;            // (rows, cols)
};

struct AddArgs {
  Tensor x;  // (optional: data null, zeros) (rows, cols)
  Tensor y;  // (rows, cols)
  float y_multiplier = 1.0F;
  const Tensor* y_gate = nullptr;  // (optional) (rows, 1): y is also multiplied by its sigmoid
  Tensor out;                      // (rows, cols) = x + y_multiplier * y; may be x or y
};

// What an expert is chosen by. kSparseMixer: by the logit alone; its score is its share of the
// softmax over those experts that were not chosen before it and whose logits are near its own: by
// no more than 2 * mixer_width times the larger of its logit and the size of theirs.
// kSigmoidOfChosen: by the logit alone; its score is its sigmoid. kSqrtSoftplus: the root of
// log(1 + exp(logit)).
enum class RouterScore : uint8_t {
  kSoftmax,
  kSigmoid,
  kSparseMixer,
  kSigmoidOfChosen,
  kSqrtSoftplus
};

// Experts for each row: those of the highest score + choice_bias, of two equal ones the first; or
// those that a table has for its token (RouteArgs). With groups, which are equal runs of experts,
// only those of the `top_groups` best can be chosen; a group is as good as the sum of its
// `group_best` best experts. An expert's weight is its score (without the bias), divided by the sum
// of those chosen if `normalises`, times `scale`.
//
// Sources: Mixtral (https://arxiv.org/abs/2401.04088), DeepSeek V2 and V3
// (https://arxiv.org/abs/2405.04434, https://arxiv.org/abs/2412.19437), SparseMixer
// (https://arxiv.org/abs/2310.00811); the root of softplus is DeepSeek V4's.
struct RouteRule {
  RouterScore score = RouterScore::kSoftmax;
  int32_t top_k = 1;
  int32_t num_groups = 1;
  int32_t top_groups = 1;
  int32_t group_best = 1;
  bool normalises = false;
  float scale = 1.0F;
  float mixer_width = 0.0F;  // of kSparseMixer
  // The last so many of the experts give what they read: they have no matrices, and their rows are
  // left out of what is between route and combine_experts (LongCat Flash,
  // https://arxiv.org/abs/2509.01322, section 2.1).
  int32_t num_identity = 0;

  // Whether the score is that of an expert among those that were chosen, by their logits.
  constexpr bool scores_chosen() const {
    return score == RouterScore::kSparseMixer || score == RouterScore::kSigmoidOfChosen;
  }
  bool operator==(const RouteRule&) const = default;
};

struct RouteArgs {
  RouteRule rule;
  Tensor logits;                        // (num_tokens, num_experts)
  const Tensor* choice_bias = nullptr;  // (optional) (1, num_experts), f32
  // (optional) (1, num_experts), f32: an expert's weight is multiplied by it, last. Given only
  // where SlotLayout.scales_experts.
  const Tensor* expert_scale = nullptr;
  // (optional) (num_ids, top_k), in memory of the device, each from 0 to num_experts - 1: the
  // experts of a row are those of its token, in this order; one that is named twice counts twice. A
  // token that it has no row for takes the first. Nothing is chosen then: choice_bias and groups
  // are not looked at. REQUIRES: logits have a row for each token of the step, and not
  // rule.scores_chosen().
  const int32_t* experts_by_token = nullptr;
  int32_t num_ids = 0;
};

struct ExpertWeight {
  const Matrix* w = nullptr;     // all of one shape and storage
  const Tensor* bias = nullptr;  // (optional) (1, w.rows), f32
};

// Rows after route: one for each token and each of its experts, by expert, those of an expert in
// the order of their tokens.
struct ExpertMatmulArgs {
  std::span<const ExpertWeight> experts;  // (num_experts - num_identity)
  bool x_is_routed = false;
  Tensor x;    // (num_tokens, cols); routed: (num_tokens * top_k, cols), such rows
  Tensor out;  // (num_tokens * top_k, w.rows): such rows; must not overlap x
};

// Each row times the weight of its expert, in place.
struct WeighArgs {
  Tensor x;  // (num_tokens * top_k, cols): rows after route
};

struct CombineArgs {
  bool is_weighted = false;  // already, by weigh_experts
  Tensor x;                  // (num_tokens * top_k, cols): rows after route
  // (optional) (num_tokens, cols): the row of an expert that gives what it read. Null: it gives
  // nothing.
  const Tensor* given = nullptr;
  // (num_tokens, cols) = sum of weight * row over a token's experts, the first first, or in the
  // order of RouteArgs.experts_by_token
  Tensor out;
};

struct SampleArgs {
  Tensor hidden;  // (num_logit_rows, hidden): after the final norm, from gather_output_rows
  const Matrix* lm_head = nullptr;  // (vocab, hidden)
  const Tensor* bias = nullptr;     // (optional) (1, vocab), f32
  float logit_scale = 1.0F;
  float logit_softcap = 0.0F;  // 0: off
  int32_t site = -1;           // as LowRankArgs, of the logits before scale and cap; -1: nothing
  // (optional) (vocab), in memory of the device: of each row of the head the token by whose random
  // bits it is drawn, each once.
  const int32_t* draw_ids = nullptr;
};

struct PoolArgs {
  Tensor hidden;  // (kept_rows, hidden): the last of gather_output_rows
};

// Some columns of StepResult.reported.
struct ReportArgs {
  Tensor x;               // (num_tokens, cols)
  int64_t first_col = 0;  // of those that it becomes
};

// The forward pass of a model, given to submit; must outlive the step's sample. Calls the device's
// ops in order; may not look at anything that differs between two steps of the same shape, except
// through the ops (a device may capture it once and replay it).
class Forward {
 public:
  virtual ~Forward() = default;
  // Whether it calls the same ops with the same arguments whenever num_tokens and num_output_rows
  // are the same, for as long as it lives and outlives the device's steps: then a device may
  // capture it.
  virtual bool is_replayable() const { return false; }
  // All but the head: what sample() needs of it stays until the next step is submitted.
  virtual void run(int32_t num_tokens, int32_t num_output_rows) = 0;
  // Hands the rows that are wanted to Device's op `sample` or `pool`. (optional: there are none)
  virtual void sample(int32_t /*num_output_rows*/) {}
};

using Ticket = uint64_t;

// An adapter in the layout that its device's kernels want. Immutable.
class Adapter {
 public:
  virtual ~Adapter() = default;
  int64_t size_bytes = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  // --- memory and weights: at load only
  // Throws kOutOfMemory with the size and the purpose. Zeroed.
  virtual Buffer allocate(size_t size_bytes, std::string_view purpose) = 0;
  virtual void copy_to_device(void* to, const void* from, size_t size_bytes) = 0;
  virtual void copy_to_host(void* to, const void* from, size_t size_bytes) = 0;

  // How a matrix of this format and type will be held; `keep_f32`: compute without rounding weights
  // (fidelity). Throws kUnsupported naming the format when there is no kernel for it.
  virtual int64_t matrix_bytes(std::string_view format,
                               const MatrixStorage& storage,
                               int64_t rows,
                               int64_t cols) const = 0;
  // Stacks the pieces by rows into one matrix (fused qkv, fused gate and up), converted to
  // `storage`; pieces of stored integers keep them where the device has kernels for them.
  virtual std::unique_ptr<Matrix> make_matrix(std::span<const HostWeight> pieces,
                                              const MatrixStorage& storage) = 0;
  // (optional: MatrixForms.stacks) The rows of matrices of as many columns, one below the other,
  // each held as it is: for MatmulArgs alone.
  virtual std::unique_ptr<Matrix> stack_matrices(std::vector<std::unique_ptr<Matrix>> /*parts*/) {
    throw Error(Code::kUnsupported, "this backend has no kernels for stacks of matrices");
  }

  // --- adapters (optional: DeviceInfo.takes_adapters)
  // What make_adapter will take.
  virtual int64_t adapter_bytes(std::span<const LowRankPart> /*parts*/, DType /*dtype*/) const {
    throw Error(Code::kUnsupported, "this backend has no kernels for adapters");
  }
  // Holds them in that type, gains and offsets in f32. From any thread, beside steps. Throws
  // kUnsupported, kOutOfMemory.
  virtual std::unique_ptr<Adapter> make_adapter(std::span<const LowRankPart> /*parts*/,
                                                DType /*dtype*/) {
    throw Error(Code::kUnsupported, "this backend has no kernels for adapters");
  }
  // What SlotStart.adapter `index`, from 1 to max_adapters, stands for in steps that are submitted
  // from now on; null: nothing. The one before is no longer used when the steps in flight have
  // retired.
  virtual void set_adapter(int32_t /*index*/, const Adapter* /*adapter*/) {}

  // --- state: once per model, after the plan is made
  virtual int32_t add_rope(const RopeSpec& rope) = 0;
  virtual int64_t kv_bytes(const KvLayout& layout) const = 0;
  virtual int64_t slot_bytes(
      const SlotLayout& layout) const = 0;  // slot table, staging and sampling workspace
  virtual void allocate_state(const KvLayout& kv, const SlotLayout& slots) = 0;

  // --- steps
  // Applies the batch's slot changes, runs `forward`. The batch may be reused when submit returns.
  // REQUIRES: the step before was sampled.
  virtual Ticket submit(const Batch& batch, Forward& forward) = 0;
  // Draws and scores the rows of the step that was submitted last, once, also where it has none.
  // `masks` may be reused when it returns.
  virtual void sample(Ticket ticket, const TokenMasks& masks) = 0;
  // Blocks until the step, which was sampled, is retired. Valid until the next call of wait.
  virtual const StepResult& wait(Ticket ticket) = 0;

  // Gets one more size of step ready that would otherwise be made ready when first met, the largest
  // first: a few milliseconds of host work, between steps. False when there is none left. Throws
  // kDeviceLost. (optional: there is never any)
  virtual bool prepare_step(Forward& /*forward*/) { return false; }
  // The sizes that are ready, in decode rows, ascending.
  virtual std::vector<int32_t> prepared_rows() const { return {}; }

  // --- ops: only from within Forward::run; sample() and pool() only from within Forward::sample
  virtual void embed(const EmbedArgs& args) = 0;
  virtual void norm(const NormArgs& args) = 0;
  virtual void matmul(const MatmulArgs& args) = 0;
  virtual void add_low_rank(const LowRankArgs& /*args*/) {}
  virtual void add_low_rank_of_tokens(const LowRankLookupArgs& /*args*/) {}
  virtual void add_low_rank_to_experts(const ExpertLowRankArgs& /*args*/) {}
  virtual void add_low_rank_to_heads(const HeadLowRankArgs& /*args*/) {}
  virtual void qk_norm_rope_store_kv(const QkvArgs& args) = 0;
  virtual void attention(const AttentionArgs& args) = 0;
  // (optional: DeviceInfo.chooses_tokens)
  virtual void choose_tokens(const ChooseArgs& /*args*/) {
    throw Error(Code::kUnsupported, "this backend has no kernels that choose tokens");
  }
  // (optional: DeviceInfo.compresses_tokens)
  virtual void compress(const CompressArgs& /*args*/) {
    throw Error(Code::kUnsupported, "this backend has no kernels that make entries of tokens");
  }
  virtual void rotate_and_store_latent(const LatentArgs& args) = 0;
  virtual void head_matmul(const HeadMatmulArgs& args) = 0;
  virtual void activation(const ActivationArgs& args) = 0;
  // out row i = x row of the i-th of [sample_rows, score_rows, kept_rows] of the step;
  // out: (num_output_rows, cols)
  virtual void gather_output_rows(const Tensor& x, const Tensor& out) = 0;
  virtual void add(const AddArgs& args) = 0;
  // The choice holds until the next one.
  virtual void route(const RouteArgs& args) = 0;
  virtual void expert_matmul(const ExpertMatmulArgs& args) = 0;
  virtual void weigh_experts(const WeighArgs& args) = 0;
  virtual void combine_experts(const CombineArgs& args) = 0;
  // Of layers with a state: state_ops.h.
  virtual void causal_conv(const ConvArgs& args) = 0;
  virtual void channel_scan(const ChannelScanArgs& args) = 0;
  virtual void head_scan(const HeadScanArgs& args) = 0;
  virtual void delta_rule(const DeltaRuleArgs& args) = 0;
  virtual void rg_lru(const RgLruArgs& args) = 0;
  virtual void gated_norm(const GatedNormArgs& args) = 0;
  // Of hidden states in several streams, and of rows beside their statistics: stream_ops.h.
  virtual void predict_streams(const PredictStreamsArgs& args) = 0;
  virtual void correct_streams(const CorrectStreamsArgs& args) = 0;
  virtual void collapse_streams(const CollapseStreamsArgs& args) = 0;
  virtual void expand_streams(const ExpandStreamsArgs& args) = 0;
  virtual void match_rms(const MatchRmsArgs& args) = 0;
  virtual void statistical_top_k(const StatisticalTopKArgs& args) = 0;
  virtual void sample(const SampleArgs& args) = 0;
  virtual void pool(const PoolArgs& /*args*/) {}
  // Nothing in a step that does not report its rows. (optional: DeviceInfo.reports_rows)
  virtual void report_rows(const ReportArgs& /*args*/) {}
};

// A whole step whose rows are not masked.
inline const StepResult& run_step(Device& device, const Batch& batch, Forward& forward) {
  const Ticket ticket = device.submit(batch, forward);
  device.sample(ticket, {});
  return device.wait(ticket);
}

// Makes the devices of one kind. One object for the process, from any thread.
class Backend {
 public:
  virtual std::string_view name() const = 0;

  // How many ranks this machine has devices for; INT_MAX where ranks share one. Throws kUnsupported
  // saying what is missing (driver, device, a driver that is new enough) when there is none.
  virtual int num_devices() = 0;

  // What a model whose weights are stored as `stored` is computed in when nobody says.
  virtual DType automatic_dtype(DType stored) const { return stored; }

  // Throws kUnsupported where its devices have no kernels for such weights or such a KV cache,
  // before anything is taken.
  virtual void check_storage(const MatrixStorage& weights, DType kv_cache) const = 0;

  // May be called for several ranks at once. Throws kUnsupported for a dtype or an instruction set
  // that the device lacks, kInvalidArgument, kOutOfMemory.
  virtual std::unique_ptr<Device> make_device(const DeviceOptions& options) = 0;

  // The communicators of all ranks at once, in their order; the devices are of this backend and
  // outlive them. Each belongs to the thread of its rank. Throws kDeviceLost naming the rank that
  // could not join.
  virtual std::vector<std::unique_ptr<Communicator>> make_communicators(
      std::span<Device* const> ranks) = 0;

 protected:
  ~Backend() = default;  // lives as long as the process
};

// A plugin exports two C functions. The first is asked before anything else is touched: a plugin of
// another number is refused. Raised with every change of what crosses the border (this header, and
// those that it includes).
inline constexpr int kBackendAbi = 32;
inline constexpr const char* kBackendAbiSymbol = "tgi_backend_abi";  // int (*)()
inline constexpr const char* kBackendSymbol = "tgi_backend";         // tgi::Backend* (*)()

}  // namespace tgi
