// See host_resources.h. Formats: proc(5), cgroups(7), the kernel's cgroup-v1 memory and cpu pages.
#include "engine/cpu/host_resources.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "base/error.h"

namespace tgi {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;
constexpr size_t kPageBytes = 4096;
constexpr size_t kCheckedBytes = size_t{16} << 20;  // below, asking costs more than it helps

std::optional<std::string> read_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word)) return std::nullopt;
  return word;
}

std::optional<int64_t> read_integer(const std::string& path) {
  const auto word = read_word(path);
  if (!word || word->find_first_not_of("-0123456789") != std::string::npos) return std::nullopt;
  try {
    return std::stoll(*word);
  } catch (const std::exception&) {
    return std::nullopt;  // larger than any machine: no limit
  }
}

struct CgroupFolder {
  std::string path;
  bool version2 = false;
};

// The folders of this process's cgroup for a controller, from its own up to the root: each may
// limit.
std::vector<CgroupFolder> cgroup_folders(const std::string& root, std::string_view controller) {
  std::vector<CgroupFolder> folders;
  std::ifstream file(root + "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool version2 = controllers == ",,";
    if (!version2 && controllers.find(fmt::format(",{},", controller)) == std::string::npos) {
      continue;
    }
    const std::string base =
        root + "sys/fs/cgroup" + (version2 ? std::string() : fmt::format("/{}", controller));
    std::string path = line.substr(second + 1);
    while (true) {
      folders.push_back({base + (path == "/" ? "" : path), version2});
      if (path.empty() || path == "/") break;
      path.resize(path.rfind('/'));
    }
  }
  return folders;
}

int64_t mem_available_bytes(const std::string& root) {
  std::ifstream file(root + "proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("MemAvailable:")) continue;
    std::istringstream rest(line.substr(13));
    int64_t kilobytes = 0;
    rest >> kilobytes;
    return kilobytes * 1024;
  }
  // Without /proc: what nobody uses, without the part of the page cache that would give way.
  struct sysinfo machine {};
  if (::sysinfo(&machine) != 0) return 0;
  return static_cast<int64_t>((machine.freeram + machine.bufferram) * machine.mem_unit);
}

// What the process's own limits leave it (`ulimit -v`, `ulimit -d`): address space, whether it is
// touched or not.
int64_t left_of_limits(const std::string& root) {
  struct LimitRow {
    __rlimit_resource resource;
    size_t used_field;  // of /proc/self/statm, in pages
  };
  constexpr std::array kLimits = {LimitRow{RLIMIT_AS, 0}, LimitRow{RLIMIT_DATA, 5}};
  std::array<int64_t, 6> used_pages{};
  std::ifstream file(root + "proc/self/statm");
  for (int64_t& pages : used_pages) file >> pages;
  int64_t out = std::numeric_limits<int64_t>::max();
  for (const LimitRow& row : kLimits) {
    rlimit limit{};
    if (::getrlimit(row.resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) continue;
    const auto most = static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX));
    const int64_t used = used_pages.at(row.used_field) * ::sysconf(_SC_PAGESIZE);
    out = std::min(out, std::max<int64_t>(most - used, 0));
  }
  return out;
}

// The part of the group's usage that gives way when memory is needed: pages of files.
int64_t reclaimable_bytes(const CgroupFolder& folder) {
  std::ifstream file(folder.path + "/memory.stat");
  const std::string_view wanted = folder.version2 ? "inactive_file" : "total_inactive_file";
  std::string key;
  int64_t value = 0;
  while (file >> key >> value) {
    if (key == wanted) return value;
  }
  return 0;
}

// Best effort: where the kernel refuses, pages lie where they are first touched.
void interleave(void* begin, size_t size) {
  static const int num_nodes = num_memory_nodes();
  if (num_nodes < 2 || num_nodes >= 64) return;
  constexpr int kInterleave = 3;  // MPOL_INTERLEAVE of mbind(2)
  const unsigned long nodes = (1UL << num_nodes) - 1;
  (void)::syscall(SYS_mbind, begin, size, kInterleave, &nodes, 65UL, 0UL);
}

}  // namespace

std::vector<int> affinity_cpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
    return cpus;
  }
  // More processors than fit the mask.
  const int count = static_cast<int>(std::thread::hardware_concurrency());
  for (int cpu = 0; cpu < count; ++cpu) cpus.push_back(cpu);
  return cpus;
}

