// The sixteen-lane types and the functions on them: accuracy against the true values, and the same
// bits from every instruction set of this machine.
#include "engine/cpu/kernels/vector_math.h"

#include <cmath>

#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/kernels/f32x16_generic.h"
#include "engine/cpu/kernels/kernel_table.h"
#include "engine/tensor/half.h"
#include "tests/catch.h"
#include "tests/conformance/harness.h"

namespace tgi {
namespace {

using Function = void (*)(const float*, float*, int64_t);

// Every float whose bits are a multiple of `step` and whose magnitude is at most `limit`, and the
// special ones.
Floats sweep(float limit, uint32_t step) {
  const float infinity = std::numeric_limits<float>::infinity();
  Floats out = {0.0F,     -0.0F,      infinity, -infinity, std::nanf(""), 88.72283F,
                88.7229F, -87.33654F, -87.4F,   -103.0F,   1e-45F,        -1e-40F,
                0.625F,   1.0F,       -1.0F,    3.92F,     3.93F};
  for (uint32_t bits = 0; bits < 0x7F800000U; bits += step) {
    const float x = std::bit_cast<float>(bits);
    if (x > limit) break;
    out.push_back(x);
    out.push_back(-x);
  }
  return out;
}

// The sign and payload of a NaN are nobody's promise.
Floats with_one_nan(Floats x) {
  for (float& value : x) {
    if (std::isnan(value)) value = std::nanf("");
  }
  return x;
}

Floats apply(Function function, const Floats& x) {
  Floats out(x.size());
  function(x.data(), out.data(), static_cast<int64_t>(x.size()));
  return out;
}

// The distance from the true value, in units of the last place of a float.
double ulps(float got, double wanted) {
  if (std::isnan(wanted)) return std::isnan(got) ? 0.0 : 1e9;
  const auto rounded = static_cast<float>(wanted);
  if (got == rounded) return 0.0;
  int exponent = 0;
  std::frexp(wanted, &exponent);
  return std::abs(static_cast<double>(got) - wanted) / std::ldexp(1.0, exponent - 24);
}

double worst_ulps(Function function, const Floats& x, double (*truth)(double), double least) {
  const Floats got = apply(function, x);
  double worst = 0.0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double wanted = truth(static_cast<double>(x[i]));
    if (std::abs(wanted) < least) {
      // Below the normal numbers: zero, or the value itself.
      if (std::abs(got[i]) > least) worst = 1e9;
      continue;
    }
    worst = std::max(worst, ulps(got[i], wanted));
  }
  return worst;
}

constexpr double kLeastNormal = 0x1p-126;

double exp_less_tangent(double x) {
  if (std::abs(x) > 1e-3) return std::expm1(x) - x;
  return x * x * (1.0 / 2 + x * (1.0 / 6 + x * (1.0 / 24 + x / 120)));  // where doubles cancel
}

}  // namespace

TEST_CASE("exp, tanh, erf and exp_less_tangent are within a few units of the last place") {
  for (const std::string_view isa : available_isas()) {
    INFO(isa);
    const KernelTable::Math& math = find_kernels(isa).math;
    const auto exponential = [](double x) { return std::exp(x); };
    const auto tangent = [](double x) { return std::tanh(x); };
    const auto error = [](double x) { return std::erf(x); };
    CHECK(worst_ulps(math.exp, sweep(200.0F, 1009), exponential, kLeastNormal) < 1.0);
    CHECK(worst_ulps(math.tanh, sweep(50.0F, 1009), tangent, kLeastNormal) < 2.0);
    CHECK(worst_ulps(math.erf, sweep(50.0F, 1009), error, kLeastNormal) < 3.0);
    Floats below = sweep(200.0F, 1009);
    std::erase_if(below, [](float x) { return x > 0.0F; });
    CHECK(worst_ulps(math.exp_less_tangent, below, exp_less_tangent, kLeastNormal) < 3.0);
  }
}

TEST_CASE("exp of zero is one and of minus infinity zero") {
  // Attention relies on it: a tile in which a row sees nothing changes none of its bits.
  for (const std::string_view isa : available_isas()) {
    const Floats got =
        apply(find_kernels(isa).math.exp, {0.0F, -0.0F, -std::numeric_limits<float>::infinity()});
    CHECK(got == Floats{1.0F, 1.0F, 0.0F});
  }
}

