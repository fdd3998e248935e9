#include "engine/runtime/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace tgi {

static std::string of_each_rank(const MemoryRequest& request) {
  return request.num_ranks == 1 ? "" : fmt::format(" on each of {} ranks", request.num_ranks);
}

// Tokens of one sequence that `num_blocks` hold, computed one by one.
static int64_t longest_context(const MemoryRequest& request, int64_t num_blocks) {
  const auto fits = [&](int64_t num_tokens) {
    return request.kv_groups.blocks_of_context(num_tokens, 1, request.block_size) <= num_blocks;
  };
  int64_t longest = 0;
  for (int64_t step = int64_t{1} << 31; step > 0; step /= 2) {
    if (longest + step <= INT32_MAX && fits(longest + step)) longest += step;
  }
  return longest;
}

std::string format_bytes(int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= int64_t{1} << 30) return fmt::format("{:.2f} GiB", value / (1 << 30));
  if (bytes >= int64_t{1} << 20) return fmt::format("{:.1f} MiB", value / (1 << 20));
  return fmt::format("{:.1f} KiB", value / (1 << 10));
}

int32_t automatic_running(int32_t proposed, int64_t left_bytes, int64_t state_bytes_of_sequence) {
  if (state_bytes_of_sequence == 0) return proposed;
  const int64_t fit = left_bytes / 4 / state_bytes_of_sequence;
  return static_cast<int32_t>(std::clamp<int64_t>(fit, 1, proposed));
}

PlannedMemory plan_memory(const MemoryRequest& request) {
  TGI_CHECK(request.block_bytes >= 0 && request.block_size > 0);
  const int64_t left = request.available_bytes - request.weight_bytes - request.workspace_bytes;
  const auto fail = [&](int64_t kv_bytes, const std::string& advice) {
    throw Error(
        Code::kOutOfMemory,
        fmt::format("the model does not fit: {} of weights + {} of workspace + {} of KV cache are "
                    "needed{}, {} are available; {}",
                    format_bytes(request.weight_bytes), format_bytes(request.workspace_bytes),
                    format_bytes(kv_bytes), of_each_rank(request),
                    format_bytes(request.available_bytes), advice));
  };
  const auto for_adapters = static_cast<int64_t>(static_cast<double>(std::max<int64_t>(left, 0)) *
                                                 request.adapter_fraction);
  const int64_t least_bytes = request.kv_groups.num_groups() * request.block_bytes;
  if (left < least_bytes || left < 0) fail(least_bytes, "use a smaller model or free memory");

  const int32_t wanted_context =
      std::min(request.max_total_tokens.value_or(request.max_positions), request.max_positions);
  const KvGroups& groups = request.kv_groups;
  const int64_t blocks_per_context =
      groups.blocks_of_context(wanted_context, request.max_batch_tokens, request.block_size);
  int64_t num_blocks = 0;
  if (request.block_bytes == 0) {
    num_blocks = kDefaultContexts * blocks_per_context;
  } else if (request.kv_cache_bytes) {
    num_blocks = *request.kv_cache_bytes / request.block_bytes;
    if (num_blocks * request.block_bytes > left) {
      fail(num_blocks * request.block_bytes, "give --kv-cache-memory a smaller value");
    }
  } else {
    // Where memory is short, a whole context goes before adapters.
    const int64_t fits_all = std::max((left - for_adapters) / request.block_bytes,
                                      std::min(left / request.block_bytes, blocks_per_context));
    const int64_t fits_half = std::max(fits_all / 2, std::min(fits_all, blocks_per_context));
    if (request.memory_is_shared) {
      num_blocks = std::min(fits_half, kDefaultContexts * blocks_per_context);
    } else if (request.max_running == 0) {
      num_blocks = fits_all;
    } else {
      const int64_t useful = blocks_per_context * kContextsOfRunning * request.max_running;
      num_blocks = std::min(fits_all, useful);
    }
  }
  num_blocks = std::min<int64_t>(num_blocks, INT32_MAX / request.block_size);
  if (num_blocks < groups.num_groups()) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("a KV cache of {}{} does not hold one block for each group of layers; they "
                    "take {}",
                    format_bytes(request.kv_cache_bytes.value_or(0)), of_each_rank(request),
                    format_bytes(groups.num_groups() * request.block_bytes)));
  }
  const int64_t capacity = longest_context(request, num_blocks);
  if (request.max_total_tokens && *request.max_total_tokens > capacity) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("max_total_tokens is {}, but the KV cache of {}{} holds only {} tokens; give "
                    "--kv-cache-memory more or --max-total-tokens less",
                    *request.max_total_tokens, format_bytes(num_blocks * request.block_bytes),
                    of_each_rank(request), capacity));
  }
  return {.num_blocks = static_cast<int32_t>(num_blocks),
          .max_total_tokens = static_cast<int32_t>(std::min<int64_t>(wanted_context, capacity)),
          .kv_bytes = num_blocks * request.block_bytes,
          .adapter_bytes = std::min(for_adapters, left - num_blocks * request.block_bytes)};
}

}  // namespace tgi
