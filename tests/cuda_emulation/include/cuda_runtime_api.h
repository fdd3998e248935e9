// The host half of cuda_runtime.h.
#pragma once

#include "emulation/runtime_api.h"