TEST_CASE("every instruction set gives the same bits of exp, tanh and erf") {
  const KernelTable::Math& generic = find_kernels("generic").math;
  const Floats x = sweep(300.0F, 3001);
  for (const std::string_view isa : available_isas()) {
    INFO(isa);
    const KernelTable::Math& math = find_kernels(isa).math;
    CHECK(same_bits(with_one_nan(apply(math.exp, x)), with_one_nan(apply(generic.exp, x))));
    CHECK(same_bits(with_one_nan(apply(math.tanh, x)), with_one_nan(apply(generic.tanh, x))));
    CHECK(same_bits(with_one_nan(apply(math.erf, x)), with_one_nan(apply(generic.erf, x))));
  }
}

TEST_CASE("the generic multiply-add rounds once, as the instruction does") {
  Random random(17);
  const auto any_float = [&] {
    const auto upper = static_cast<uint32_t>(random.integer(0, 0xFFFF)) << 16;
    return std::bit_cast<float>(upper | static_cast<uint32_t>(random.integer(0, 0xFFFF)));
  };
  const auto check = [](float a, float b, float c) {
    const float got = F32x16Generic::fma_once(a, b, c);
    const float wanted = std::fma(a, b, c);
    if (std::isnan(wanted)) return std::isnan(got);
    return std::bit_cast<uint32_t>(got) == std::bit_cast<uint32_t>(wanted);
  };
  int num_wrong = 0;
  for (int i = 0; i < 2000000; ++i) {
    const float a = any_float();
    const float b = any_float();
    // Near the product, where cancellation and halfway cases are.
    const float near = std::bit_cast<float>(std::bit_cast<uint32_t>(-a * b) +
                                            static_cast<uint32_t>(random.integer(-3, 3)));
    const float far = a * b * 0x1p-24F * static_cast<float>(random.integer(1, 3));
    num_wrong += check(a, b, any_float()) ? 0 : 1;
    num_wrong += check(a, b, near) ? 0 : 1;
    num_wrong += check(a, b, far) ? 0 : 1;
    num_wrong += check(random.value(), random.value(), random.value() * 0x1p-120F) ? 0 : 1;
  }
  CHECK(num_wrong == 0);
  // Halfway between two floats but for a bit far below: rounding twice would get it wrong.
  CHECK(check(1.0F + 0x1p-12F, 1.0F + 0x1p-12F, 0x1p-60F));
  CHECK(check(1.0F + 0x1p-12F, 1.0F + 0x1p-12F, -0x1p-60F));
}

TEST_CASE("16-bit floats survive the way to f32 and back, and round to nearest even") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const bool f16_nan = (half & 0x7FFFU) > 0x7C00U;
    const bool bf16_nan = (half & 0x7FFFU) > 0x7F80U;
    if (f16_nan ? !std::isnan(f16_to_f32(half)) : f32_to_f16(f16_to_f32(half)) != half) FAIL(bits);
    if (bf16_nan ? !std::isnan(bf16_to_f32(half)) : f32_to_bf16(bf16_to_f32(half)) != half) {
      FAIL(bits);
    }
  }
  CHECK(f16_to_f32(0x3C00) == 1.0F);
  CHECK(f16_to_f32(0x0001) == 0x1p-24F);
  CHECK(f16_to_f32(0xFBFF) == -65504.0F);
  CHECK(f32_to_f16(65519.0F) == 0x7BFF);
  CHECK(f32_to_f16(65520.0F) == 0x7C00);
  CHECK(f32_to_f16(1.0F + 0x1p-11F) == 0x3C00);      // a tie goes to the even one
  CHECK(f32_to_f16(1.0F + 3 * 0x1p-11F) == 0x3C02);  // and here upwards
  CHECK(f32_to_f16(0x1p-25F) == 0x0000);
  CHECK(f32_to_f16(0x1.8p-25F) == 0x0001);
  CHECK(f32_to_bf16(1.0F + 0x1p-8F) == 0x3F80);
  CHECK(f32_to_bf16(1.0F + 3 * 0x1p-8F) == 0x3F82);
  CHECK(f32_to_bf16(std::numeric_limits<float>::max()) == 0x7F80);
}

}  // namespace tgi
