// Layers that carry a state: which of them there are kernels for. The ops are CudaDevice's, in
// state_layers.cc.
#pragma once

#include "engine/device/state_ops.h"

namespace tgi::cuda {

// Throws kUnsupported for a layout that is larger than kernels hold.
void check_state(const StateLayout& layout);

}  // namespace tgi::cuda
