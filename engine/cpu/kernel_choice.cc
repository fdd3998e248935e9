// See kernel_choice.h.
#include "engine/cpu/kernel_choice.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>

#include "engine/cpu/cpu_device_internal.h"
#include "engine/cpu/host_resources.h"

namespace tgi {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kRaceCols = 1536;
constexpr int64_t kRacePanels = 4;  // of a task
// Between 1 and 32 rows the plain kernel's time grows with the rows, that of tiles in two steps.
constexpr int64_t kRaceRows[] = {1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64};
constexpr int64_t kMostRaceRows = 64;

// The same block with both kernels in turn, so that a slow moment meets both.
class Race {
 public:
  Race(const KernelTable& kernels, PanelLayout layout)
      : few_(kernels.matmul[static_cast<size_t>(layout.type)]),
        many_(kernels.matmul_many[static_cast<size_t>(layout.type)]),
        layout_(layout),
        panels_(map_memory(static_cast<size_t>(kRacePanels * layout.bytes()), "kernel choice")),
        x_(map_memory(static_cast<size_t>((kMostRaceRows + kExtraPreparedRows) * kStride),
                      "kernel choice")),
        out_(map_memory(kMostRaceRows * kRacePanels * 16 * 4, "kernel choice")) {}

  bool many_wins(int64_t num_rows) {
    double few = std::numeric_limits<double>::infinity();
    double many = few;
    for (int round = 0; round < 5; ++round) {
      few = std::min(few, seconds(few_, num_rows));
      many = std::min(many, seconds(many_, num_rows));
    }
    return many < few;
  }

 private:
  static constexpr int64_t kStride = prepared_row_bytes(kRaceCols * 4);

  // Zeros take as long as other numbers.
  double seconds(const MatmulKernel& kernel, int64_t num_rows) {
    const auto start = std::chrono::steady_clock::now();
    kernel.block({.x = static_cast<const std::byte*>(x_.data()),
                  .x_stride_bytes = kStride,
                  .num_rows = num_rows,
                  .k = kRaceCols,
                  .group_size = layout_.group_size,
                  .head = layout_.head,
                  .panels = static_cast<const std::byte*>(panels_.data()),
                  .panel_bytes = layout_.bytes(),
                  .num_panels = kRacePanels,
                  .out = static_cast<float*>(out_.data()),
                  .out_stride = kRacePanels * 16,
                  .num_outputs = kRacePanels * 16});
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    return taken.count();
  }

  const MatmulKernel& few_;
  const MatmulKernel& many_;
  PanelLayout layout_;
  Buffer panels_;
  Buffer x_;
  Buffer out_;
};

int64_t measure(const KernelTable& kernels, PanelLayout layout) {
  layout.cols = kRaceCols;
  Race race(kernels, layout);
  int64_t least = kNever;
  for (auto rows = std::rbegin(kRaceRows); rows != std::rend(kRaceRows); ++rows) {
    if (!race.many_wins(*rows)) break;
    least = *rows;
  }
  return least;
}

}  // namespace

int64_t measure_min_many_rows(const KernelTable& kernels, const PanelLayout& layout) {
  if (kernels.matmul_many[static_cast<size_t>(layout.type)].block == nullptr) return kNever;
  if (!many_takes(layout)) return kNever;
  using Kind = std::tuple<const KernelTable*, PanelType, int64_t, HeadScales, bool, bool>;
  static std::mutex mutex;
  static std::map<Kind, int64_t> known;
  const Kind kind{&kernels,           layout.type,        layout.group_size,
                  layout.head.scales, layout.head.minima, layout.head.zero_points};
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = known.try_emplace(kind, kNever);
  if (is_new) entry->second = measure(kernels, layout);
  return entry->second;
}

}  // namespace tgi
