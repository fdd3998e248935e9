// Puts a model onto the devices of all its ranks: the plan first, then every rank's share of the
// weights, all ranks at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/device/backend.h"
#include "engine/model/architecture.h"
#include "engine/model/model_weights.h"
#include "engine/runtime/drafters/drafter_kind.h"
#include "engine/runtime/memory_plan.h"
#include "engine/runtime/rank_group.h"

namespace tgi {

// Called once by each rank, on its thread: a checkpoint may drop what one reader has released, so
// it has one reader. A mapped file is in memory once all the same; random weights are made by every
// rank for itself. Told the rank's device.
using OpenCheckpoint = std::function<std::unique_ptr<Checkpoint>(const DeviceInfo&)>;

struct LoadRanksOptions {
  int32_t num_ranks = 1;
  DeviceOptions device;        // of each rank, but num_threads of all; rank and world are set here
  LoadWeightsOptions weights;  // likewise
  DType kv_dtype = DType::kBF16;
  int32_t block_size = 16;
  std::optional<int32_t> max_running;       // of a step; none: as the device says
  std::optional<int32_t> max_batch_tokens;  // likewise
  std::optional<int32_t> max_total_tokens;
  std::optional<int64_t> kv_cache_bytes;  // of all ranks
  double adapter_memory_fraction = 0;     // of what weights and workspace leave
  int32_t max_active_adapters = 0;
  int32_t max_drafts = 0;                    // of a sequence in a step
  const PreparedDrafter* drafter = nullptr;  // (optional) for which rank 0 leaves memory
  // What other models have planned for and not touched yet, so that the system still calls it free.
  // Told only where ranks share memory: elsewhere memory is taken when it is planned.
  int64_t promised_bytes = 0;
  std::stop_token stop;  // ends the load with kCancelled, between two tensors
};

// Adapters that may be on such a device at once; 0 where there are to be none.
inline int32_t num_adapters(const DeviceInfo& device, double memory_fraction, int32_t max_active) {
  return device.takes_adapters && memory_fraction > 0 ? max_active : 0;
}

struct LoadedRanks {
  std::unique_ptr<RankGroup> workers;
  DraftedModel drafted;  // as the drafter is told it; lives as long as the workers
  PlannedMemory plan;    // of each rank
  int32_t max_running = 0;
  int32_t max_batch_tokens = 0;
  std::string backend;
  std::string isa;
  std::string device;  // of rank 0, for people
  std::vector<LeftOutKernels> left_out;
  MatrixForms keeps{};     // of a device
  int64_t num_params = 0;  // of the model
  int32_t max_logit_bias = 0;
  int32_t max_top_tokens = 0;
  // Sums over all ranks:
  int64_t num_threads = 0;
  int64_t weight_bytes = 0;
  int64_t streamed_bytes_per_token = 0;
  int64_t block_bytes = 0;
  int64_t kv_bytes = 0;
  KvGroups kv_groups;
  int32_t num_group_layers = 0;
  int64_t workspace_bytes = 0;
  int64_t adapter_bytes = 0;  // that may be taken
  int64_t drafter_bytes = 0;  // that it will take
  int64_t available_bytes = 0;
  int32_t max_active_adapters = 0;  // 0: adapters can't be used
};

// Throws kInvalidArgument for less than one rank or more than the backend has devices for, with
// both numbers.
void check_num_ranks(Backend& backend, int32_t num_ranks);

// What a model that gives way holds of the same backend's memory: all of its ranks together.
struct GivenBack {
  int64_t bytes = 0;
  int32_t num_ranks = 1;
};

// Whether its ranks share one memory, that of the machine, which is taken as it is touched; else
// each has a device with memory of its own, which is taken when it is planned.
bool ranks_share_memory(Backend& backend);

// Whether such a model could be loaded once all of `given_back` is free: devices are made for a
// moment and asked, nothing large is taken. Throws what load_ranks throws before it reads the first
// weight. Where the devices can't even be made beside those that serve, for want of memory, it says
// so in the log. Returns the blocks that its KV cache would have; 0: it isn't known.
int32_t check_ranks(Backend& backend,
                    const LoadedConfig& model,
                    const LoadRanksOptions& options,
                    std::span<const GivenBack> given_back);

// Throws what the first rank that failed threw, when all have ended and given back what they took:
// kInvalidArgument, kUnsupported, kOutOfMemory, kDeviceLost, kCancelled.
LoadedRanks load_ranks(Backend& backend,
                       const LoadedConfig& model,
                       const OpenCheckpoint& open,
                       const LoadRanksOptions& options);

}  // namespace tgi
