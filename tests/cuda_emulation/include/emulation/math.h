// Bits, loads with hints, and the arithmetic that CUDA has more of than <cmath>. The fast functions
// (__expf ...) are exact here: the rounding of the hardware is not emulated.
#pragma once

#include <math.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

inline int __popc(unsigned x) {
  return std::popcount(x);
}
inline int __popcll(unsigned long long x) {
  return std::popcount(x);
}
inline int __clz(int x) {
  return std::countl_zero(static_cast<unsigned>(x));
}
inline int __clzll(long long x) {
  return std::countl_zero(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) {
  return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1;
}
inline int __ffsll(long long x) {
  return x == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(x)) + 1;
}
inline unsigned __brev(unsigned x) {
  unsigned out = 0;
  for (int i = 0; i < 32; ++i) out |= (x >> i & 1u) << (31 - i);
  return out;
}
// The bytes that the nibbles of `selector` name out of those of x (0..3) and y (4..7); a nibble of
// 8 and more gives the sign of its byte eight times.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const uint64_t bytes = static_cast<uint64_t>(y) << 32 | x;
  unsigned out = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned nibble = selector >> 4 * i & 15u;
    auto byte = static_cast<unsigned>(bytes >> 8 * (nibble & 7u) & 0xffu);
    if (nibble >= 8) byte = (byte & 0x80u) != 0 ? 0xffu : 0u;
    out |= byte << 8 * i;
  }
  return out;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  const uint64_t both = static_cast<uint64_t>(high) << 32 | low;
  return static_cast<unsigned>(both << (shift & 31u) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  const uint64_t both = static_cast<uint64_t>(high) << 32 | low;
  return static_cast<unsigned>(both >> (shift & 31u));
}

inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
inline int __float_as_int(float x) {
  return std::bit_cast<int>(x);
}
inline float __uint_as_float(unsigned x) {
  return std::bit_cast<float>(x);
}
inline float __int_as_float(int x) {
  return std::bit_cast<float>(x);
}
inline long long __double_as_longlong(double x) {
  return std::bit_cast<long long>(x);
}
inline double __longlong_as_double(long long x) {
  return std::bit_cast<double>(x);
}
inline float __int2float_rn(int x) {
  return static_cast<float>(x);
}
inline float __uint2float_rn(unsigned x) {
  return static_cast<float>(x);
}
inline int __float2int_rn(float x) {
  return static_cast<int>(std::lrint(x));
}
inline int __float2int_rz(float x) {
  return static_cast<int>(x);
}
inline int __float2int_rd(float x) {
  return static_cast<int>(std::floor(x));
}
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(static_cast<uint64_t>(x) * y >> 32);
}
inline int __mulhi(int x, int y) {
  return static_cast<int>(static_cast<int64_t>(x) * y >> 32);
}
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  __extension__ typedef unsigned __int128 Wide;
  return static_cast<unsigned long long>(static_cast<Wide>(x) * y >> 64);
}

// glibc declares functions of some of these names, so they are macros.
#define __expf(x) std::exp(static_cast<float>(x))
#define __exp10f(x) std::pow(10.0f, static_cast<float>(x))
#define __logf(x) std::log(static_cast<float>(x))
#define __log2f(x) std::log2(static_cast<float>(x))
#define __log10f(x) std::log10(static_cast<float>(x))
#define __powf(x, y) std::pow(static_cast<float>(x), static_cast<float>(y))
#define __sinf(x) std::sin(static_cast<float>(x))
#define __cosf(x) std::cos(static_cast<float>(x))
#define __tanf(x) std::tan(static_cast<float>(x))
inline float rsqrtf(float x) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x)));
}
inline double rsqrt(double x) {
  return 1.0 / std::sqrt(x);
}
inline float __frsqrt_rn(float x) {
  return rsqrtf(x);
}
inline float __fsqrt_rn(float x) {
  return std::sqrt(x);
}
inline float __fdividef(float x, float y) {
  return x / y;
}
inline float __fdiv_rn(float x, float y) {
  return x / y;
}
inline float __frcp_rn(float x) {
  return 1.0f / x;
}
inline float __fadd_rn(float x, float y) {
  return x + y;
}
inline float __fsub_rn(float x, float y) {
  return x - y;
}
inline float __fmul_rn(float x, float y) {
  return x * y;
}
inline float __fmaf_rn(float x, float y, float z) {
  return std::fma(x, y, z);
}
inline float __saturatef(float x) {
  return x > 0.0f ? std::min(x, 1.0f) : 0.0f;  // a NaN becomes 0
}

// As in CUDA: of a NaN and a number the number, and integers of two types in their common type.
template <typename T, typename U>
requires(std::is_arithmetic_v<T>&& std::is_arithmetic_v<U>) constexpr std::common_type_t<T, U> max(
    T x, U y) {
  using C = std::common_type_t<T, U>;
  if constexpr (std::is_floating_point_v<C>) {
    return std::fmax(static_cast<C>(x), static_cast<C>(y));
  } else {
    return std::max(static_cast<C>(x), static_cast<C>(y));
  }
}
template <typename T, typename U>
requires(std::is_arithmetic_v<T>&& std::is_arithmetic_v<U>) constexpr std::common_type_t<T, U> min(
    T x, U y) {
  using C = std::common_type_t<T, U>;
  if constexpr (std::is_floating_point_v<C>) {
    return std::fmin(static_cast<C>(x), static_cast<C>(y));
  } else {
    return std::min(static_cast<C>(x), static_cast<C>(y));
  }
}

#define TGI_EMULATED_LOAD(name) \
  template <typename T>         \
  T name(const T* from) {       \
    return *from;               \
  }
TGI_EMULATED_LOAD(__ldg)
TGI_EMULATED_LOAD(__ldca)
TGI_EMULATED_LOAD(__ldcg)
TGI_EMULATED_LOAD(__ldcs)
TGI_EMULATED_LOAD(__ldlu)
TGI_EMULATED_LOAD(__ldcv)
#undef TGI_EMULATED_LOAD
#define TGI_EMULATED_STORE(name)                           \
  template <typename T>                                    \
  void name(T* to, const std::type_identity_t<T>& value) { \
    *to = value;                                           \
  }
TGI_EMULATED_STORE(__stwb)
TGI_EMULATED_STORE(__stcg)
TGI_EMULATED_STORE(__stcs)
TGI_EMULATED_STORE(__stwt)
#undef TGI_EMULATED_STORE

inline long long clock64() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}
