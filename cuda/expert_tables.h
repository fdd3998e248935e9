// Where the matrices of a layer's experts are, on the GPU: a table for each span of experts, made
// when it is first met and kept, as captured steps read it. Copied from pinned memory that stays,
// so that nothing waits.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "cuda/device_memory.h"
#include "cuda/kernels/experts.h"

namespace tgi::cuda {

class ExpertTables {
 public:
  // Drops all tables and takes room for `num_entries` experts: no more is taken until there are
  // more. REQUIRES: nothing that reads them is on its way.
  void reset(size_t num_entries);

  // The table of these experts, on the GPU. Made when there is none, or another one for experts
  // that were at the same place, which no step may be capturing: the step before a capture has met
  // them. Throws kOutOfMemory, kDeviceLost.
  const ExpertPointers* table_of(cudaStream_t stream, std::span<const ExpertWeight> experts);

 private:
  struct Chunk {
    Buffer on_device;
    Buffer pinned;
    size_t num_entries = 0;
    size_t num_used = 0;
  };
  struct Table {
    const ExpertPointers* on_device = nullptr;
    std::span<const ExpertPointers> pinned;
  };

  void add_chunk(size_t num_entries);
  Table make(cudaStream_t stream, std::span<const ExpertWeight> experts);

  std::vector<Chunk> chunks_;  // the last has room
  std::map<const ExpertWeight*, Table> tables_;
};

}  // namespace tgi::cuda
