// Layers that carry a state have no kernels here: models with them are refused.
#pragma once

#include "engine/device/state_ops.h"

namespace tgi::cuda {

// Throws kUnsupported for a model with such layers.
void check_state(const StateLayout& layout);

}  // namespace tgi::cuda
