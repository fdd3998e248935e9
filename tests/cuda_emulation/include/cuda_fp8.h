// The 8-bit format e4m3 of the emulation: storage and conversions.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "emulation/narrow_floats.h"

using __nv_fp8_storage_t = unsigned char;

struct __nv_fp8_e4m3 {
  __nv_fp8_storage_t __x;

  __nv_fp8_e4m3() = default;
  constexpr explicit __nv_fp8_e4m3(float value)
      : __x(tgi::cuda_emulation::e4m3_from_float(value)) {}
  constexpr explicit __nv_fp8_e4m3(__half value) : __nv_fp8_e4m3(static_cast<float>(value)) {}
  constexpr explicit __nv_fp8_e4m3(__nv_bfloat16 value)
      : __nv_fp8_e4m3(static_cast<float>(value)) {}
  constexpr explicit operator float() const { return tgi::cuda_emulation::e4m3_to_float(__x); }
  constexpr explicit operator __half() const { return {static_cast<float>(*this)}; }
  constexpr explicit operator __nv_bfloat16() const { return {static_cast<float>(*this)}; }
};
