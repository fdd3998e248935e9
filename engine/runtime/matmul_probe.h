// How fast a backend multiplies on this machine, for `tgid --probe`: the matmul of a prompt and the
// one of a decoded token, on a matrix of the size that models of a few billion parameters have.
#pragma once

#include <chrono>
#include <string>

#include "engine/device/backend.h"

namespace tgi {

struct MatmulSpeed {
  DeviceInfo device;
  std::string dtype;              // of the weights
  double prompt_flops_per_s = 0;  // 512 rows; 16 on a device so slow that they'd take 10 durations
  double decode_bytes_per_s = 0;  // of weights, with 1 row
};

// Each of the two runs for about `duration`, at least twice. Throws what making a device throws.
MatmulSpeed measure_matmul(Backend& backend,
                           DType dtype,
                           const DeviceOptions& options,
                           std::chrono::milliseconds duration);

}  // namespace tgi
