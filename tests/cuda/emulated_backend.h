// The CUDA backend on emulated GPUs, linked into a test.
#pragma once

#include "engine/device/backend.h"

namespace tgi::cuda {

Backend& emulated_backend();

}  // namespace tgi::cuda
