// What the process may use, read from made-up /proc and /sys trees.
#include "engine/cpu/host_resources.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "engine/cpu/cpu_backend.h"
#include "tests/catch.h"

namespace tgi {
namespace {

// A folder that stands for "/", removed at the end.
class FakeRoot {
 public:
  FakeRoot() {
    char name[] = "/tmp/tgi_test_root_XXXXXX";
    path_ = std::string(::mkdtemp(name)) + "/";
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path whole = path_ + file;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr auto kMemInfo = "MemTotal:  8000 kB\nMemFree: 10 kB\nMemAvailable:    4000 kB\n";

}  // namespace

TEST_CASE("without a cgroup, available memory is what the kernel says") {
  FakeRoot root;
  root.write("proc/meminfo", kMemInfo);
  CHECK(available_memory_bytes(root.path()) == 4000 * 1024);
  CHECK(cgroup_cpu_quota(root.path()) == 0.0);
}

TEST_CASE("a version 2 cgroup bounds memory and processors, and so do those above it") {
  FakeRoot root;
  root.write("proc/meminfo", kMemInfo);
  root.write("proc/self/cgroup", "0::/outer/inner\n");
  root.write("sys/fs/cgroup/outer/memory.max", "3000000\n");
  root.write("sys/fs/cgroup/outer/memory.current", "1000000\n");
  root.write("sys/fs/cgroup/outer/memory.stat", "anon 600000\ninactive_file 400000\n");
  root.write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  root.write("sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  root.write("sys/fs/cgroup/outer/cpu.max", "150000 100000\n");
  CHECK(available_memory_bytes(root.path()) == 3000000 - 600000);
  CHECK(cgroup_cpu_quota(root.path()) == 1.5);
}

TEST_CASE("a version 1 cgroup bounds memory and processors") {
  FakeRoot root;
  root.write("proc/meminfo", kMemInfo);
  root.write("proc/self/cgroup", "7:memory:/job\n3:cpu,cpuacct:/job\n");
  root.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2000000\n");
  root.write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "500000\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "300000\n");
  root.write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  CHECK(available_memory_bytes(root.path()) == 1500000);
  CHECK(cgroup_cpu_quota(root.path()) == 3.0);
}

TEST_CASE("mapped memory is zeroed and aligned, and too much is refused with the numbers") {
  const Buffer small = map_memory(100, "small");
  CHECK(small.size_bytes() == 100);
  CHECK(reinterpret_cast<uintptr_t>(small.data()) % 4096 == 0);
  const size_t size = (size_t{4} << 20) + 5;
  const Buffer large = map_memory(size, "large");
  CHECK(reinterpret_cast<uintptr_t>(large.data()) % (size_t{2} << 20) == 0);
  const auto* bytes = static_cast<const char*>(large.data());
  CHECK(std::count(bytes, bytes + size, 0) == static_cast<int64_t>(size));
  try {
    const Buffer refused = map_memory(size_t{1} << 50, "kv cache");
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(error.code() == Code::kOutOfMemory);
    CHECK_THAT(error.what(), Catch::Contains("kv cache") && Catch::Contains("1125899906842624"));
  }
}

TEST_CASE("threads of one core count once, and nodes of memory are counted") {
  FakeRoot root;
  CHECK(one_cpu_per_core({0, 1, 2, 3}, root.path()) == std::vector<int>{0, 1, 2, 3});
  CHECK(num_memory_nodes(root.path()) == 1);
  for (int cpu = 0; cpu < 4; ++cpu) {
    const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    root.write(folder + "physical_package_id", "0\n");
    root.write(folder + "core_id", std::to_string(cpu % 2) + "\n");
  }
  root.write("sys/devices/system/node/node0/meminfo", "Node 0\n");
  root.write("sys/devices/system/node/node1/meminfo", "Node 1\n");
  CHECK(one_cpu_per_core({0, 1, 2, 3}, root.path()) == std::vector<int>{0, 1});
  CHECK(one_cpu_per_core({1, 3}, root.path()) == std::vector<int>{1});
  CHECK(spread_over_cores({0, 2, 1, 3}, root.path()) == std::vector<int>{0, 1, 2, 3});
  CHECK(num_memory_nodes(root.path()) == 2);
}

TEST_CASE("more threads than processors are refused with both numbers") {
  CHECK_THROWS_WITH(make_cpu_device({.num_threads = 100000}), Catch::Contains("100000"));
}

TEST_CASE("this machine has at least one processor and some memory") {
  CHECK(affinity_cpus().size() >= 1);
  CHECK(available_memory_bytes() > 0);
}

TEST_CASE("without /proc memory is not without end") {
  const FakeRoot root;
  const int64_t available = available_memory_bytes(root.path());
  CHECK(available > 0);
  CHECK(available <= ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE));
}

TEST_CASE("a limit of the address space bounds memory, and what is refused tells true numbers") {
  std::ifstream statm("/proc/self/statm");
  int64_t used_pages = 0;
  statm >> used_pages;
  constexpr int64_t kRoom = int64_t{96} << 20;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
  rlimit limited = before;
  limited.rlim_cur = static_cast<rlim_t>(used_pages * ::sysconf(_SC_PAGESIZE) + kRoom);
  REQUIRE(::setrlimit(RLIMIT_AS, &limited) == 0);
  const int64_t available = available_memory_bytes();
  std::string refused;
  try {
    (void)map_memory(size_t{4} * kRoom, "weights");
  } catch (const Error& error) {
    refused = error.what();
  }
  REQUIRE(::setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(available <= kRoom);
  const std::string words = " bytes of memory, ";
  REQUIRE(refused.find(words) != std::string::npos);
  CHECK(std::stoll(refused.substr(refused.find(words) + words.size())) <= kRoom);
}

}  // namespace tgi
