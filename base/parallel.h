// A loop shared by a few threads that live as long as the loop: for work of seconds. They have the
// priority of the thread that asks for them.
#pragma once

#include <cstdint>
#include <functional>

namespace tgi {

// Calls task(index) for each index in [0, num_tasks), in no order; the calling thread takes part.
// What a task throws first is rethrown when all have ended; the tasks not yet begun are left out.
void parallel_for(int num_threads, int64_t num_tasks, const std::function<void(int64_t)>& task);

}  // namespace tgi
