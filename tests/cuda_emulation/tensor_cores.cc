// cp.async, ldmatrix and mma for emulated threads.
#include <link.h>
#include <ptx_emulation.h>

#include <cstring>

#include "emulation/narrow_floats.h"
#include "tests/cuda_emulation/block_runner.h"

namespace tgi::cuda_emulation {
namespace {

// The thread-local storage that a module has for this host thread, where it holds these bytes.
struct Storage {
  uintptr_t wanted_first, wanted_last;
  uintptr_t first = 0, last = 0;  // nowhere
};
Storage find_thread_local_storage(const void* pointer, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  Storage search{address, address + bytes};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& out = *static_cast<Storage*>(data);
        const auto first = reinterpret_cast<uintptr_t>(info->dlpi_tls_data);
        if (first == 0) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          if (info->dlpi_phdr[i].p_type != PT_TLS) continue;
          const uintptr_t last = first + info->dlpi_phdr[i].p_memsz;
          if (out.wanted_first < first || out.wanted_last > last) continue;
          out.first = first;
          out.last = last;
          return 1;
        }
        return 0;
      },
      &search);
  return search;
}

struct MmaOperands {
  uint32_t a[4];
  uint32_t b[2];
  float d[4];
};

template <float (*kDecode)(uint16_t)>
void multiply(std::byte* operands) {
  auto* lanes = reinterpret_cast<MmaOperands*>(operands);
  float a[16][16], b[16][8], d[16][8];
  const auto low = [](uint32_t pair) { return kDecode(static_cast<uint16_t>(pair)); };
  const auto high = [](uint32_t pair) { return kDecode(static_cast<uint16_t>(pair >> 16)); };
  for (int lane = 0; lane < 32; ++lane) {
    const MmaOperands& from = lanes[lane];
    const int group = lane / 4;
    const int column = 2 * (lane % 4);
    for (int i = 0; i < 4; ++i) {
      const int row = group + (i % 2) * 8;
      const int first = column + (i / 2) * 8;
      a[row][first] = low(from.a[i]);
      a[row][first + 1] = high(from.a[i]);
    }
    for (int i = 0; i < 2; ++i) {
      b[column + 8 * i][group] = low(from.b[i]);
      b[column + 8 * i + 1][group] = high(from.b[i]);
    }
    d[group][column] = from.d[0];
    d[group][column + 1] = from.d[1];
    d[group + 8][column] = from.d[2];
    d[group + 8][column + 1] = from.d[3];
  }
  for (int row = 0; row < 16; ++row) {
    for (int k = 0; k < 16; ++k) {
      for (int column = 0; column < 8; ++column) d[row][column] += a[row][k] * b[k][column];
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane / 4;
    const int column = 2 * (lane % 4);
    float* to = lanes[lane].d;
    to[0] = d[group][column];
    to[1] = d[group][column + 1];
    to[2] = d[group + 8][column];
    to[3] = d[group + 8][column + 1];
  }
}

void multiply_with(void (*complete)(std::byte*),
                   float (&d)[4],
                   const uint32_t (&a)[4],
                   const uint32_t (&b)[2]) {
  MmaOperands mine;
  std::memcpy(mine.a, a, sizeof(a));
  std::memcpy(mine.b, b, sizeof(b));
  std::memcpy(mine.d, d, sizeof(d));
  const MmaOperands* lanes = exchange(Collective::kMma, ~0u, mine, complete);
  std::memcpy(d, lanes[lane_index()].d, sizeof(d));
}

union MatrixRow {
  const std::byte* address;
  uint16_t elements[8];
};

}  // namespace

void check_aligned(const void* pointer, size_t bytes, const char* what) {
  if (reinterpret_cast<uintptr_t>(pointer) % bytes == 0) return;
  fail_in_kernel("%s: the address %p is not a multiple of %zu", what, pointer, bytes);
}

