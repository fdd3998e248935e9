// Conversions of float16, bfloat16 and e4m3, each code and each border between two codes.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cmath>
#include <limits>

#include "tests/catch.h"

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// What a code of `mantissa` bits of mantissa means, by the definition of such formats; the codes of
// infinities and NaNs are not asked for.
double meaning(unsigned code, int mantissa, int bias, int bits) {
  const double sign = (code >> (bits - 1) & 1u) != 0 ? -1 : 1;
  const unsigned magnitude = code & ((1u << (bits - 1)) - 1u);
  const int exponent = static_cast<int>(magnitude >> mantissa);
  const double fraction = magnitude & ((1u << mantissa) - 1u);
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa);
  return sign * std::ldexp(fraction + std::ldexp(1.0, mantissa), exponent - bias - mantissa);
}

// `last` is the largest code of a finite value.
template <typename Encode, typename Decode>
void check_format(int mantissa, int bias, int bits, unsigned last, Encode encode, Decode decode) {
  const unsigned sign = 1u << (bits - 1);
  unsigned wrong = 0;
  for (unsigned code = 0; code <= last; ++code) {
    const float value = decode(code);
    wrong += value != meaning(code, mantissa, bias, bits);
    wrong += decode(code | sign) != -value || !std::signbit(decode(code | sign));
    wrong += encode(value) != code || encode(-value) != (code | sign);
    if (code == last) continue;
    const auto border = static_cast<float>((static_cast<double>(value) + decode(code + 1)) / 2);
    const unsigned even = code + (code & 1u);
    wrong += encode(border) != even || encode(-border) != (even | sign);
    wrong += encode(std::nextafter(border, 0.0f)) != code;
    wrong += encode(std::nextafter(border, kInfinity)) != code + 1;
  }
  CHECK(wrong == 0);
}

unsigned f16_bits(float x) {
  return __half_as_ushort(__float2half_rn(x));
}
unsigned bf16_bits(float x) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(x));
}
unsigned e4m3_bits(float x) {
  return __nv_fp8_e4m3(x).__x;
}
float from_e4m3(unsigned code) {
  __nv_fp8_e4m3 x;
  x.__x = static_cast<unsigned char>(code);
  return static_cast<float>(x);
}

}  // namespace

TEST_CASE("float16 is exact, rounds to even and knows infinity and NaN") {
  const auto decode = [](unsigned code) {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(code)));
  };
  check_format(10, 15, 16, 0x7bff, f16_bits, decode);
  CHECK(f16_bits(65519.996f) == 0x7bff);
  CHECK(f16_bits(65520.0f) == 0x7c00);
  CHECK(f16_bits(-1e30f) == 0xfc00);
  CHECK(f16_bits(-kInfinity) == 0xfc00);
  CHECK(f16_bits(1e-45f) == 0);
  CHECK(f16_bits(-0x1p-25f) == 0x8000);
  CHECK(decode(0x7c00) == kInfinity);
  CHECK(decode(0xfc00) == -kInfinity);
  for (unsigned code = 0x7c01; code < 0x8000; ++code) {
    REQUIRE((std::isnan(decode(code)) && std::isnan(decode(code | 0x8000u))));
  }
  CHECK(f16_bits(std::nanf("")) == 0x7fff);
}

TEST_CASE("bfloat16 is exact, rounds to even and knows infinity and NaN") {
  const auto decode = [](unsigned code) {
    return __bfloat162float(__ushort_as_bfloat16(static_cast<unsigned short>(code)));
  };
  check_format(7, 127, 16, 0x7f7f, bf16_bits, decode);
  CHECK(bf16_bits(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(bf16_bits(kInfinity) == 0x7f80);
  CHECK(bf16_bits(-kInfinity) == 0xff80);
  for (unsigned code = 0x7f81; code < 0x8000; ++code) REQUIRE(std::isnan(decode(code)));
  CHECK(bf16_bits(std::nanf("")) == 0x7fff);
}

TEST_CASE("e4m3 is exact, rounds to even and saturates") {
  check_format(3, 7, 8, 0x7e, e4m3_bits, from_e4m3);
  CHECK(from_e4m3(0x7e) == 448.0f);
  CHECK(e4m3_bits(449.0f) == 0x7e);
  CHECK(e4m3_bits(1e30f) == 0x7e);
  CHECK(e4m3_bits(kInfinity) == 0x7e);
  CHECK(e4m3_bits(-kInfinity) == 0xfe);
  CHECK(e4m3_bits(std::nanf("")) == 0x7f);
  CHECK(std::isnan(from_e4m3(0x7f)));
  CHECK(std::isnan(from_e4m3(0xff)));
}

TEST_CASE("arithmetic of 16-bit types rounds each result") {
  const __nv_bfloat16 large(256.0f), one(1.0f);
  CHECK(__bfloat162float(large + one) == 256.0f);  // 257 takes nine bits
  CHECK(__half2float(__half(2048.0f) + __half(1.0f)) == 2048.0f);
  const float2 both = __bfloat1622float2(__floats2bfloat162_rn(1.5f, -2.0f));
  CHECK((both.x == 1.5f && both.y == -2.0f));
}
