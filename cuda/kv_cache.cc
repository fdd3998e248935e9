#include "cuda/kv_cache.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "cuda/device_memory.h"

namespace tgi::cuda {
namespace {

int64_t bytes_of_row(const KvLayout& layout, const KvHeads& heads) {
  return padded_dim(heads) * static_cast<int64_t>(dtype_size(layout.dtype));
}

// Of the keys, or the values, of one block.
int64_t bytes_of_half(const KvLayout& layout, const KvHeads& heads) {
  return int64_t{heads.num_kv_heads} * layout.block_size * bytes_of_row(layout, heads);
}

// Where layers differ.
int64_t bytes_of_block(const KvLayout& layout) {
  int64_t largest = 0;
  int64_t unit = 1;
  for (const std::vector<KvHeads>& group : layout.groups) {
    int64_t size = 0;
    for (const KvHeads& heads : group) {
      size += 2 * bytes_of_half(layout, heads);
      unit = std::lcm(unit, bytes_of_row(layout, heads));
    }
    largest = std::max(largest, size);
  }
  return (largest + unit - 1) / unit * unit;
}

}  // namespace

int64_t KvCache::bytes(const KvLayout& layout) {
  const bool has_latents = layout.latent_dim > 0;
  if (has_latents && layout.dtype == DType::kF8E4M3) {
    throw Error(Code::kUnsupported,
                "the cuda backend holds a cache of latents in the weights' type, not in f8e4m3; "
                "leave --kv-cache-dtype out");
  }
  if (!layout.groups.empty()) return layout.num_blocks * bytes_of_block(layout);
  return int64_t{has_latents ? 1 : 2} * layout.num_layers * layout.num_blocks *
         bytes_of_half(layout, {.num_kv_heads = layout.num_kv_heads, .head_dim = layout.head_dim});
}

KvCache::KvCache(const KvLayout& layout)
    : memory_(allocate_device(static_cast<size_t>(bytes(layout)), "KV cache")) {
  auto* next = static_cast<std::byte*>(memory_.data());
  if (layout.groups.empty()) {
    std::vector<LayerCache>& layers = layers_.emplace_back();
    const int64_t layer_bytes = layout.num_layers > 0 ? bytes(layout) / layout.num_layers : 0;
    for (int32_t layer = 0; layer < layout.num_layers; ++layer) {
      layers.push_back({.keys = next,
                        .values = layout.latent_dim > 0 ? nullptr : next + layer_bytes / 2,
                        .block_rows = layout.num_kv_heads * layout.block_size});
      next += layer_bytes;
    }
    return;
  }
  const int64_t step = bytes_of_block(layout);
  for (const std::vector<KvHeads>& group : layout.groups) {
    std::vector<LayerCache>& layers = layers_.emplace_back();
    std::byte* at = next;
    for (const KvHeads& heads : group) {
      const int64_t block_rows = step / bytes_of_row(layout, heads);
      // Kernels count rows in 32 bits.
      TGI_CHECK(block_rows * layout.num_blocks <= std::numeric_limits<int32_t>::max());
      const int64_t half = bytes_of_half(layout, heads);
      layers.push_back(
          {.keys = at, .values = at + half, .block_rows = static_cast<int32_t>(block_rows)});
      at += 2 * half;
    }
  }
}

}  // namespace tgi::cuda