bool BlockRunner::in_shared(const void* pointer, size_t bytes) const {
  if (in_dynamic_shared(pointer, bytes)) return true;
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (address >= static_first_ && address + bytes <= static_last_) return true;
  const Storage storage = find_thread_local_storage(pointer, bytes);
  if (storage.first == 0) return false;
  static_first_ = storage.first;
  static_last_ = storage.last;
  return true;
}

void copy_async_16(void* to_shared, const void* from_global, bool valid) {
  BlockRunner* runner = BlockRunner::running();
  if (runner == nullptr) fail_in_kernel("only a kernel may call cp_async_16");
  check_aligned(to_shared, 16, "cp_async_16 to shared memory");
  check_aligned(from_global, 16, "cp_async_16 from global memory");
  if (!runner->in_shared(to_shared, 16)) {
    fail_in_kernel(
        "cp_async_16 to %p, which is not in the %zu bytes of dynamic shared memory at %p",
        to_shared, runner->dynamic_shared_bytes(), static_cast<void*>(runner->dynamic_shared()));
  }
  if (valid && runner->in_dynamic_shared(from_global, 16)) {
    fail_in_kernel("cp_async_16 from %p, which is shared memory", from_global);
  }
  runner->copy_async(to_shared, from_global, valid);
}

// What is there between start and arrival is undefined: a NaN for those who look too early, or who
// still need what was there before.
void BlockRunner::copy_async(void* to, const void* from, bool valid) {
  std::memset(to, 0xff, 16);
  current_->copies.push_back({static_cast<std::byte*>(to), static_cast<const std::byte*>(from),
                              valid, current_->num_groups});
}

// As late as can be, which is when its group is waited for.
void BlockRunner::copy_async_wait(int num_pending) {
  Thread& me = *current_;
  const uint64_t pending = static_cast<uint64_t>(num_pending);
  const uint64_t arrived = me.num_groups > pending ? me.num_groups - pending : 0;
  size_t count = 0;
  while (count < me.copies.size() && me.copies[count].group < arrived) {
    const PendingCopy& copy = me.copies[count++];
    if (copy.valid) {
      std::memcpy(copy.to, copy.from, 16);
    } else {
      std::memset(copy.to, 0, 16);
    }
  }
  me.copies.erase(me.copies.begin(), me.copies.begin() + static_cast<std::ptrdiff_t>(count));
}

void load_matrices(uint32_t (&out)[4], const void* row_in_shared, bool transposed) {
  check_aligned(row_in_shared, 16, "ldmatrix");
  BlockRunner* runner = BlockRunner::running();
  if (runner == nullptr) fail_in_kernel("only a kernel may call ldmatrix");
  if (!runner->in_shared(row_in_shared, 16)) {
    fail_in_kernel("ldmatrix from %p, which is not shared memory", row_in_shared);
  }
  MatrixRow mine;
  mine.address = static_cast<const std::byte*>(row_in_shared);
  // Read for all lanes at once, as one of them may write there as soon as it goes on.
  const MatrixRow* rows = exchange(Collective::kLdmatrix, ~0u, mine, [](std::byte* operands) {
    auto* all = reinterpret_cast<MatrixRow*>(operands);
    for (int i = 0; i < 32; ++i) std::memcpy(all[i].elements, all[i].address, 16);
  });
  const unsigned lane = lane_index();
  const unsigned group = lane / 4;
  const unsigned pair = 2 * (lane % 4);
  for (unsigned m = 0; m < 4; ++m) {
    const MatrixRow* matrix = rows + 8 * m;
    const uint16_t low = transposed ? matrix[pair].elements[group] : matrix[group].elements[pair];
    const uint16_t high =
        transposed ? matrix[pair + 1].elements[group] : matrix[group].elements[pair + 1];
    out[m] = static_cast<uint32_t>(high) << 16 | low;
  }
}

void multiply_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  multiply_with(multiply<bf16_to_float>, d, a, b);
}
void multiply_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  multiply_with(multiply<f16_to_float>, d, a, b);
}

}  // namespace tgi::cuda_emulation
