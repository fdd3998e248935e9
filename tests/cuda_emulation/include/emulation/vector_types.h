// The small vectors of CUDA and the qualifiers of its C++.
#pragma once

#include <cstddef>
#include <cstdint>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __restrict__ __restrict
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// Blocks run one after the other on a host thread, so each host thread needs one copy.
#define __shared__ static thread_local

#define TGI_EMULATED_VECTOR(type, name, alignment)                   \
  struct name##2 {                                                   \
    type x, y;                                                       \
  }                                                                  \
  __attribute__((aligned(2 * sizeof(type))));                        \
  struct name##3 {                                                   \
    type x, y, z;                                                    \
  };                                                                 \
  struct name##4 {                                                   \
    type x, y, z, w;                                                 \
  }                                                                  \
  __attribute__((aligned(alignment)));                               \
  constexpr name##2 make_##name##2(type x, type y) {                 \
    return {x, y};                                                   \
  }                                                                  \
  constexpr name##3 make_##name##3(type x, type y, type z) {         \
    return {x, y, z};                                                \
  }                                                                  \
  constexpr name##4 make_##name##4(type x, type y, type z, type w) { \
    return {x, y, z, w};                                             \
  }
TGI_EMULATED_VECTOR(signed char, char, 4)
TGI_EMULATED_VECTOR(unsigned char, uchar, 4)
TGI_EMULATED_VECTOR(short, short, 8)
TGI_EMULATED_VECTOR(unsigned short, ushort, 8)
TGI_EMULATED_VECTOR(int, int, 16)
TGI_EMULATED_VECTOR(unsigned, uint, 16)
TGI_EMULATED_VECTOR(float, float, 16)
TGI_EMULATED_VECTOR(long long, longlong, 16)
TGI_EMULATED_VECTOR(unsigned long long, ulonglong, 16)
TGI_EMULATED_VECTOR(double, double, 16)
#undef TGI_EMULATED_VECTOR

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
