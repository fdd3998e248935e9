// Which kernel is taken for how many rows, with tables whose second kernel always loses, always
// wins, or wins with one group size alone.
#include "engine/cpu/kernel_choice.h"

#include <chrono>
#include <limits>
#include <thread>

#include "tests/catch.h"

namespace tgi {
namespace {

constexpr auto kInt4 = static_cast<size_t>(PanelType::kInt4);
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

void take(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// As long for each row; the other: as long for any number of rows.
void few(const MatmulBlock& block) {
  take(std::chrono::microseconds(10 * block.num_rows));
}
void slow(const MatmulBlock& block) {
  take(std::chrono::microseconds(12 * block.num_rows));
}
void fast(const MatmulBlock&) {}
void flat(const MatmulBlock&) {
  take(std::chrono::microseconds(100));
}
void flat_in_large_groups(const MatmulBlock& block) {
  block.group_size == 128 ? flat(block) : slow(block);
}

KernelTable table(void (*many)(const MatmulBlock&)) {
  KernelTable out = generic_kernels();
  out.matmul[kInt4].block = few;
  out.matmul_many[kInt4] = {};
  out.matmul_many[kInt4].block = many;
  return out;
}

int64_t chosen(const KernelTable& kernels, int64_t group_size) {
  return measure_min_many_rows(kernels,
                               {.type = PanelType::kInt4, .cols = 4096, .group_size = group_size});
}

}  // namespace

TEST_CASE("a kernel for many rows that loses every race is never used, one that wins always is") {
  static const KernelTable none = table(nullptr);  // what was measured is kept by address
  static const KernelTable loser = table(slow);
  static const KernelTable winner = table(fast);
  for (const int64_t group_size : {32, 128}) {
    CHECK(chosen(none, group_size) == kNever);
    CHECK(chosen(loser, group_size) == kNever);
    CHECK(chosen(winner, group_size) == 1);
  }
}

TEST_CASE("a kernel for many rows is used from where it wins on, by group size") {
  static const KernelTable both = table(flat);
  CHECK(chosen(both, 64) == 12);
  static const KernelTable large = table(flat_in_large_groups);
  CHECK(chosen(large, 32) == kNever);
  CHECK(chosen(large, 128) == 12);
}

}  // namespace tgi
