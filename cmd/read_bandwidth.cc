#include "cmd/read_bandwidth.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"

namespace tgi {
namespace {

constexpr int64_t kLargestBuffer = int64_t{2} << 30;
constexpr int64_t kBytesPerPass = int64_t{1} << 30;  // small buffers are read several times a pass
constexpr int kNumPasses = 5;
constexpr int64_t kGranule = 64 * 64;  // of a thread's part: whole cache lines

class Mapping {
 public:
  explicit Mapping(size_t bytes) : bytes_(bytes) {
    data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) {
      throw Error(Code::kOutOfMemory, fmt::format("a buffer of {} bytes to measure reading: {}",
                                                  bytes, std::strerror(errno)));
    }
    ::madvise(data_, bytes, MADV_HUGEPAGE);
  }
  ~Mapping() { ::munmap(data_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::span<uint64_t> words() { return {static_cast<uint64_t*>(data_), bytes_ / sizeof(uint64_t)}; }

 private:
  const size_t bytes_;
  void* data_ = nullptr;
};

int64_t available_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  for (std::string line; std::getline(meminfo, line);) {
    if (line.starts_with("MemAvailable:")) return std::stoll(line.substr(13)) * 1024;
  }
  return kLargestBuffer;
}

// 64 bytes; the compiler makes of it what the target has: one, two or four registers.
using Vector = uint64_t __attribute__((vector_size(64)));
constexpr size_t kWordsPerVector = sizeof(Vector) / sizeof(uint64_t);

// Four sums, so that the adder's latency is not the limit.
inline __attribute__((always_inline)) uint64_t sum_vectors(std::span<const uint64_t> words) {
  constexpr size_t kStep = 4 * kWordsPerVector;
  const auto* vectors = reinterpret_cast<const Vector*>(words.data());
  Vector a{}, b{}, c{}, d{};
  for (size_t i = 0; i < words.size() / kStep; ++i) {
    a += vectors[4 * i];
    b += vectors[4 * i + 1];
    c += vectors[4 * i + 2];
    d += vectors[4 * i + 3];
  }
  a += b + c + d;
  uint64_t total = 0;
  for (size_t i = 0; i < kWordsPerVector; ++i) total += a[i];
  return total;
}

using Sum = uint64_t (*)(std::span<const uint64_t> words);

uint64_t sum_generic(std::span<const uint64_t> words) {
  return sum_vectors(words);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) uint64_t sum_avx2(std::span<const uint64_t> words) {
  return sum_vectors(words);
}

__attribute__((target("avx512f"))) uint64_t sum_avx512(std::span<const uint64_t> words) {
  return sum_vectors(words);
}
#endif

// The widest loads of this machine: what fits a cache is limited by them.
Sum choose_sum() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return sum_avx512;
  if (__builtin_cpu_supports("avx2")) return sum_avx2;
#endif
  return sum_generic;
}

}  // namespace

ReadBandwidth measure_read_bandwidth(int64_t wanted_bytes, int num_threads) {
  using Clock = std::chrono::steady_clock;
  TGI_CHECK(num_threads > 0);
  const Sum sum = choose_sum();
  const int64_t limit = std::min(kLargestBuffer, available_bytes() / 2);
  const int64_t granule = kGranule * num_threads;
  const int64_t bytes = std::max(std::min(wanted_bytes, limit) / granule * granule, granule);
  const int64_t repeats = std::max<int64_t>(kBytesPerPass / bytes, 1);
  Mapping mapping(static_cast<size_t>(bytes));
  const std::span<uint64_t> words = mapping.words();
  const size_t share = words.size() / static_cast<size_t>(num_threads);

  double best_seconds = 0;
  Clock::time_point begin;
  int pass = -1;
  std::barrier step(num_threads, [&]() noexcept {
    const Clock::time_point now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - begin).count();
    if (pass >= 0 && (best_seconds == 0 || seconds < best_seconds)) best_seconds = seconds;
    ++pass;
    begin = Clock::now();
  });
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < num_threads; ++t) {
      threads.emplace_back([&, t] {
        const auto part = words.subspan(static_cast<size_t>(t) * share, share);
        std::fill(part.begin(), part.end(), uint64_t{1});  // each thread's pages near it
        step.arrive_and_wait();
        for (int i = 0; i < kNumPasses; ++i) {
          uint64_t total = 0;
          for (int64_t repeat = 0; repeat < repeats; ++repeat) {
            total += sum(part);
            asm volatile("" : : "r"(total) : "memory");  // the next reading can't be left out
          }
          step.arrive_and_wait();
        }
      });
    }
  }
  const double read_bytes = static_cast<double>(bytes) * static_cast<double>(repeats);
  return {.buffer_bytes = bytes, .bytes_per_s = read_bytes / best_seconds};
}

}  // namespace tgi
