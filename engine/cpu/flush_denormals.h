// While it lives, the thread computes with denormals as 0, in and out: what the bf16 units of
// processors always do, and what keeps ordinary instructions from slowing down a hundredfold.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#endif

namespace tgi {

class FlushDenormals {
 public:
#if defined(__x86_64__)
  FlushDenormals() : saved_(_mm_getcsr()) {
    _mm_setcsr(saved_ | 0x8040U);
  }
  ~FlushDenormals() {
    _mm_setcsr(saved_);
  }
#elif defined(__aarch64__)
  FlushDenormals() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(saved_ | uint64_t{1} << 24));
  }
  ~FlushDenormals() {
    asm volatile("msr fpcr, %0" : : "r"(saved_));
  }
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__x86_64__)
  unsigned saved_;
#elif defined(__aarch64__)
  uint64_t saved_ = 0;
#endif
};

}  // namespace tgi
