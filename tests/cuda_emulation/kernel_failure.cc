// What is said when a kernel does what it must not, and the functions of device code that only have
// to find the runner of their host thread.
#include <ptx_emulation.h>

#include <cstdio>
#include <cstdlib>

#include "tests/cuda_emulation/block_runner.h"
#include "tests/cuda_emulation/symbol_name.h"

namespace tgi::cuda_emulation {
namespace {

const char* name_of(Collective kind) {
  constexpr const char* kNames[] = {"__syncwarp", "a shuffle", "a vote", "a reduction of the warp",
                                    "ldmatrix",   "mma"};
  return kNames[static_cast<int>(kind)];
}

void append_threads(std::string& out, unsigned first, uint32_t lanes, const char* what) {
  if (lanes == 0) return;
  out += "\n  threads";
  for (unsigned i = 0; i < 32;) {
    if ((lanes >> i & 1u) == 0) {
      ++i;
      continue;
    }
    unsigned end = i;
    while (end < 32 && (lanes >> end & 1u) != 0) ++end;
    out += " " + std::to_string(first + i);
    if (end - i > 1) out += "-" + std::to_string(first + end - 1);
    i = end;
  }
  out += what;
}

}  // namespace

std::string BlockRunner::where() const {
  char out[256];
  std::snprintf(out, sizeof(out),
                ", block (%u, %u, %u) of (%u, %u, %u), thread (%u, %u, %u) of (%u, %u, %u)",
                blockIdx.x, blockIdx.y, blockIdx.z, gridDim.x, gridDim.y, gridDim.z, threadIdx.x,
                threadIdx.y, threadIdx.z, blockDim.x, blockDim.y, blockDim.z);
  return "kernel " + symbol_name(launch_->kernel) + out;
}

std::string BlockRunner::states() const {
  std::string out;
  for (unsigned i = 0; i * 32 < num_threads_; ++i) {
    const Warp& warp = warps_[i];
    const uint32_t waiting = warp.arrived | warp.at_barrier;
    append_threads(out, i * 32, warp.arrived,
                   (std::string(" wait at ") + name_of(warp.kind)).c_str());
    append_threads(out, i * 32, warp.at_barrier, " wait at __syncthreads");
    append_threads(out, i * 32, warp.ready, " can run");
    append_threads(out, i * 32, warp.present & ~waiting & ~warp.ready, " have left the kernel");
  }
  return out;
}

void BlockRunner::fail_deadlock() {
  fail_in_kernel("threads wait for others that never come:%s", states().c_str());
}

void BlockRunner::fail(const char* format, va_list arguments) {
  std::fprintf(stderr, "cuda emulation: %s: ", where().c_str());
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  std::fflush(stderr);
  std::abort();
}

void fail_in_kernel(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (BlockRunner* runner = BlockRunner::running()) runner->fail(format, arguments);
  std::fputs("cuda emulation: device code outside of a kernel: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  std::abort();
}

void check_launch(const KernelLaunch& launch, size_t shared_limit) {
  const uint64_t threads = uint64_t{launch.block.x} * launch.block.y * launch.block.z;
  const uint64_t blocks = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const char* complaint = nullptr;
  if (threads == 0 || blocks == 0) complaint = "a launch of nothing";
  if (threads > kMaxThreads || launch.block.z > 64) complaint = "too many threads in a block";
  if (launch.grid.x > 0x7fffffffu || launch.grid.y > 65535 || launch.grid.z > 65535) {
    complaint = "too large a grid";
  }
  if (launch.shared_bytes > shared_limit) complaint = "more shared memory than is allowed";
  if (complaint == nullptr) return;
  std::fprintf(stderr,
               "cuda emulation: kernel %s: %s: grid (%u, %u, %u), block (%u, %u, %u), %zu bytes of "
               "dynamic shared memory of %zu\n",
               symbol_name(launch.kernel).c_str(), complaint, launch.grid.x, launch.grid.y,
               launch.grid.z, launch.block.x, launch.block.y, launch.block.z, launch.shared_bytes,
               shared_limit);
  std::abort();
}

namespace {
BlockRunner& runner() {
  BlockRunner* out = BlockRunner::running();
  if (out == nullptr) fail_in_kernel("only a kernel may call this");
  return *out;
}
}  // namespace

std::byte* begin_collective(Collective kind, unsigned mask) {
  return runner().begin_collective(kind, mask);
}
void finish_collective(void (*complete)(std::byte*)) {
  runner().finish_collective(complete);
}
unsigned lane_index() {
  return runner().lane_index();
}
unsigned lanes_present() {
  return runner().lanes_present();
}
int block_barrier(Barrier kind, int predicate) {
  return runner().block_barrier(kind, predicate);
}
void yield_thread() {
  if (BlockRunner* out = BlockRunner::running()) out->yield_thread();
}
std::byte* dynamic_shared_memory() {
  return runner().dynamic_shared();
}
void copy_async_commit() {
  runner().copy_async_commit();
}
void copy_async_wait(int num_pending) {
  runner().copy_async_wait(num_pending);
}
void wait_for_previous() {
  runner().wait_for_previous();
}

}  // namespace tgi::cuda_emulation
