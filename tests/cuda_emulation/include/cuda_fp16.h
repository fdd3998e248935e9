// float16 of the emulation: storage, conversions and simple arithmetic.
#pragma once

#include <cuda_runtime.h>

#include "emulation/narrow_floats.h"

TGI_EMULATED_NARROW_FLOAT(__half, __half2, __half_raw, f16_from_float, f16_to_float)
using half = __half;
using half2 = __half2;

constexpr float __half2float(__half x) {
  return static_cast<float>(x);
}
constexpr __half __float2half_rn(float x) {
  return {x};
}
constexpr __half __float2half(float x) {
  return {x};
}
constexpr unsigned short __half_as_ushort(__half x) {
  return static_cast<__half_raw>(x).x;
}
constexpr __half __ushort_as_half(unsigned short bits) {
  return {__half_raw{bits}};
}
constexpr __half2 __floats2half2_rn(float x, float y) {
  return {x, y};
}
constexpr __half2 __float22half2_rn(float2 x) {
  return {x.x, x.y};
}
constexpr __half2 __halves2half2(__half x, __half y) {
  return {x, y};
}
constexpr float2 __half22float2(__half2 x) {
  return {static_cast<float>(x.x), static_cast<float>(x.y)};
}
constexpr __half2 __hmul2(__half2 x, __half2 y) {
  return {x.x * y.x, x.y * y.y};
}
constexpr __half2 __hsub2(__half2 x, __half2 y) {
  return {x.x - y.x, x.y - y.y};
}
