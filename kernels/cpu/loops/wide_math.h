// Functions of one double for results that are rounded to float, without branches, so that a loop over them becomes vector
// code. Relative error below 1e-10 over the ranges named: far below half a unit in the last place of a float. Beyond the
// range of a function the result has no meaning; NaN gives NaN where nothing else is said.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/loops/vector_math.h"

namespace stepscope::cpu {

// x positive and finite; any other x gives a number without meaning, also for NaN.
SS_INLINE double logOfPositive(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);  // unsigned: what is not positive, whose result is not used, wraps
  const std::int64_t e = static_cast<std::int64_t>(bits - 0x3fe6a09e667f3bcdU) >> 52;
  const double m = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(e) << 52));
  const double z = (m - 1) / (m + 1), s = z * z;  // log(m) = 2 atanh(z), |z| < 0.1716
  double p = 1.0 / 15;
  p = p * s + 1.0 / 13;
  p = p * s + 1.0 / 11;
  p = p * s + 1.0 / 9;
  p = p * s + 1.0 / 7;
  p = p * s + 1.0 / 5;
  p = p * s + 1.0 / 3;
  return static_cast<double>(e) * 0.69314718055994530942 + 2 * (z + z * s * p);
}

// Arguments beyond the range of float results are cut.
SS_INLINE double expOfDouble(double value) {
  double x = value < -200 ? -200 : value;
  x = x > 200 ? 200 : x;
  constexpr double kRound = 6755399441055744.0;
  const double shifted = x * 1.44269504088896340736 + kRound;
  const double n = shifted - kRound, r = x - n * 0.69314718055994530942;
  double p = 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1;
  p = p * r + 1;
  const std::int64_t k = std::bit_cast<std::int64_t>(shifted) - std::bit_cast<std::int64_t>(kRound);
  return p * std::bit_cast<double>((k + 1023) << 52);
}

// Largest |x| of sineAndCosine: multiples of the first part of pi/2 are exact up to there.
inline constexpr float kLargestAngle = 1e6F;

// Both of one angle.
struct SineAndCosine {
  double sine, cosine;
};
// x = n pi/2 + r, |r| <= pi/4, pi/2 in two parts; then Taylor series of r.
SS_INLINE SineAndCosine sineAndCosine(double x) {
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer, which stands in the low bits
  const double shifted = x * 0.63661977236758134308 + kRound, n = shifted - kRound;
  const double r = (x - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34, s = r * r;
  double p = 1.0 / 6227020800;
  p = p * s - 1.0 / 39916800;
  p = p * s + 1.0 / 362880;
  p = p * s - 1.0 / 5040;
  p = p * s + 1.0 / 120;
  p = p * s - 1.0 / 6;
  const double sine = r * (1 + s * p);  // keeps the sign of a zero
  double q = 1.0 / 479001600;
  q = q * s - 1.0 / 3628800;
  q = q * s + 1.0 / 40320;
  q = q * s - 1.0 / 720;
  q = q * s + 1.0 / 24;
  q = q * s - 0.5;
  const double cosine = 1 + s * q;
  const auto quadrant = std::bit_cast<std::uint64_t>(shifted);
  const bool swapped = (quadrant & 1) != 0;
  const double a = swapped ? cosine : sine, b = swapped ? sine : cosine;
  // Quadrants 2 and 3 turn the sine's sign, 1 and 2 the cosine's.
  return {std::bit_cast<double>(std::bit_cast<std::uint64_t>(a) ^ ((quadrant & 2) << 62)),
          std::bit_cast<double>(std::bit_cast<std::uint64_t>(b) ^ (((quadrant + 1) & 2) << 62))};
}

// All x, infinities too. |x| > 1 through 1 / |x|, then above tan(pi/8) through (t - 1) / (t + 1), then the series.
SS_INLINE double atanOf(double x) {
  const double size = std::fabs(x), t = size > 1 ? 1 / size : size;
  const bool upper = t > 0.41421356237309503;
  const double z = upper ? (t - 1) / (t + 1) : t, s = z * z;
  double p = -1.0 / 23;
  p = p * s + 1.0 / 21;
  p = p * s - 1.0 / 19;
  p = p * s + 1.0 / 17;
  p = p * s - 1.0 / 15;
  p = p * s + 1.0 / 13;
  p = p * s - 1.0 / 11;
  p = p * s + 1.0 / 9;
  p = p * s - 1.0 / 7;
  p = p * s + 1.0 / 5;
  p = p * s - 1.0 / 3;
  const double near = z + z * s * p, half = upper ? 0.78539816339744830962 + near : near;
  return std::copysign(size > 1 ? 1.57079632679489661923 - half : half, x);
}

// Arc sine and arc cosine; NaN outside -1..1.
SS_INLINE double asinOf(double x) { return std::copysign(atanOf(std::fabs(x) / std::sqrt((1 - x) * (1 + x))), x); }
SS_INLINE double acosOf(double x) { return 2 * atanOf(std::sqrt((1 - x) / (1 + x))); }

// Near 0, where the difference of the powers would lose digits, the series; NaN passes.
SS_INLINE double sinhOf(double x) {
  const double size = std::fabs(x), s = x * x;
  double p = 1.0 / 39916800;
  p = p * s + 1.0 / 362880;
  p = p * s + 1.0 / 5040;
  p = p * s + 1.0 / 120;
  p = p * s + 1.0 / 6;
  const double power = expOfDouble(size), far = 0.5 * (power - 1 / power);
  return x != x ? x : std::copysign(size < 0.5 ? size + size * s * p : far, x);
}
SS_INLINE double coshOf(double x) {
  const double power = expOfDouble(std::fabs(x));
  return x != x ? x : 0.5 * (power + 1 / power);
}

// For floats, whose squares are finite.
SS_INLINE double asinhOf(double x) {
  const double size = std::fabs(x), s = x * x;
  double p = 231.0 / 13312;
  p = p * s - 63.0 / 2816;
  p = p * s + 35.0 / 1152;
  p = p * s - 5.0 / 112;
  p = p * s + 3.0 / 40;
  p = p * s - 1.0 / 6;
  const double far = logOfPositive(size + std::sqrt(s + 1));
  const double y = size < 0.125 ? size + size * s * p : far;
  return size < std::numeric_limits<double>::infinity() ? std::copysign(y, x) : x;
}
// NaN below 1.
SS_INLINE double acoshOf(double x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double y = logOfPositive(x + std::sqrt((x - 1) * (x + 1)));
  return x >= 1 ? (x < kInfinity ? y : x) : std::numeric_limits<double>::quiet_NaN();
}
// Infinite at -1 and 1, NaN beyond.
SS_INLINE double atanhOf(double x) {
  const double size = std::fabs(x), s = x * x;
  double p = 1.0 / 13;
  p = p * s + 1.0 / 11;
  p = p * s + 1.0 / 9;
  p = p * s + 1.0 / 7;
  p = p * s + 1.0 / 5;
  p = p * s + 1.0 / 3;
  const double far = 0.5 * logOfPositive((1 + size) / (1 - size));
  const double y = size < 0.125 ? size + size * s * p : far;
  const double edge = size == 1 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  return std::copysign(size < 1 ? y : edge, x);
}

}  // namespace stepscope::cpu
