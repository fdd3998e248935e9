// Kernels that fault, hang or lie: the process survives all of them, says which it was, and takes
// the next instruction set.
#include "engine/cpu/kernel_trial.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/kernel_sets.h"
#include "tests/catch.h"

namespace tgi {
namespace {

const KernelChecks& checks() {
  static const KernelChecks made(generic_kernels());
  return made;
}

// A whole table, that of the matrix unit in plain C++.
KernelTable sound_table() {
  KernelTable out = generic_kernels();
  out.isa = "sound";
  out.matmul_many = out.matmul;
  return out;
}

// A kernel of any kind that does nothing but what must not be.
using AnyKernel = void (*)();

[[gnu::noinline]] void illegal() {
#if defined(__x86_64__)
  asm volatile("ud2");
#else
  ::raise(SIGILL);
#endif
}
[[gnu::noinline]] void wild() {
  uintptr_t address = 64;
  asm volatile("" : "+r"(address));  // the compiler would see through it
  *reinterpret_cast<volatile int*>(address) = 1;
}
[[gnu::noinline]] void endless() {
  while (true) asm volatile("");
}

// The kernels of a table lie behind its name, one pointer beside the other.
constexpr size_t kFirstKernel = offsetof(KernelTable, matmul);
constexpr size_t kNumKernels = (sizeof(KernelTable) - kFirstKernel) / sizeof(AnyKernel);

void put_kernel(KernelTable& table, size_t index, AnyKernel kernel) {
  std::memcpy(reinterpret_cast<std::byte*>(&table) + kFirstKernel + index * sizeof kernel, &kernel,
              sizeof kernel);
}

// Lies in one bit of one number.
void lying_norm(const NormRow& row) {
  generic_kernels().rms_norm(row);
  uint32_t bits = 0;
  std::memcpy(&bits, row.out + 5, sizeof bits);
  bits ^= 1U;
  std::memcpy(row.out + 5, &bits, sizeof bits);
}

// Right for few rows, wrong by a bit in the last of many.
void lying_matmul(const MatmulBlock& block) {
  generic_kernels().matmul[static_cast<size_t>(PanelType::kInt4)].block(block);
  if (block.num_rows < 33) return;
  float& last = block.out[32 * block.out_stride + block.num_outputs - 1];
  uint32_t bits = 0;
  std::memcpy(&bits, &last, sizeof bits);
  bits ^= 1U;
  std::memcpy(&last, &bits, sizeof bits);
}

void overwriting_matmul(const MatmulBlock& block) {
  generic_kernels().matmul[static_cast<size_t>(PanelType::kF32)].block(block);
  block.out[block.num_outputs] = 1.0F;  // behind the row
}

const KernelTable& illegal_table() {
  static const KernelTable table = [] {
    KernelTable out = sound_table();
    out.rms_norm = reinterpret_cast<void (*)(const NormRow&)>(illegal);
    return out;
  }();
  return table;
}
const KernelTable& wild_table() {
  static const KernelTable table = [] {
    KernelTable out = sound_table();
    out.matmul_many[static_cast<size_t>(PanelType::kBF16)].block =
        reinterpret_cast<void (*)(const MatmulBlock&)>(wild);
    return out;
  }();
  return table;
}
const KernelTable& endless_table() {
  static const KernelTable table = [] {
    KernelTable out = sound_table();
    out.attention[2] = reinterpret_cast<void (*)(const AttentionBlock&)>(endless);
    return out;
  }();
  return table;
}
const KernelTable& lying_table() {
  static const KernelTable table = [] {
    KernelTable out = sound_table();
    out.rms_norm = lying_norm;
    return out;
  }();
  return table;
}
const KernelTable& honest_table() {
  static const KernelTable table = sound_table();
  return table;
}

// Not to wait for an endless kernel longer than need be, and yet many times what a sound table
// takes here: sanitizers make it tens of times slower, and other tests run beside it.
const TrialLimits& short_limits() {
  static const TrialLimits limits = [] {
    const auto start = std::chrono::steady_clock::now();
    TGI_CHECK(!try_kernels(checks(), honest_table()));
    const auto taken = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - start);
    return TrialLimits{.processor_time = std::max(std::chrono::milliseconds(100), taken * 4)};
  }();
  return limits;
}

bool always() {
  return true;
}
bool never() {
  return false;
}

}  // namespace

TEST_CASE("every instruction set of this machine stands its trial") {
  for (const std::string_view isa : available_isas()) {
    INFO(isa);
    const auto fault = try_kernels(checks(), find_kernels(isa));
    INFO((fault ? fault->kernel + ": " + fault->reason : ""));
    CHECK_FALSE(fault);
  }
  CHECK_FALSE(try_kernels(checks(), sound_table()));
}

TEST_CASE("every kernel of a table is tried: whichever faults is noticed") {
  KernelTable table = sound_table();
  static_assert(kFirstKernel + kNumKernels * sizeof(AnyKernel) == sizeof(KernelTable));
  for (size_t i = 0; i < kNumKernels; ++i) {
    KernelTable broken = table;
    put_kernel(broken, i, illegal);
    INFO("kernel " << i << " of the table");
    const auto fault = try_kernels(checks(), broken);
    REQUIRE(fault);
    CHECK(fault->reason == "illegal instruction (SIGILL)");
  }
}

