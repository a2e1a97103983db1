// How far two tensors are apart as a whole: sums over pairs of elements, in f64.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "engine/snapshot/number_rule.h"

namespace stepscope {

struct TensorDistance {
  double difference = 0, found = 0, expected = 0, product = 0;  // squares, but for the product
  double largest = 0;                                           // distance of two elements
  std::int64_t notFinite = 0;                                   // pairs that differ and are not both finite

  void add(double a, double b) {
    largest = std::max(largest, numberDistance(a, b));
    if (!std::isfinite(a) || !std::isfinite(b)) {
      notFinite += !sameNumber(a, b);
      return;
    }
    difference += (a - b) * (a - b);
    found += a * a;
    expected += b * b;
    product += a * b;
  }
  void add(const TensorDistance& other) {
    difference += other.difference;
    found += other.found;
    expected += other.expected;
    product += other.product;
    largest = std::max(largest, other.largest);
    notFinite += other.notFinite;
  }
  // L2 norm of the difference by that of what was expected; 1 where zero was, infinite where a number is not finite.
  double error() const {
    if (notFinite > 0) return std::numeric_limits<double>::infinity();
    return difference == 0 ? 0 : expected == 0 ? 1 : std::sqrt(difference / expected);
  }
  // Of the angle between them: 1 where both are zero, 0 where one is, NaN where a number is not finite.
  double cosine() const {
    if (notFinite > 0) return std::numeric_limits<double>::quiet_NaN();
    if (found == 0 || expected == 0) return found == expected ? 1 : 0;
    return difference == 0 ? 1 : std::clamp(product / std::sqrt(found) / std::sqrt(expected), -1.0, 1.0);
  }
};

}  // namespace stepscope
