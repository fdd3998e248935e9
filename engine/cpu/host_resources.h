// What of the machine this process may use, from the kernel and from its cgroup (version 1 or 2),
// and memory from it. `root` is where /proc and /sys are looked for: "/" but in tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tensor/tensor.h"

namespace tgi {

// Processors that this process's affinity mask allows.
std::vector<int> affinity_cpus();

// Those of these processors that are the first of their physical core among them: threads of one
// core share its multipliers, so a second one brings nothing.
std::vector<int> one_cpu_per_core(const std::vector<int>& cpus, const std::string& root = "/");

// These processors in the order in which threads should take them: a core each, then their
// siblings.
std::vector<int> spread_over_cores(const std::vector<int>& cpus, const std::string& root = "/");

// The calling thread then runs there alone. False where the kernel refuses.
bool pin_this_thread(int cpu);

// Memory nodes (NUMA) that are online; at least 1.
int num_memory_nodes(const std::string& root = "/");

// Processors' worth of time per unit of time; 0: no quota.
double cgroup_cpu_quota(const std::string& root);

// Memory that is still available without swapping: MemAvailable (free memory, where /proc can't be
// read), bounded by what the cgroup and the process's limits (ulimit) leave.
int64_t available_memory_bytes(const std::string& root = "/");

// Model name of the processor, for people.
std::string cpu_description(const std::string& root = "/");

// Of memory that is large. Small ones for what is touched here and there: each touch takes a page.
enum class PageSize { kHugeWhereLarge, kSmall };

// Zeroed, aligned to 2 MiB and on huge pages where the kernel grants them when it is large, else
// aligned to a page. Physical pages are taken at first touch; on a machine of several
// memory nodes those of a large one alternate between them, so that all nodes' bandwidth serves
// every thread. Throws kOutOfMemory with the numbers.
Buffer map_memory(size_t size_bytes,
                  std::string_view purpose,
                  PageSize pages = PageSize::kHugeWhereLarge);

}  // namespace tgi
