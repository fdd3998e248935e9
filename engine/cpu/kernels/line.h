// The three line formats of engine/cpu/panel_layout.h as seen by kernels: one column of 16 weights
// as 16 float lanes.
#pragma once

#include <cstddef>

#include "engine/tensor/tensor.h"

namespace tgi {

struct LineF32 {
  static constexpr int64_t kBytes = 128;
  template <typename V>
  static V even(const std::byte* line) {
    return V::load(reinterpret_cast<const float*>(line));
  }
  template <typename V>
  static V odd(const std::byte* line) {
    return V::load(reinterpret_cast<const float*>(line + 64));
  }
};

struct LineF16 {
  static constexpr int64_t kBytes = 64;
  template <typename V>
  static V even(const std::byte* line) {
    return V::load_f16(line);
  }
  template <typename V>
  static V odd(const std::byte* line) {
    return V::load_f16(line + 32);
  }
};

struct LineBf16 {
  static constexpr int64_t kBytes = 64;
  template <typename V>
  static V even(const std::byte* line) {
    return V::load_even_bf16(line);
  }
  template <typename V>
  static V odd(const std::byte* line) {
    return V::load_odd_bf16(line);
  }
};

}  // namespace tgi
