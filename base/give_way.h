// Work that one client waits for and that the others shall not notice.
#pragma once

#include <functional>

namespace tgi {

// The priority (nice value) of work that may take as long as it takes.
inline constexpr int kLowestPriority = 19;

// Sets the priority of the calling thread and of the threads that it makes from now on. Where the
// system refuses, they keep theirs.
void lower_priority(int nice);

// Calls work() on a thread of its own and waits for it; what it throws is rethrown. After some
// milliseconds the thread gets a tenth of the share of others on a busy processor, and on an idle
// one all of it as before: short work is as quick as on the calling thread, long work gives way.
// Where no thread can be made, the calling one does it.
void run_giving_way(const std::function<void()>& work);

}  // namespace tgi
