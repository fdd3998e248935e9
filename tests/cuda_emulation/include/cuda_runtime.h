// Stands in for NVIDIA's header of this name, so that .cu files compile as plain C++ and their
// kernels run on the CPU, thread by thread. What is here is what our CUDA code uses; ../README.md
// tells the rest.
#pragma once

#include "emulation/collectives.h"
#include "emulation/math.h"
#include "emulation/runtime_api.h"
#include "emulation/threads.h"
#include "emulation/vector_types.h"
