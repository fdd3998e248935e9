// Adapters in the memory of a GPU.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/device_memory.h"
#include "cuda/kernels/low_rank.h"
#include "engine/device/backend.h"

namespace tgi::cuda {

class CudaAdapter final : public Adapter {
 public:
  // For the current GPU, with copies of its own stream. Throws kUnsupported for ranks above
  // kMaxAdapterRank and more than kMaxLowRankPieces products at a site, kOutOfMemory, kDeviceLost.
  CudaAdapter(std::span<const LowRankPart> parts, DType dtype);
  static int64_t bytes(std::span<const LowRankPart> parts, DType dtype);

  LowRankAdapter entry() const { return entry_; }

 private:
  Buffer memory_;  // the sites, then their matrices
  LowRankAdapter entry_;
};

}  // namespace tgi::cuda
