// exp, log, tanh, erf and others on sixteen lanes, from exactly rounded operations only, so that
// every instruction set gives the same bits. Errors against the true value
// (tests/cpu/vector_math_test): exp below 1 ulp, tanh 2, exp_less_tangent and erf 3. Polynomials
// are minimax fits of our own.
#pragma once

#include <cstdint>
#include <limits>

namespace tgi {

template <typename V>
V polynomial(V /*x*/, float c0) {
  return V::set1(c0);
}

// c0 + x * (c1 + x * (...)), Horner.
template <typename V, typename... Rest>
V polynomial(V x, float c0, Rest... rest) {
  return V::fma(x, polynomial(x, rest...), V::set1(c0));
}

// Results below the smallest normal number are zero. NaN stays NaN.
template <typename V>
V vector_exp(V x) {
  const V shift = V::set1(0x1.8p23F);
  const V shifted = V::fma(x, V::set1(1.44269504F), shift);
  const V n = shifted - shift;
  V r = V::fma(n, V::set1(-0x1.62e43p-1F), x);  // the upper and the lower part of log 2
  r = V::fma(n, V::set1(0x1.05c610p-29F), r);
  const V tail =
      polynomial(r, 0.5F, 0.16666667F, 0.041666266F, 0.008333265F, 0.0013946304F, 0.00019918129F);
  const V e = V::fma(r * r, tail, r) + V::set1(1.0F);
  V result = e.add_exponent(shifted);
  result = V::select(V::less(x, V::set1(-87.33654F)), V::zero(), result);
  result = V::select(V::less(V::set1(88.72283F), x),
                     V::set1(std::numeric_limits<float>::infinity()), result);
  return V::select(V::is_nan(x), x, result);
}

// exp(x) - 1 - x for x <= 0: its distance from the tangent at 0, near which nothing cancels.
template <typename V>
V vector_exp_less_tangent(V x) {
  const V series = polynomial(x, 0.5F, 0.16666667F, 0.04166665F, 0.008333198F, 0.0013883598F,
                              0.00019727598F, 2.3424657e-05F, 1.8529111e-06F);
  const V far = (vector_exp(x) - V::set1(1.0F)) - x;
  return V::select(V::less(x, V::set1(-1.0F)), far, x * x * series);
}

// 2^t to about 2^-18 of itself, for t <= 1, also minus infinity, and weights that are rounded to
// bf16 next. Below -126 it is 0 or counts as 0.
template <typename V>
V vector_exp2_coarse(V t) {
  V whole, rest;
  t.split_nearest(whole, rest);
  const V power = polynomial(rest, 0.9999993F, 0.6931218F, 0.24024744F, 0.055917863F, 0.009570102F);
  return power.times_power_of_two(whole);
}

// log(1 + f) for f in [sqrt(1/2) - 1, sqrt(2) - 1].
template <typename V>
V vector_log1p_near_zero(V f) {
  const V tail = polynomial(f, 0.33333313F, -0.2500001F, 0.20002119F, -0.16667996F, 0.14219545F,
                            -0.124055736F, 0.11888209F, -0.11675772F, 0.06746685F);
  const V square = f * f;
  return V::fma(square * f, tail, V::fma(square, V::set1(-0.5F), f));
}

// -log(1 - u) for u in (0, 1), exact to a few ulp also where u is tiny: an exponential variate from
// a uniform one.
template <typename V>
V vector_exponential(V u) {
  const V rest = V::set1(1.0F) - u;
  V mantissa, exponent;
  rest.split(mantissa, exponent);
  // Where nothing was split off, 1 - u need not be rounded at all.
  const V f = V::select(V::equal(exponent, V::zero()), -u, mantissa - V::set1(1.0F));
  const V log = V::fma(exponent, V::set1(0x1.62e43p-1F), vector_log1p_near_zero(f));
  return -V::fma(exponent, V::set1(-0x1.05c610p-29F), log);
}

template <typename V>
V vector_tanh(V x) {
  const V magnitude = x.abs();
  const V square = x * x;
  const V series = polynomial(square, -0.3333333F, 0.1333321F, -0.053947203F, 0.021702968F,
                              -0.008182674F, 0.002147537F);
  const V near_zero = V::fma(square * x, series, x);
  const V e = vector_exp(magnitude + magnitude);
  const V far = (V::set1(1.0F) - V::set1(2.0F) / (e + V::set1(1.0F))).with_sign_of(x);
  return V::select(V::less(magnitude, V::set1(0.625F)), near_zero, far);
}

template <typename V>
V vector_erf(V x) {
  const V magnitude = x.abs();
  const V square = x * x;
  const V near_zero = x * polynomial(square, 1.1283792F, -0.37612638F, 0.11283783F, -0.026865445F,
                                     0.005221075F, -0.0008484711F, 0.00011270544F, -9.680136e-06F);
  // erfc(|x|) = exp(-x^2) * q(t), t = 1 / (1 + |x| / 2)
  const V t = V::set1(1.0F) / V::fma(magnitude, V::set1(0.5F), V::set1(1.0F));
  const V q = polynomial(t, -0.00015757747F, 0.28496236F, 0.25937927F, 0.3488459F, -0.10569348F,
                         0.5657207F, -0.47277838F, 0.11977729F);
  const V erfc = vector_exp(-square) * q;
  const V far = V::select(V::less(V::set1(3.92F), magnitude), V::set1(1.0F), V::set1(1.0F) - erfc);
  return V::select(V::less(magnitude, V::set1(1.0F)), near_zero, far.with_sign_of(x));
}

}  // namespace tgi
