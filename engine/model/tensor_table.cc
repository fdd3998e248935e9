#include "engine/model/tensor_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "base/error.h"

namespace tgi {
namespace {

constexpr std::string_view kLayerMark = "{layer}";
// Where a layer of the file is two: its number there, and which of them.
constexpr std::string_view kPairMark = "{pair}";
constexpr std::string_view kHalfMark = "{half}";
constexpr std::string_view kBlockMark = "{block}";
constexpr std::string_view kUseMark = "{use}";
constexpr std::string_view kExpertMark = "{expert}";
constexpr std::string_view kLayerBeforeMark = "{layer-1}";
constexpr std::string_view kLastLayerMark = "{last}";
constexpr std::string_view kHeadMark = "{head}";
constexpr std::string_view kStreamMark = "{stream}";
constexpr std::string_view kQkvMark = "{qkv}";
constexpr std::string_view kQkv = "qkv";

bool has_mark(std::string_view name, std::string_view mark) {
  return name.find(mark) != std::string_view::npos;
}

void fill_in(std::string& name, std::string_view mark, int32_t number) {
  const size_t at = name.find(mark);
  if (at != std::string::npos) name.replace(at, mark.size(), std::to_string(number));
}

bool is_per_expert(const TensorSpec& spec) {
  return spec.stacked || has_mark(spec.name, kExpertMark);
}

// How many tensors of a layer, or of the model, a row of the table stands for.
int32_t num_tensors(const TensorSpec& spec, const ModelConfig& config) {
  if (spec.stacked && is_of_state(spec.role)) return config.state.num_heads;
  if (is_per_expert(spec)) return config.experts.num_experts;
  return has_mark(spec.name, kStreamMark) ? num_further_streams(config) : 1;
}

bool is_alone(const TensorSpec& spec) {
  return !is_per_expert(spec) && !has_mark(spec.name, kStreamMark);
}

bool is_present(const TensorSpec& spec, const ModelConfig& config, int32_t layer) {
  if (layer >= 0) {
    const LayerPlan& plan = config.layers[static_cast<size_t>(layer)];
    if (is_of_attention(spec.role) && !plan.has_attention) return false;
    if (is_of_state(spec.role) && !plan.has_state) return false;
  }
  return spec.only_if == nullptr || spec.only_if(config, layer);
}

int32_t num_blocks_before(int32_t layer, const ModelConfig& config) {
  return static_cast<int32_t>(
      std::count_if(config.layers.begin(), config.layers.begin() + std::max(layer, 0),
                    [](const LayerPlan& plan) { return plan.has_block(); }));
}

std::string tensor_name(std::string_view pattern,
                        int32_t layer,
                        int32_t expert,
                        const ModelConfig& config) {
  std::string name(pattern);
  const auto stored = [&](int32_t one) {
    if (config.num_stored_layers == 0) return one;
    return static_cast<int32_t>(int64_t{one} * config.num_stored_layers / config.num_layers);
  };
  fill_in(name, kLayerMark, stored(layer));
  fill_in(name, kLayerBeforeMark, stored(layer - 1));
  fill_in(name, kPairMark, layer / 2);
  fill_in(name, kHalfMark, layer % 2);
  if (has_mark(pattern, kBlockMark)) {
    fill_in(name, kBlockMark, config.layers[static_cast<size_t>(layer)].block_layer);
    fill_in(name, kUseMark, num_blocks_before(layer, config));
  }
  fill_in(name, kLastLayerMark, stored(config.num_layers - 1));
  fill_in(name, kExpertMark, expert);
  fill_in(name, kStreamMark, expert);
  return name;
}

int64_t tokens_per_entry(const ModelConfig& config, int32_t layer) {
  return config.layers[static_cast<size_t>(layer)].tokens_per_entry;
}

// Of a token, where an entry has `size` numbers.
int64_t entry_values(const ModelConfig& config, int32_t layer, int64_t size) {
  return config.layers[static_cast<size_t>(layer)].entries_overlap ? 2 * size : size;
}

int64_t dim_size(Dim dim, const ModelConfig& config, int32_t layer) {
  const StateConfig& state = config.state;
  const KvHeads kv = kv_heads_of(config, layer);
  const int64_t head_dim = kv.head_dim;
  const int64_t num_heads = num_heads_of(config, layer);
  switch (dim) {
    case Dim::kOne:
    case Dim::kOneRow:
      return 1;
    case Dim::kVocab:
      return config.vocab_size;
    case Dim::kImagesVocab:
      return int64_t{config.vocab_size} + config.unread_rows;
    case Dim::kHeadVocab:
      return head_vocab_rows(config);
    case Dim::kDistanceBiases:
      return int64_t{config.distance_buckets} * config.num_heads;
    case Dim::kTaskTypes:
      return config.num_task_types;
    case Dim::kDistanceKinds:
      return config.distances.num_kinds;
    case Dim::kTokenTypes:
      return config.num_token_types;
    case Dim::kLayerInputVocab:
      return config.layer_inputs.vocab_size;
    case Dim::kLayerInput:
      return config.layer_inputs.size;
    case Dim::kLayerInputs:
      return int64_t{config.num_layers} * config.layer_inputs.size;
    case Dim::kStreams:
      return config.streams.count;
    case Dim::kStreamPredictions:
      return int64_t{config.streams.count} * config.streams.count * config.streams.count;
    case Dim::kStreamCorrections:
      return int64_t{config.streams.count} * config.streams.count;
    case Dim::kLaurelRank:
      return config.laurel_rank;
    case Dim::kPositions:
      return int64_t{config.position_offset} + config.max_positions;
    case Dim::kHidden:
      return config.hidden_size;
    case Dim::kEmbedding:
      return embedding_cols(config);
    case Dim::kAttentionInput:
      return attention_input_cols(config);
    case Dim::kIntermediate:
      return intermediate_size_of(config, layer);
    case Dim::kGateUp:
    case Dim::kUpGate:
      return int64_t{2} * intermediate_size_of(config, layer);
    case Dim::kQ:
      return num_heads * head_dim;
    case Dim::kKv:
    case Dim::kPairedValues:
      return kv.key_numbers();
    case Dim::kValues:
      return kv.value_numbers();
    case Dim::kQkv:
    case Dim::kQkvByKvHead:
    case Dim::kQByHead:
    case Dim::kKByHead:
    case Dim::kVByHead:
    case Dim::kQvkByQuarter:
      return num_heads * head_dim + kv.key_numbers() + kv.value_numbers();
    case Dim::kHeadDim:
      return head_dim;
    case Dim::kHeads:
      return num_heads;
    case Dim::kRotaryPairs:
      return config.ropes.empty() ? 0 : config.ropes.front().rotary_dim / 2;
    case Dim::kQueryRank:
      return config.latent.query_rank;
    case Dim::kLatent:
      return config.latent.rank;
    case Dim::kLatentKey:
      return latent_key_dim(config, layer);
    case Dim::kLatentUp:
      return int64_t{config.num_heads} * latent_head_rows(config, layer);
    case Dim::kHeadValues:
      return num_heads * (has_latents(config) ? config.latent.value_dim : kv.value_cols());
    case Dim::kQueryPair:
      return int64_t{2} * config.latent.query_rank;
    case Dim::kLatentQGates:
    case Dim::kLatentGatesOfQ:
      return num_heads * (head_dim + config.latent.value_dim);
    case Dim::kBlockLowRank:
      return config.shared_blocks.low_rank;
    case Dim::kNormGateRank:
      return config.norm_gate_rank;
    case Dim::kAllStreams:
      return stream_cols(config);
    case Dim::kConnection:
      return config.streams.num_connections();
    case Dim::kConnectionScales:
      return config.streams.num_kinds();
    case Dim::kHeadConnection:
      return config.streams.count;
    case Dim::kIndexerQueries:
      return config.indexer.query_cols();
    case Dim::kIndexerHeadDim:
      return config.indexer.head_dim;
    case Dim::kIndexerHeads:
      return config.indexer.num_heads;
    case Dim::kEntryValues:
      return entry_values(config, layer, config.latent.rank);
    case Dim::kEntryBias:
      return tokens_per_entry(config, layer) * entry_values(config, layer, config.latent.rank);
    case Dim::kIndexerEntryValues:
      return entry_values(config, layer, config.indexer.head_dim);
    case Dim::kIndexerEntryBias:
      return tokens_per_entry(config, layer) * entry_values(config, layer, config.indexer.head_dim);
    case Dim::kHeadsOfGroup:
      return num_heads * head_dim / std::max(config.entries.output_groups, 1);
    case Dim::kOutputGroups:
      return int64_t{config.entries.output_groups} * config.entries.output_rank;
    case Dim::kExperts:
      return config.experts.num_experts;
    case Dim::kExpertsAndUnread:
      return int64_t{config.experts.num_experts} + config.experts.num_unread;
    case Dim::kExpertsOfToken:
      return config.experts.route.top_k;
    case Dim::kChoices:
      return config.experts.num_choices();
    case Dim::kExpertHidden:
      return expert_cols(config);
    case Dim::kExpertIntermediate:
      return config.experts.intermediate_size;
    case Dim::kExpertGateUp:
      return int64_t{2} * config.experts.intermediate_size;
    case Dim::kSharedIntermediate:
      return config.experts.shared_intermediate_size;
    case Dim::kSharedGateUp:
      return int64_t{2} * config.experts.shared_intermediate_size;
    case Dim::kGatedQ:
    case Dim::kOutputGate:
      return 2 * num_heads * head_dim;
    case Dim::kStateIn:
      return state.num_inputs();
    case Dim::kDeltaIn:
      return state.num_channels() + int64_t{2} * state.num_keys() + state.num_gate_inputs();
    case Dim::kDeltaSecondIn:
      return int64_t{2} * state.num_heads;
    case Dim::kLightningIn:
      return state.num_channels() + int64_t{2} * state.num_keys();
    case Dim::kStateChannels:
      return state.num_channels();
    case Dim::kConvChannels:
      return state.num_conv_channels();
    case Dim::kConvWeights:
      return state.num_conv_channels() * state.conv_kernel;
    case Dim::kStateParts:
      return state.step_rank + int64_t{2} * state.state_size;
    case Dim::kStepRank:
      return state.step_rank;
    case Dim::kStateSize:
      return state.state_size;
    case Dim::kChannelDecay:
      return state.num_channels() * state.state_size;
    case Dim::kStateHeads:
      return state.num_heads;
    case Dim::kStateHeadDim:
      return state.head_dim;
    case Dim::kStateKeys:
      return state.num_keys();
    case Dim::kStateSteps:
      return state.num_steps();
    case Dim::kStateGateRank:
      return state.gate_rank;
  }
  throw Error(Code::kInternal, "unknown dimension");
}

Range rank_range(int64_t size, int rank, int world_size) {
  const int64_t count = size / world_size;
  return {.begin = rank * count, .count = count};
}

std::vector<Range> qkv_ranges(const ModelConfig& config, int32_t layer, int rank, int world_size) {
  const int64_t q_size = dim_size(Dim::kQ, config, layer);
  const int64_t k_size = dim_size(Dim::kKv, config, layer);
  const Range q = rank_range(q_size, rank, world_size);
  Range k = rank_range(k_size, rank, world_size);
  Range v = rank_range(dim_size(Dim::kValues, config, layer), rank, world_size);
  k.begin += q_size;
  v.begin += q_size + k_size;
  return {q, k, v};
}

// The same rows in the same order, of a matrix that keeps what belongs to a KV head together.
std::vector<Range> ranges_by_kv_head(const ModelConfig& config,
                                     int32_t layer,
                                     int rank,
                                     int world_size) {
  const KvHeads kv = kv_heads_of(config, layer);
  const int64_t dim = kv.head_dim;
  const int64_t q_size = int64_t{num_heads_of(config, layer)} / kv.num_kv_heads * dim;
  const Range heads = rank_range(kv.num_kv_heads, rank, world_size);
  std::vector<Range> out;
  const auto add = [&](int64_t offset, int64_t count) {
    for (int64_t head = heads.begin; head < heads.begin + heads.count; ++head) {
      out.push_back({.begin = head * (q_size + 2 * dim) + offset, .count = count});
    }
  };
  add(0, q_size);
  add(q_size, dim);
  add(q_size + dim, dim);
  return out;
}

// The same rows in the same order, of a matrix that was trained on four devices, each with its
// quarter of q, v and k.
std::vector<Range> ranges_by_quarter(const ModelConfig& config, int rank, int world_size) {
  const int64_t quarter = int64_t{config.num_heads} * config.head_dim / 4;
  const Range heads = rank_range(config.num_heads, rank, world_size);
  const int64_t end = (heads.begin + heads.count) * config.head_dim;
  std::vector<Range> out;
  for (const int64_t place : {0, 2, 1}) {
    for (int64_t row = heads.begin * config.head_dim; row < end;) {
      const int64_t next = std::min(end, (row / quarter + 1) * quarter);
      out.push_back(
          {.begin = (row / quarter * 3 + place) * quarter + row % quarter, .count = next - row});
      row = next;
    }
  }
  return out;
}

// Of `count` runs of `run` rows, the part [offset, offset + size) of each.
void add_parts(int64_t count, int64_t run, int64_t offset, int64_t size, std::vector<Range>& out) {
  for (int64_t i = 0; i < count; ++i) out.push_back({.begin = i * run + offset, .count = size});
}

// Rows that are stored by key head, as all of q, all of k, all of v, all of z; and all of b, all of
// a.
std::vector<Range> delta_ranges(const StateConfig& state, bool is_second) {
  std::vector<Range> out;
  const int64_t groups = state.num_groups;
  const int64_t heads = state.num_heads / groups;
  if (is_second) {
    add_parts(groups, 2 * heads, 0, heads, out);
    add_parts(groups, 2 * heads, heads, heads, out);
    return out;
  }
  const int64_t keys = state.state_size;
  const int64_t values = heads * state.head_dim;
  const int64_t run = 2 * keys + 2 * values;
  add_parts(groups, run, 0, keys, out);
  add_parts(groups, run, keys, keys, out);
  add_parts(groups, run, 2 * keys, values, out);
  add_parts(groups, run, 2 * keys + values, values, out);
  return out;
}

// Rows that are stored by head, as all of q, all of k, all of v.
std::vector<Range> lightning_ranges(const StateConfig& state) {
  std::vector<Range> out;
  const int64_t run = int64_t{3} * state.head_dim;
  for (int64_t part = 0; part < 3; ++part)
    add_parts(state.num_heads, run, part * state.head_dim, state.head_dim, out);
  return out;
}

// The q of each head of this rank, or the gates of its value, which stand behind it.
std::vector<Range> latent_gate_ranges(const ModelConfig& config,
                                      bool is_gate,
                                      int rank,
                                      int world_size) {
  const int64_t q_size = config.head_dim;
  const int64_t value_size = config.latent.value_dim;
  const Range heads = rank_range(config.num_heads, rank, world_size);
  std::vector<Range> out;
  for (int64_t head = heads.begin; head < heads.begin + heads.count; ++head) {
    const int64_t begin = head * (q_size + value_size);
    out.push_back(is_gate ? Range{.begin = begin + q_size, .count = value_size}
                          : Range{.begin = begin, .count = q_size});
  }
  return out;
}

// For each KV head the values of a pair, of which both halves of the heads have all.
std::vector<Range> paired_ranges(const KvHeads& kv) {
  const int64_t dim = kv.head_dim;
  const int64_t half = kv.num_kv_heads / 2;
  std::vector<Range> out;
  for (int64_t head = 0; head < kv.num_kv_heads; ++head) {
    const int64_t pair = head % half;
    out.push_back({.begin = pair * dim, .count = dim});
    out.push_back({.begin = (half + pair) * dim, .count = dim});
  }
  return out;
}

// The q of each head of this rank, or the gate that stands behind it.
// Of `count` parts of each head that follow each other, one.
std::vector<Range> ranges_of_head_part(
    const ModelConfig& config, int32_t layer, int part, int count, int rank, int world_size) {
  const int64_t head_dim = kv_heads_of(config, layer).head_dim;
  const Range heads = rank_range(num_heads_of(config, layer), rank, world_size);
  std::vector<Range> out;
  for (int64_t head = heads.begin; head < heads.begin + heads.count; ++head) {
    out.push_back({.begin = (count * head + part) * head_dim, .count = head_dim});
  }
  return out;
}

}  // namespace

std::vector<std::string> TensorEntry::stored_names() const {
  std::vector<std::string> names(static_cast<size_t>(num_parts), name);
  for (int32_t part = 0; part < num_parts; ++part) {
    std::string& each = names[static_cast<size_t>(part)];
    fill_in(each, kHeadMark, part);
    const size_t at = each.find(kQkvMark);
    if (at != std::string::npos) {
      each.replace(at, kQkvMark.size(), kQkv.substr(static_cast<size_t>(part), 1));
    }
  }
  return names;
}

bool is_per_layer(const TensorSpec& spec) {
  return has_mark(spec.name, kLayerMark) || has_mark(spec.name, kLayerBeforeMark) ||
         has_mark(spec.name, kPairMark) || has_mark(spec.name, kBlockMark);
}

bool is_of_shared_layer(const TensorSpec& spec, const ModelConfig& config) {
  return has_mark(spec.name, kBlockMark) ||
         (config.num_stored_layers > 0 && has_mark(spec.name, kLayerMark));
}

TensorTable::TensorTable(const LoadedConfig& model) {
  const ModelConfig& config = model.config;
  Row none;
  none.fill(kAbsent);
  index_.assign(static_cast<size_t>(config.num_layers) + 1, none);
  for (const TensorSpec& spec : model.tensors()) {
    if (!is_per_layer(spec)) add(spec, -1, config);
  }
  for (int32_t layer = model.first_layer; layer < config.num_layers; ++layer) {
    for (const TensorSpec& spec : model.tensors()) {
      if (is_per_layer(spec)) add(spec, layer, config);
    }
  }
}

void TensorTable::add(const TensorSpec& spec, int32_t layer, const ModelConfig& config) {
  if (!is_present(spec, config, layer)) return;
  index_[static_cast<size_t>(layer + 1)][static_cast<size_t>(spec.role)] =
      static_cast<int32_t>(entries_.size());
  if (is_alone(spec)) return add_entry(spec, layer, -1, config);
  const int32_t count = num_tensors(spec, config);
  for (int32_t i = 0; i < count; ++i) add_entry(spec, layer, i, config);
}

void TensorTable::add_entry(const TensorSpec& spec,
                            int32_t layer,
                            int32_t expert,
                            const ModelConfig& config) {
  TensorEntry entry{.spec = &spec,
                    .layer = layer,
                    .expert = expert,
                    .name = tensor_name(spec.name, layer, expert, config),
                    .rows = dim_size(spec.rows, config, layer),
                    .cols = dim_size(spec.cols, config, layer),
                    .head_dim = is_of_state(spec.role) ? config.state.head_dim
                                                       : kv_heads_of(config, layer).head_dim,
                    .num_stacked = spec.stacked ? num_tensors(spec, config) : 0};
  if (spec.cols == Dim::kConvWeights) entry.per_channel = config.state.conv_kernel;
  if (spec.cols == Dim::kStreamPredictions || spec.cols == Dim::kStreamCorrections)
    entry.row_length = config.streams.count;
  if (spec.cols == Dim::kEntryBias || spec.cols == Dim::kIndexerEntryBias)
    entry.row_length = entry.cols / tokens_per_entry(config, layer);
  if (spec.cols == Dim::kExpertsAndUnread) entry.row_length = config.experts.num_experts;
  if (spec.cols == Dim::kDistanceBiases) entry.per_channel = config.num_heads;
  if (spec.cols == Dim::kChannelDecay) entry.per_channel = config.state.state_size;
  if (has_mark(spec.name, kHeadMark)) {
    entry.num_parts = static_cast<int32_t>(entry.cols / entry.head_dim);
  }
  if (has_mark(spec.name, kQkvMark)) {
    const StateConfig& state = config.state;
    entry.num_parts = static_cast<int32_t>(kQkv.size());
    entry.part_sizes = {state.num_keys(), state.num_keys(), state.num_channels()};
    for (int64_t& size : entry.part_sizes) size *= std::max<int64_t>(entry.per_channel, 1);
  }
  entries_.push_back(std::move(entry));
}

const TensorEntry* TensorTable::find(Role role, int32_t layer, int32_t expert) const {
  if (role == Role::kCount) return nullptr;
  const int32_t index = index_[static_cast<size_t>(layer + 1)][static_cast<size_t>(role)];
  return index == kAbsent ? nullptr : &entries_[static_cast<size_t>(index + expert)];
}

double count_parameters(const LoadedConfig& model) {
  double total = 0;
  const auto add = [&](const TensorSpec& spec, int32_t layer) {
    if (!spec.is_counted || !is_present(spec, model.config, layer)) return;
    total += static_cast<double>(dim_size(spec.rows, model.config, layer)) *
             static_cast<double>(dim_size(spec.cols, model.config, layer)) *
             num_tensors(spec, model.config);
  };
  for (const TensorSpec& spec : model.tensors()) {
    if (!is_per_layer(spec)) add(spec, -1);
    for (int32_t layer = 0; is_per_layer(spec) && layer < model.config.num_layers; ++layer) {
      add(spec, layer);
    }
  }
  return total;
}

int64_t count_stored_parameters(const TensorTable& table) {
  // Experts may be rows of one tensor, and the three of attention too.
  std::set<std::tuple<std::string_view, Role, int32_t>> seen;
  int64_t total = 0;
  for (const TensorEntry& entry : table.entries()) {
    if (!entry.spec->is_counted || entry.spec->holds_indices) continue;
    if (seen.insert({entry.name, entry.spec->role, entry.expert}).second) {
      total += entry.rows * entry.cols;
    }
  }
  return total;
}

bool has_matrix_before_head(const LoadedConfig& model) {
  return std::ranges::any_of(model.tensors(), [&](const TensorSpec& spec) {
    return (spec.role == Role::kHeadIn || spec.role == Role::kHeadDense) &&
           is_present(spec, model.config, -1);
  });
}

void check_world_size(const ModelConfig& config, int world_size) {
  const auto check = [world_size](std::string_view what, int32_t count) {
    if (count % world_size == 0) return;
    throw Error(Code::kInvalidArgument,
                fmt::format("{} of the model is {}, which can't be dealt out to {} ranks evenly",
                            what, count, world_size));
  };
  if (world_size < 1) {
    throw Error(Code::kInvalidArgument, fmt::format("world size {} is below 1", world_size));
  }
  check("num_heads", config.num_heads);
  check("num_kv_heads", config.num_kv_heads);
  check("intermediate_size", config.intermediate_size);
  for (int32_t layer = 0; layer < config.num_layers; ++layer) {
    check("num_heads of a layer", num_heads_of(config, layer));
    check("num_kv_heads of a layer", kv_heads_of(config, layer).num_kv_heads);
    check("intermediate_size of a layer", intermediate_size_of(config, layer));
  }
  check("the experts' intermediate size", config.experts.intermediate_size);
  check("the shared expert's intermediate size", config.experts.shared_intermediate_size);
  if (has_state(config) && world_size > 1) {
    throw Error(Code::kUnsupported,
                fmt::format("this model has layers that carry a state (convolutions, Mamba, gated "
                            "delta rule), which are not dealt out to ranks; use one instead of {}",
                            world_size));
  }
  if (has_entries(config) && world_size > 1) {
    throw Error(Code::kUnsupported,
                fmt::format("this model's attention makes entries of tokens and has groups of "
                            "heads, which are not dealt out to ranks; use one instead of {}",
                            world_size));
  }
  if (has_differences(config) && world_size > 1) {
    throw Error(Code::kUnsupported,
                fmt::format("this model's attention takes heads of one half from those of the "
                            "other, which can't be dealt out to {} ranks; use one",
                            world_size));
  }
  if (config.has_inner_norms && world_size > 1) {
    throw Error(
        Code::kUnsupported,
        fmt::format("this model's norms within attention and MLP are over whole rows, which "
                    "can't be dealt out to {} ranks; use one",
                    world_size));
  }
  if (cuts_gates(config) && world_size > 1) {
    throw Error(Code::kUnsupported,
                fmt::format("this model's MLPs keep of a gate what stands out of its whole row, "
                            "which can't be dealt out to {} ranks; use one",
                            world_size));
  }
  if (config.qk_norm == QkNorm::kRow && world_size > 1) {
    throw Error(Code::kUnsupported,
                fmt::format("this model's norm of q and k is over all heads, which can't be dealt "
                            "out to {} ranks; use one",
                            world_size));
  }
}

std::vector<Range> whole_range(int64_t size) {
  return {{.begin = 0, .count = size}};
}

std::vector<Range> rank_ranges(
    Dim dim, const ModelConfig& config, int32_t layer, int rank, int world_size) {
  if (dim == Dim::kQkv) return qkv_ranges(config, layer, rank, world_size);
  if (dim == Dim::kQkvByKvHead) return ranges_by_kv_head(config, layer, rank, world_size);
  if (dim == Dim::kQvkByQuarter) return ranges_by_quarter(config, rank, world_size);
  if (dim == Dim::kPairedValues) return paired_ranges(kv_heads_of(config, layer));
  if (dim == Dim::kLightningIn) return lightning_ranges(config.state);
  if (dim == Dim::kDeltaIn || dim == Dim::kDeltaSecondIn) {
    return delta_ranges(config.state, dim == Dim::kDeltaSecondIn);
  }
  const auto part_of_heads = [&](int part, int count) {
    return ranges_of_head_part(config, layer, part, count, rank, world_size);
  };
  if (dim == Dim::kGatedQ) return part_of_heads(0, 2);
  if (dim == Dim::kOutputGate) return part_of_heads(1, 2);
  if (dim == Dim::kQByHead) return part_of_heads(0, 3);
  if (dim == Dim::kKByHead) return part_of_heads(1, 3);
  if (dim == Dim::kVByHead) return part_of_heads(2, 3);
  if (dim == Dim::kLatentQGates || dim == Dim::kLatentGatesOfQ) {
    return latent_gate_ranges(config, dim == Dim::kLatentGatesOfQ, rank, world_size);
  }
  if (dim == Dim::kUpGate) {
    const int64_t size = dim_size(dim, config, layer) / 2;
    const Range up = rank_range(size, rank, world_size);
    return {{.begin = size + up.begin, .count = up.count}, up};
  }
  if (dim == Dim::kGateUp || dim == Dim::kExpertGateUp || dim == Dim::kSharedGateUp) {
    const int64_t size = dim_size(dim, config, layer) / 2;
    const Range gate = rank_range(size, rank, world_size);
    return {gate, {.begin = size + gate.begin, .count = gate.count}};
  }
  return {rank_range(dim_size(dim, config, layer), rank, world_size)};
}

}  // namespace tgi
