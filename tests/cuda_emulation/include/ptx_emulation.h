// The functions of cuda/kernels/ptx.cuh for emulated kernels; their contracts are told there, and
// what of them can be checked is.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace tgi::cuda_emulation {
std::byte* dynamic_shared_memory();
void copy_async_16(void* to_shared, const void* from_global, bool valid);
void copy_async_commit();
void copy_async_wait(int num_pending);
void load_matrices(uint32_t (&out)[4], const void* row_in_shared, bool transposed);
void multiply_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
void multiply_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
void check_aligned(const void* pointer, size_t bytes, const char* what);
void wait_for_previous();
}  // namespace tgi::cuda_emulation

namespace tgi::cuda {

inline std::byte* dynamic_shared() {
  return cuda_emulation::dynamic_shared_memory();
}

inline void cp_async_16(void* to_shared, const void* from_global, bool valid = true) {
  cuda_emulation::copy_async_16(to_shared, from_global, valid);
}
inline void cp_async_commit() {
  cuda_emulation::copy_async_commit();
}
template <int kPending>
void cp_async_wait() {
  cuda_emulation::copy_async_wait(kPending);
}

inline void ldmatrix_x4(uint32_t (&out)[4], const void* row_in_shared) {
  cuda_emulation::load_matrices(out, row_in_shared, false);
}
inline void ldmatrix_x4_transposed(uint32_t (&out)[4], const void* row_in_shared) {
  cuda_emulation::load_matrices(out, row_in_shared, true);
}

template <typename T>
void mma_16x8x16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
template <>
inline void mma_16x8x16<__nv_bfloat16>(float (&d)[4],
                                       const uint32_t (&a)[4],
                                       const uint32_t (&b)[2]) {
  cuda_emulation::multiply_bf16(d, a, b);
}
template <>
inline void mma_16x8x16<__half>(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  cuda_emulation::multiply_f16(d, a, b);
}

inline uint32_t and_or(uint32_t a, uint32_t b, uint32_t c) {
  return (a & b) | c;
}

inline float fast_exp2(float x) {
  return x < -126.0f ? 0.0f : std::exp2(x);
}

inline uint4 load_streaming(const void* from) {
  cuda_emulation::check_aligned(from, 16, "load_streaming");
  return *static_cast<const uint4*>(from);
}

inline void wait_for_previous_kernel() {
  cuda_emulation::wait_for_previous();
}
inline void launch_next_kernel() {}

}  // namespace tgi::cuda
