#include "engine/model/rank_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "engine/model/dim_sizes.h"

namespace tgi {
namespace {

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
