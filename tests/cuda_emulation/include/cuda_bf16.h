// bfloat16 of the emulation: storage, conversions and simple arithmetic.
#pragma once

#include <cuda_runtime.h>

#include "emulation/narrow_floats.h"

TGI_EMULATED_NARROW_FLOAT(
    __nv_bfloat16, __nv_bfloat162, __nv_bfloat16_raw, bf16_from_float, bf16_to_float)
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

constexpr float __bfloat162float(__nv_bfloat16 x) {
  return static_cast<float>(x);
}
constexpr __nv_bfloat16 __float2bfloat16_rn(float x) {
  return {x};
}
constexpr __nv_bfloat16 __float2bfloat16(float x) {
  return {x};
}
constexpr unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) {
  return static_cast<__nv_bfloat16_raw>(x).x;
}
constexpr __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  return {__nv_bfloat16_raw{bits}};
}
constexpr __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {x, y};
}
constexpr __nv_bfloat162 __float22bfloat162_rn(float2 x) {
  return {x.x, x.y};
}
constexpr __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) {
  return {x, y};
}
constexpr float2 __bfloat1622float2(__nv_bfloat162 x) {
  return {static_cast<float>(x.x), static_cast<float>(x.y)};
}
constexpr __nv_bfloat162 __hmul2(__nv_bfloat162 x, __nv_bfloat162 y) {
  return {x.x * y.x, x.y * y.y};
}
constexpr __nv_bfloat162 __hsub2(__nv_bfloat162 x, __nv_bfloat162 y) {
  return {x.x - y.x, x.y - y.y};
}
