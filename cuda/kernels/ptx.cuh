// The few instructions that CUDA C++ has no name for. Everything else that kernels use of the
// hardware is plain CUDA C++, so that these functions are all that a host emulation of the kernels
// has to replace.
//
// PTX ISA 8.x: lop3 (9.7.8.7), cp.async (9.7.9.25), ldmatrix (9.7.14.5.15), mma (9.7.14.5.14), ex2
// (9.7.3.19), griddepcontrol (9.7.13.13).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "cuda/kernels/types.cuh"

#if defined(TGI_CUDA_EMULATION)
#include <ptx_emulation.h>
#else

namespace tgi::cuda {

// The dynamic shared memory of the block, 16-byte aligned. Its size is given at the launch.
__device__ __forceinline__ std::byte* dynamic_shared() {
  extern __shared__ uint4 tgi_dynamic_shared[];
  return reinterpret_cast<std::byte*>(tgi_dynamic_shared);
}

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// 16 bytes from global to shared memory without registers, both 16-byte aligned; zeros when not
// `valid` (then `from` is not read). Arrives when cp_async_wait and, for the other threads, a
// barrier have followed.
__device__ __forceinline__ void cp_async_16(void* to_shared,
                                            const void* from_global,
                                            bool valid = true) {
  const int size = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to_shared)),
               "l"(from_global), "r"(size)
               : "memory");
}
__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}
// Waits until at most `kPending` of this thread's committed groups are still on their way.
template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
}

// Four 8x8 matrices of 16-bit elements. Lane i gives the address of row i % 8 of matrix i / 8 (16
// bytes, aligned); lane i gets of matrix m the elements (row i / 4, columns 2 * (i % 4) and + 1) in
// out[m].
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&out)[4], const void* row_in_shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(shared_address(row_in_shared))
               : "memory");
}
// As above, each matrix transposed: lane i gets (rows 2 * (i % 4) and + 1, column i / 4).
__device__ __forceinline__ void ldmatrix_x4_transposed(uint32_t (&out)[4],
                                                       const void* row_in_shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(shared_address(row_in_shared))
               : "memory");
}

// d (16, 8) += a (16, 16) b (16, 8), T is bf16 or f16, sums in f32. With g = lane / 4 and t = lane
// % 4: a[0]: (g, 2t..), a[1]: (g + 8, 2t..), a[2]: (g, 2t + 8..), a[3]: (g + 8, 2t + 8..); b[0]:
// (rows 2t.., column g), b[1]: (rows 2t + 8.., column g); d[0], d[1]: (g, 2t..), d[2], d[3]: (g +
// 8, 2t..).
template <typename T>
__device__ __forceinline__ void mma_16x8x16(float (&d)[4],
                                            const uint32_t (&a)[4],
                                            const uint32_t (&b)[2]);
template <>
__device__ __forceinline__ void mma_16x8x16<bf16>(float (&d)[4],
                                                  const uint32_t (&a)[4],
                                                  const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <>
__device__ __forceinline__ void mma_16x8x16<f16>(float (&d)[4],
                                                 const uint32_t (&a)[4],
                                                 const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// (a & b) | c in one instruction, which the compiler makes two of when b and c are constants.
__device__ __forceinline__ uint32_t and_or(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t out;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;\n" : "=r"(out) : "r"(a), "r"(b), "r"(c));
  return out;
}

// 2^x to 2 ulp; 0 where that is below the normal numbers, and for -infinity.
__device__ __forceinline__ float fast_exp2(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(out) : "f"(x));
  return out;
}

// 16 bytes that nobody reads again soon: past L1, first out of L2. `from` is 16-byte aligned and
// never written while the kernel runs (weights).
__device__ __forceinline__ uint4 load_streaming(const void* from) {
  uint4 out;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(out.x), "=r"(out.y), "=r"(out.z), "=r"(out.w)
               : "l"(from));
  return out;
}

// Programmatic dependent launch: before the wait a kernel may only touch what no kernel before it
// writes (weights). launch_dependents lets the next kernel start; its wait still ends only after
// this kernel is done and its writes are seen.
__device__ __forceinline__ void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n" ::: "memory");
#endif
}
__device__ __forceinline__ void launch_next_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
#endif
}

}  // namespace tgi::cuda

#endif
