// Functions of one float without branches, so that a loop over them becomes vector code. Coefficients: weighted near-minimax
// fits (Lawson iteration, rounded to float from the lowest order up) over the ranges named below.
//
// Largest error against the f64 function, in units of the last place of the float result, as
// tests/kernels/vector_math_test.cpp holds it: Exp 3, Log 3, Tanh 4, Erf 4, Sigmoid 4, Elu 5, Softplus 4 (measured with FMA:
// 0.95, 0.78, 1.2, 0.99, 2.0, 1.4, 1.7). NaN gives NaN, infinities and zeros as std::. The Gelu forms are the formula in
// float: absolute error below 4e-7 max(1, |x|).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#define SS_INLINE [[gnu::always_inline]] inline

namespace stepscope::cpu {

// e^x = 2^n e^r, |r| <= ln(2) / 2, e^r = 1 + r + r^2 q(r).
SS_INLINE float expOf(float value) {
  constexpr float kRound = 12582912.0F;         // 1.5 * 2^23: adding it rounds to an integer, which stands in the low bits
  float x = value < -104.0F ? -104.0F : value;  // a NaN passes both, and all that follows
  x = x > 89.0F ? 89.0F : x;
  const float shifted = x * 1.44269504088896341F + kRound, n = shifted - kRound;
  const float r = (x - n * 0.693359375F) - n * -2.12194440e-4F;  // ln(2) in two parts, the first exact times n
  float q = 0.00138198235F;
  q = q * r + 0.00836868677F;
  q = q * r + 0.0416682772F;
  q = q * r + 0.166665211F;
  q = q * r + 0.49999994F;
  const float p = (r * r) * q + r + 1.0F;
  // In two factors, so that results near the ends of the range are rounded once.
  const std::int32_t k = std::bit_cast<std::int32_t>(shifted) - 0x4b400000, half = k >> 1;
  return p * std::bit_cast<float>((half + 127) << 23) * std::bit_cast<float>((k - half + 127) << 23);
}

// x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); log(1 + f) = f - f^2 / 2 + f^3 P(f).
SS_INLINE float logOf(float x) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool tiny = x < 0x1p-126F;
  const auto bits =
      std::bit_cast<std::uint32_t>(tiny ? x * 0x1p23F : x);  // unsigned: negative numbers, whose result is replaced, wrap
  const std::int32_t e = static_cast<std::int32_t>(bits - 0x3f3504f3U) >> 23;
  const float f = std::bit_cast<float>(bits - (static_cast<std::uint32_t>(e) << 23)) - 1.0F;
  const auto k = static_cast<float>(tiny ? e - 23 : e);
  float p = 0.0675095618F;
  p = p * f - 0.116714492F;
  p = p * f + 0.11883568F;
  p = p * f - 0.124060318F;
  p = p * f + 0.142203271F;
  p = p * f - 0.166679963F;
  p = p * f + 0.20002073F;
  p = p * f - 0.250000089F;
  p = p * f + 0.333333135F;
  const float square = f * f;
  const float y = k * 0.693359375F + (f + (square * (f * p - 0.5F) + k * -2.12194440e-4F));
  const float special = x == 0 ? -kInfinity : x < 0 ? std::numeric_limits<float>::quiet_NaN() : x;
  return x > 0 && x < kInfinity ? y : special;
}

// e^x - 1: its own series near 0, where the difference would lose digits.
SS_INLINE float expm1Of(float x) {
  float q = 0.00138198235F;
  q = q * x + 0.00836868677F;
  q = q * x + 0.0416682772F;
  q = q * x + 0.166665211F;
  q = q * x + 0.49999994F;
  const float near = (x * x) * q + x, far = expOf(x) - 1.0F;
  return x == 0 ? x : std::fabs(x) < 0.34657359F ? near : far;
}

// log(1 + x) for 0 <= x <= 1: the logarithm of the rounded sum and what the rounding took.
SS_INLINE float log1pOf(float x) {
  const float sum = 1.0F + x;
  return logOf(sum) + (x - (sum - 1.0F)) / sum;
}

