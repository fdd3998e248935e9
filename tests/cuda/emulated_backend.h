// The CUDA backend on emulated GPUs, linked into a test.
#pragma once

#include "engine/device/backend.h"

namespace tgi::cuda {

Backend& emulated_backend();

// Of tests that say nothing about the emulation, tagged [gpu]: a real GPU where
// TGI_CONFORMANCE_OF_GPU is set, as scripts/gpu_check does. Not in the library that plugins have:
// tested_backend.cc.
Backend& tested_backend();

}  // namespace tgi::cuda
