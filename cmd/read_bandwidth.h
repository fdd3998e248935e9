// How fast plain threads of this machine read memory: what a decode step, which has to read every
// weight, can at best reach.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tgi {

struct ReadBandwidth {
  int64_t buffer_bytes = 0;
  double bytes_per_s = 0;
};

// The best of several passes over one buffer of `wanted_bytes`, at most 2 GiB and half of the
// memory that is free. A buffer that fits a cache measures that cache, like weights that fit would.
ReadBandwidth measure_read_bandwidth(int64_t wanted_bytes, int num_threads);

}  // namespace tgi
