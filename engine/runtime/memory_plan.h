// How memory is divided before any of it is taken: arithmetic on sizes, never a trial run. Pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/tensor/kv_groups.h"

namespace tgi {

// The sizes of one rank; where ranks differ, of the one that has least room.
struct MemoryRequest {
  int32_t num_ranks = 1;        // for messages
  int64_t available_bytes = 0;  // for everything below
  int64_t weight_bytes = 0;
  int64_t workspace_bytes = 0;              // activations, slot table, sampling
  int64_t block_bytes = 0;                  // of one KV block; 0: no layer has any
  int32_t block_size = 16;                  // tokens
  KvGroups kv_groups{};                     // each of which takes blocks for a context
  int32_t max_batch_tokens = 512;           // of a step: windowed groups hold them for a while
  int32_t max_positions = 0;                // of the model
  bool memory_is_shared = true;             // with all else that runs on the machine
  int32_t max_running = 0;                  // sequences at once; 0: as many as fit
  std::optional<int64_t> kv_cache_bytes;    // what the user wants for the KV cache
  double adapter_fraction = 0;              // of what weights and workspace leave, for adapters
  std::optional<int32_t> max_total_tokens;  // what the user wants for one request
};

struct PlannedMemory {
  int32_t num_blocks = 0;
  int32_t max_total_tokens = 0;  // of one request: what the model, the user and the KV cache allow
  int64_t kv_bytes = 0;
  int64_t adapter_bytes = 0;  // that adapters may take
};

// Where blocks take no memory there are as many as kDefaultContexts contexts need; else:
// without a wish the KV cache gets all that is left beside weights, workspace and adapters, but no
// more than whole contexts of all that may run at once, kContextsOfRunning times (prefixes stay in
// it): a small model leaves a large GPU to others. Of memory that is shared it gets room for
// kDefaultContexts whole contexts, but at most half of what is left. A wish goes before adapters,
// which then have what it leaves of theirs. Throws kOutOfMemory with the sum when the parts don't
// fit, kInvalidArgument when one request of max_total_tokens can't ever fit.
inline constexpr int32_t kDefaultContexts = 16;
inline constexpr int32_t kContextsOfRunning = 2;
PlannedMemory plan_memory(const MemoryRequest& request);

// How many sequences run at once when nobody says: what the device proposes, but no more than whose
// states, which are taken at the start, fill a quarter of what weights leave; at least one.
int32_t automatic_running(int32_t proposed, int64_t left_bytes, int64_t state_bytes_of_sequence);

// "1.5 GiB"
std::string format_bytes(int64_t bytes);

}  // namespace tgi
