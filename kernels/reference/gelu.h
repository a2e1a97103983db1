// Gelu in its form with tanh, and its slope, which has limits at the infinities.
#pragma once

#include <cmath>
#include <numbers>

namespace stepscope::reference {

// y = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
inline double geluTanh(double x) {
  const double k = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  return 0.5 * x * (1 + std::tanh(k * (x + 0.044715 * x * x * x)));
}

// dy / dx; 1 and 0 at the infinities.
inline double geluTanhSlope(double x) {
  if (std::isinf(x)) return x > 0 ? 1 : 0;
  const double k = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, half = std::cosh(k * (x + 0.044715 * x * x * x));
  const double bell = std::isinf(half) ? 0 : x * k * (1 + 3 * 0.044715 * x * x) / (half * half);
  return 0.5 * (1 + std::tanh(k * (x + 0.044715 * x * x * x)) + bell);
}

}  // namespace stepscope::reference
