// Element types of device code and their conversions, under one set of names for both 16-bit types,
// so that a kernel is one template.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace tgi::cuda {

using bf16 = __nv_bfloat16;
using f16 = __half;
using f8 = __nv_fp8_e4m3;  // KV cache only

__device__ __forceinline__ float to_float(float x) {
  return x;
}
__device__ __forceinline__ float to_float(bf16 x) {
  return __bfloat162float(x);
}
__device__ __forceinline__ float to_float(f16 x) {
  return __half2float(x);
}
__device__ __forceinline__ float to_float(f8 x) {
  return static_cast<float>(x);
}

// Rounds to nearest, ties to even; f8 saturates at +-448.
template <typename T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ bf16 from_float<bf16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ __forceinline__ f16 from_float<f16>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ __forceinline__ f8 from_float<f8>(float x) {
  return f8(x);
}

// `N` neighbours, moved by one instruction: N * sizeof(T) is 4, 8 or 16 and the address a multiple
// of it.
template <typename T, int N>
struct alignas(sizeof(T) * N) Vector {
  T at[N];
};

template <typename T, int N>
__device__ __forceinline__ Vector<T, N> load(const T* from) {
  return *reinterpret_cast<const Vector<T, N>*>(from);
}

template <typename T, int N>
__device__ __forceinline__ void store(T* to, const Vector<T, N>& values) {
  *reinterpret_cast<Vector<T, N>*>(to) = values;
}

// Two values in one register, `low` at the lower address: what mma and ldmatrix work on. T: bf16 or
// f16.
template <typename T>
__device__ __forceinline__ uint32_t pack(float low, float high) {
  const Vector<T, 2> pair = {{from_float<T>(low), from_float<T>(high)}};
  return *reinterpret_cast<const uint32_t*>(&pair);
}

}  // namespace tgi::cuda
