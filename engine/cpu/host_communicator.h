// Reductions between ranks that are threads of one process, in host memory.
//
// Every element is added in the order of the ranks, in f32, and rounded once: the same bits on
// every rank, whatever the timing. Each rank adds a slice of the tensor for all of them; waiting
// ranks spin for a moment, then sleep.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "engine/device/communicator.h"

namespace tgi {

// How long a rank waits for the others at a reduction. Ranks have the same to do between two
// reductions, so one that is so far behind won't come any more.
inline constexpr std::chrono::milliseconds kRankTimeout{60000};

// The communicators of all ranks, in their order. Each belongs to the thread of its rank, except
// for abort().
std::vector<std::unique_ptr<Communicator>> make_host_communicators(
    int world_size, std::chrono::milliseconds timeout = kRankTimeout);

}  // namespace tgi