std::vector<int> one_cpu_per_core(const std::vector<int>& cpus, const std::string& root) {
  std::vector<int> out;
  std::set<std::pair<int64_t, int64_t>> seen;
  for (const int cpu : cpus) {
    const std::string folder = fmt::format("{}sys/devices/system/cpu/cpu{}/topology/", root, cpu);
    const auto package = read_integer(folder + "physical_package_id");
    const auto core = read_integer(folder + "core_id");
    // Without a topology every processor counts.
    if (!package || !core || seen.emplace(*package, *core).second) out.push_back(cpu);
  }
  return out;
}

std::vector<int> spread_over_cores(const std::vector<int>& cpus, const std::string& root) {
  std::vector<int> order = one_cpu_per_core(cpus, root);
  for (const int cpu : cpus) {
    if (std::find(order.begin(), order.end(), cpu) == order.end()) order.push_back(cpu);
  }
  return order;
}

bool pin_this_thread(int cpu) {
  if (cpu < 0 || cpu >= CPU_SETSIZE) return false;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return ::sched_setaffinity(0, sizeof set, &set) == 0;
}

int num_memory_nodes(const std::string& root) {
  int count = 0;
  while (std::ifstream(fmt::format("{}sys/devices/system/node/node{}/meminfo", root, count))) {
    ++count;
  }
  return std::max(count, 1);
}

double cgroup_cpu_quota(const std::string& root) {
  double lowest = 0;
  const auto take = [&](double quota) {
    if (quota > 0 && (lowest == 0 || quota < lowest)) lowest = quota;
  };
  for (const CgroupFolder& folder : cgroup_folders(root, "cpu")) {
    if (folder.version2) {
      std::ifstream file(folder.path + "/cpu.max");
      std::string quota;
      double period = 0;
      if (file >> quota >> period && quota != "max" && period > 0) {
        take(std::strtod(quota.c_str(), nullptr) / period);
      }
    } else {
      const auto quota = read_integer(folder.path + "/cpu.cfs_quota_us");
      const auto period = read_integer(folder.path + "/cpu.cfs_period_us");
      if (quota && period && *quota > 0 && *period > 0) {
        take(static_cast<double>(*quota) / static_cast<double>(*period));
      }
    }
  }
  return lowest;
}

int64_t available_memory_bytes(const std::string& root) {
  int64_t available = std::min(mem_available_bytes(root), left_of_limits(root));
  for (const CgroupFolder& folder : cgroup_folders(root, "memory")) {
    const bool v2 = folder.version2;
    const auto limit = read_integer(folder.path + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
    if (!limit) continue;
    const auto usage =
        read_integer(folder.path + (v2 ? "/memory.current" : "/memory.usage_in_bytes"));
    const int64_t used = usage ? std::max<int64_t>(*usage - reclaimable_bytes(folder), 0) : 0;
    available = std::min(available, std::max<int64_t>(*limit - used, 0));
  }
  return available;
}

std::string cpu_description(const std::string& root) {
  std::ifstream file(root + "proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

Buffer map_memory(size_t size_bytes, std::string_view purpose, PageSize pages) {
  if (size_bytes == 0) return {};
  const bool is_huge = size_bytes >= kHugePageBytes && pages == PageSize::kHugeWhereLarge;
  const size_t alignment = is_huge ? kHugePageBytes : kPageBytes;
  const size_t size = (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  const auto refuse = [&](int64_t available, std::string_view why) {
    return Error(Code::kOutOfMemory,
                 fmt::format("{}: needs {} bytes of memory, {} are available ({})", purpose,
                             size_bytes, available, why));
  };
  // The kernel would grant more than there is and kill us later.
  if (size_bytes >= kCheckedBytes) {
    const int64_t available = available_memory_bytes();
    if (size_bytes > static_cast<size_t>(available)) throw refuse(available, "not enough");
  }
  void* const mapped = ::mmap(nullptr, size + alignment, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw refuse(available_memory_bytes(), std::strerror(errno));
  // Cut to the aligned part.
  auto* const begin = static_cast<std::byte*>(mapped);
  const size_t past = reinterpret_cast<uintptr_t>(mapped) % alignment;
  const size_t before = past == 0 ? 0 : alignment - past;
  if (before > 0) ::munmap(begin, before);
  ::munmap(begin + before + size, alignment - before);
  if (is_huge) ::madvise(begin + before, size, MADV_HUGEPAGE);
  if (size_bytes >= kHugePageBytes) interleave(begin + before, size);
  return {begin + before, size_bytes, [](void* data, size_t bytes) { ::munmap(data, bytes); }};
}

}  // namespace tgi
