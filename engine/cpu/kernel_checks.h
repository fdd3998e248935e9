// A small problem for every kernel of a table, and what the generic kernels make of it: an
// instruction set must give the same bits before anybody's model runs on it. Takes a few
// milliseconds. For use by one thread; what a wrong kernel does to the process is for
// kernel_trial.h to survive.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cpu/kernels/kernel_table.h"
#include "engine/tensor/tensor.h"

namespace tgi {

struct KernelDifference {
  int64_t index = 0;  // of the numbers that the kernel gave
  float expected = 0.0F;
  float got = 0.0F;
};

class KernelChecks {
 public:
  // What a check makes with the kernels of a table; empty where the table has no such kernel.
  // Allocates nothing and takes no lock.
  using Run = std::function<std::span<const float>(const KernelTable&)>;

  // Runs every check with `reference`. Throws kOutOfMemory.
  explicit KernelChecks(const KernelTable& reference);

  int size() const { return static_cast<int>(checks_.size()); }
  // The kernel and what it is tried with: "matmul_many of int4 in groups of 32, 33 rows".
  const std::string& name(int check) const { return checks_[static_cast<size_t>(check)].name; }

  // REQUIRES: of one table the checks run in order, as matrices are multiplied with as they were
  // packed before. Allocates nothing and takes no lock, so that it may run in the child of a
  // process with threads.
  std::optional<KernelDifference> run(int check, const KernelTable& kernels) const;

  // For those who add checks: memory of `count` floats, zeroed, at the start of a line; and a
  // check, whose results are those of `reference` or begin those that are `expected`.
  std::span<float> floats(int64_t count);
  std::span<std::byte> bytes(int64_t count);
  std::span<float> random_floats(int64_t count);  // of all signs and mantissas, below 1
  std::span<const float> add(std::string name, Run run);
  void add(std::string name, std::span<const float> expected, Run run);

 private:
  struct Check {
    std::string name;
    std::span<const float> expected;
    Run run;
  };

  const KernelTable& reference_;
  std::vector<Buffer> memory_;
  size_t used_ = 0;  // bytes of the last of memory_
  uint32_t random_ = 1;
  std::vector<Check> checks_;
};

// The checks of packing and multiplying, of attention, of kernels that go over rows of numbers, of
// layers that carry a state, and of streams.
void add_matmul_checks(KernelChecks& checks);
void add_attention_checks(KernelChecks& checks);
void add_row_checks(KernelChecks& checks);
void add_state_checks(KernelChecks& checks);
void add_stream_checks(KernelChecks& checks);

}  // namespace tgi