// log(1 + exp(x)), without overflow.
SS_INLINE float softplusOf(float x) { return (x > 0 ? x : 0.0F) + log1pOf(expOf(-std::fabs(x))); }

// Near 0 a series in x^2, elsewhere through the exponential.
SS_INLINE float tanhOf(float x) {
  const float size = std::fabs(x), square = x * x;
  float p = -0.00571620278F;
  p = p * square + 0.0206497088F;
  p = p * square - 0.0537431724F;
  p = p * square + 0.133314863F;
  p = p * square - 0.333332837F;
  const float near = size + size * (square * p);
  const float far = 1.0F - 2.0F / (expOf(2.0F * size) + 1.0F);
  return x != x ? x : std::copysign(size < 0.625F ? near : far, x);
}

// |x| < 0.93: x + x P(x^2); beyond: 1 - e^Q(|x|), which is 1 from 4 on.
SS_INLINE float erfOf(float x) {
  const float size = std::fabs(x), square = x * x;
  float p = 7.99664922e-05F;
  p = p * square - 0.000804976968F;
  p = p * square + 0.00519240508F;
  p = p * square - 0.0268557314F;
  p = p * square + 0.112836257F;
  p = p * square - 0.376126289F;
  p = p * square + 0.128379166F;
  const float t = size > 4.0F ? 4.0F : size;
  float q = -2.12177511e-05F;
  q = q * t + 0.000435890659F;
  q = q * t - 0.00417801132F;
  q = q * t + 0.0251377672F;
  q = q * t - 0.108308479F;
  q = q * t - 0.633321106F;
  q = q * t - 1.12952769F;
  q = q * t + 0.000177334965F;
  return x != x ? x : std::copysign(size < 0.93F ? size + size * p : 1.0F - expOf(q), x);
}

// Through the power that is at most 1, so that small results keep their digits.
SS_INLINE float sigmoidOf(float x) {
  const float power = expOf(-std::fabs(x));
  return (x < 0 ? power : 1.0F) / (1.0F + power);
}

// The normal distribution: e^(-x^2 / 2) and Phi(x), whose tail is that power times a polynomial in 1 / (1 + 0.28 |x|), as
// Abramowitz and Stegun 7.1.26 have it, with one term more: 1e-8 besides the rounding.
struct Normal {
  float power, phi;
};
SS_INLINE Normal normalOf(float x) {
  const float power = expOf(-0.5F * (x * x)), t = 1.0F / (1.0F + 0.28F * std::fabs(x));
  float q = -0.10580745F;
  q = q * t + 0.38987084F;
  q = q * t - 0.23698843F;
  q = q * t + 0.26890618F;
  q = q * t + 0.06749831F;
  q = q * t + 0.11652054F;
  const float tail = q * t * power;
  return {power, x < 0 ? tail : 1.0F - tail};
}
// Twice the argument of tanh: (1 + tanh(u)) / 2 is the logistic function of 2 u.
SS_INLINE float geluExponentOf(float x) { return x * (1.59576912F + 0.0713548163F * (x * x)); }

// Gelu, exact and with tanh.
SS_INLINE float geluErfOf(float x) { return x * normalOf(x).phi; }
SS_INLINE float geluTanhOf(float x) { return x * sigmoidOf(geluExponentOf(x)); }
// Slopes; beyond 40 they are 0 and 1, and an infinity must meet no zero.
SS_INLINE float geluErfSlopeOf(float x) {
  const float size = x < -40.0F ? -40.0F : x > 40.0F ? 40.0F : x;
  const Normal n = normalOf(size);
  return n.phi + size * (n.power * 0.398942280F);
}
SS_INLINE float geluTanhSlopeOf(float x) {
  const float size = x < -40.0F ? -40.0F : x > 40.0F ? 40.0F : x;
  const float power = expOf(-std::fabs(geluExponentOf(size))), share = 1.0F / (1.0F + power), rest = power * share;
  return (size < 0 ? rest : share) + size * (share * rest) * (1.59576912F + 0.214064449F * (size * size));
}

}  // namespace stepscope::cpu
