// See kernel_choice.h.
#include "engine/cpu/kernel_choice.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <mutex>

#include "engine/cpu/cpu_device_internal.h"
#include "engine/cpu/host_resources.h"

namespace tgi {
namespace {

constexpr int64_t kCols = 1024;
constexpr int64_t kPanels = 8;
constexpr int64_t kGroupSize = 64;
constexpr int64_t kMostRows = 32;

class Race {
 public:
  explicit Race(PanelType type)
      : layout_{.type = type, .cols = kCols, .group_size = kGroupSize},
        panels_(map_memory(static_cast<size_t>(kPanels * layout_.bytes()), "kernel choice")),
        x_(map_memory(static_cast<size_t>((kMostRows + kExtraPreparedRows) * kStride),
                      "kernel choice")),
        out_(map_memory(kMostRows * kPanels * 16 * 4, "kernel choice")) {}

  // The best of some runs, in seconds. Zeros take as long as other numbers.
  double time(const MatmulKernel& kernel, int64_t num_rows) {
    double best = std::numeric_limits<double>::infinity();
    for (int run = 0; run < 8; ++run) {
      const auto start = std::chrono::steady_clock::now();
      kernel.block({.x = static_cast<const std::byte*>(x_.data()),
                    .x_stride_bytes = kStride,
                    .num_rows = num_rows,
                    .k = kCols,
                    .group_size = layout_.quantised() ? kGroupSize : 0,
                    .panels = static_cast<const std::byte*>(panels_.data()),
                    .panel_bytes = layout_.bytes(),
                    .num_panels = kPanels,
                    .out = static_cast<float*>(out_.data()),
                    .out_stride = kPanels * 16,
                    .num_outputs = kPanels * 16});
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      best = std::min(best, taken.count());
    }
    return best;
  }

 private:
  static constexpr int64_t kStride = prepared_row_bytes(kCols * 4);
  PanelLayout layout_;
  Buffer panels_;
  Buffer x_;
  Buffer out_;
};

int64_t measure(const KernelTable& kernels, PanelType type) {
  const auto index = static_cast<size_t>(type);
  if (kernels.matmul_many[index].block == nullptr) return std::numeric_limits<int64_t>::max();
  Race race(type);
  for (int64_t rows = 1; rows < kMostRows; rows += rows < 8 ? 1 : 4) {
    if (race.time(kernels.matmul_many[index], rows) < race.time(kernels.matmul[index], rows)) {
      return rows;
    }
  }
  return kMostRows;
}

}  // namespace

const std::array<int64_t, kNumPanelTypes>& measure_min_many_rows(const KernelTable& kernels) {
  static std::mutex mutex;
  static std::map<const KernelTable*, std::array<int64_t, kNumPanelTypes>> known;
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = known.try_emplace(&kernels);
  if (is_new) {
    for (int type = 0; type < kNumPanelTypes; ++type) {
      entry->second[static_cast<size_t>(type)] = measure(kernels, static_cast<PanelType>(type));
    }
  }
  return entry->second;
}

}  // namespace tgi