TEST_CASE("faults, hangs and lies of a kernel are told by its name") {
  const auto illegal_one = try_kernels(checks(), illegal_table());
  REQUIRE(illegal_one);
  CHECK(illegal_one->kernel == "rms_norm");
  CHECK(illegal_one->reason == "illegal instruction (SIGILL)");

  const auto wild_one = try_kernels(checks(), wild_table());
  REQUIRE(wild_one);
  CHECK(wild_one->kernel == "matmul_many of bf16, 1 rows");
  CHECK(wild_one->reason == "segmentation fault (SIGSEGV)");

  const auto endless_one = try_kernels(checks(), endless_table(), short_limits());
  REQUIRE(endless_one);
  CHECK(endless_one->kernel == "attention over bf16, 3 rows");
  CHECK(endless_one->reason == "did not end within " +
                                   std::to_string(short_limits().processor_time.count()) +
                                   " ms of processor time");

  const auto lying_one = try_kernels(checks(), lying_table());
  REQUIRE(lying_one);
  CHECK(lying_one->kernel == "rms_norm");
  CHECK_THAT(lying_one->reason,
             Catch::StartsWith("number 5 is ") && Catch::Contains(", from plain C++ "));

  KernelTable table = sound_table();
  table.matmul_many[static_cast<size_t>(PanelType::kInt4)].block = lying_matmul;
  const auto last_bit = try_kernels(checks(), table);
  REQUIRE(last_bit);
  CHECK(last_bit->kernel == "matmul_many of int4 in groups of 32, 33 rows");

  table = sound_table();
  table.matmul[static_cast<size_t>(PanelType::kF32)].block = overwriting_matmul;
  const auto overwriting = try_kernels(checks(), table);
  REQUIRE(overwriting);
  CHECK_THAT(overwriting->kernel, Catch::StartsWith("matmul of f32"));
}

TEST_CASE("a child that sleeps is ended too") {
  KernelTable table = sound_table();
  table.add = [](const float*, const float*, float, float*, int64_t) { ::pause(); };
  const auto fault = try_kernels(checks(), table, {.time = std::chrono::milliseconds(2000)});
  REQUIRE(fault);
  CHECK(fault->kernel == "add");
  CHECK(fault->reason == "did not end within 2000 ms");
}

TEST_CASE("the set that works is taken, the better ones are left out by name") {
  const KernelSet sets[] = {{"a", never, honest_table},          {"b", always, illegal_table},
                            {"c", always, wild_table},           {"d", always, endless_table},
                            {"e", always, lying_table},          {"f", always, honest_table},
                            {"generic", always, generic_kernels}};
  KernelChooser chooser(sets, short_limits());
  const ChosenKernels chosen = chooser.choose("auto");
  CHECK(chosen.kernels == &honest_table());
  REQUIRE(chosen.left_out.size() == 4);
  CHECK(chosen.left_out[0].isa == "b");
  CHECK(chosen.left_out[0].kernel == "rms_norm");
  CHECK(chosen.left_out[0].reason == "illegal instruction (SIGILL)");
  CHECK(chosen.left_out[1].isa == "c");
  CHECK(chosen.left_out[2].isa == "d");
  CHECK(chosen.left_out[3].isa == "e");
  // Another device of the process is told the same, without another trial.
  const auto start = std::chrono::steady_clock::now();
  CHECK(chooser.choose("auto").left_out.size() == 4);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds(100));

  CHECK(chooser.choose("f").left_out.empty());
  CHECK(chooser.choose("generic").kernels == &generic_kernels());
  CHECK_THROWS_WITH(chooser.choose("b"),
                    "instruction set b does not work on this machine: rms_norm: illegal "
                    "instruction (SIGILL); leave --cpu-isa out for the best that does");
  CHECK_THROWS_WITH(chooser.choose("a"), Catch::Contains("is not available on this machine"));
}

TEST_CASE("when all sets fail the generic one is left") {
  const KernelSet sets[] = {{"b", always, illegal_table},
                            {"e", always, lying_table},
                            {"generic", always, generic_kernels}};
  KernelChooser chooser(sets);
  const auto device = make_cpu_device({.num_threads = 1, .chooser = &chooser});
  CHECK(device->info().isa == "generic");
  REQUIRE(device->info().left_out.size() == 2);
  CHECK(device->info().left_out[1].isa == "e");
  CHECK_THROWS_WITH(make_cpu_device({.isa = "e", .num_threads = 1, .chooser = &chooser}),
                    Catch::Contains("does not work on this machine: rms_norm: number 5 is"));
}

TEST_CASE("a trial is safe while other threads run, and in a process that ignores its children") {
  std::atomic<bool> stop = false;
  std::vector<std::thread> busy;
  for (int i = 0; i < 3; ++i) {
    busy.emplace_back([&] {
      while (!stop) delete[] new char[4096];
    });
  }
  for (int i = 0; i < 5; ++i) {
    CHECK_FALSE(try_kernels(checks(), honest_table()));
    CHECK(try_kernels(checks(), lying_table()));
  }
  stop = true;
  for (std::thread& thread : busy) thread.join();

  const auto before = ::signal(SIGCHLD, SIG_IGN);
  CHECK_FALSE(try_kernels(checks(), honest_table()));
  const auto fault = try_kernels(checks(), illegal_table());
  ::signal(SIGCHLD, before);
  REQUIRE(fault);
  CHECK(fault->kernel == "rms_norm");
}

TEST_CASE("the child holds none of the process's files and may leave no core") {
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  static int file;  // a kernel captures nothing
  file = pipe[1];
  KernelTable table = sound_table();
  // Lies when it may write to the file or leave a core.
  table.add = [](const float* x, const float* y, float m, float* out, int64_t count) {
    generic_kernels().add(x, y, m, out, count);
    rlimit core{};
    ::getrlimit(RLIMIT_CORE, &core);
    const bool holds = ::fcntl(file, F_GETFD) >= 0;
    if (holds || core.rlim_cur != 0) out[0] = 12345.0F;
  };
  const auto fault = try_kernels(checks(), table);
  INFO((fault ? fault->kernel + ": " + fault->reason : ""));
  CHECK_FALSE(fault);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

}  // namespace tgi
