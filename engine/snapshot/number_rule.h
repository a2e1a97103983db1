// The one rule by which numbers are compared, in f64: NaN equals NaN, an infinity its equal, -0 equals 0.
//
// Engine (values, files, two runs of a step), command line (outputs against expected ones) and storage (curves of two runs)
// judge by it; views show what they found.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "engine/snapshot/tensor.pb.h"

namespace stepscope {

inline bool sameNumber(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// 0 for the same number, infinite where one of two different numbers is not finite.
inline double numberDistance(double a, double b) {
  if (sameNumber(a, b)) return 0;
  return std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) : std::numeric_limits<double>::infinity();
}

// The distance as a share of the larger magnitude: 0..2, or infinite.
inline double relativeDistance(double a, double b) {
  const double distance = numberDistance(a, b);
  return distance == 0 || std::isinf(distance) ? distance : distance / std::max(std::abs(a), std::abs(b));
}

// |a - b| <= atol + rtol * |b|, where b is what was expected; tolerances are no excuse for what is not finite.
inline bool agreeWithin(double a, double b, double rtol, double atol) {
  return sameNumber(a, b) || (std::isfinite(a) && std::isfinite(b) && std::abs(a - b) <= atol + rtol * std::abs(b));
}

// Collects the largest differences of two tensors, element by element; of equal distances the first stays.
class WorstElement {
 public:
  void add(std::int64_t element, double a, double b) {
    const double distance = numberDistance(a, b);
    relative_ = std::max(relative_, relativeDistance(a, b));  // it may be another element's
    if (distance <= distance_) return;
    distance_ = distance;
    element_ = element;
    a_ = a;
    b_ = b;
  }
  bool any() const { return element_ >= 0; }
  // Index (row-major in `dims`), both values, and both differences; nothing when no number differs.
  template <typename Dims>
  void write(const Dims& dims, snapshot::ComparisonResult* result) const {
    if (!any()) return;
    result->set_max_abs(distance_);
    result->set_max_rel(relative_);
    result->set_a(a_);
    result->set_b(b_);
    std::int64_t rest = 1, element = element_;
    for (const auto dim : dims) rest *= std::max<std::int64_t>(1, dim);
    for (const auto dim : dims) {
      rest /= std::max<std::int64_t>(1, dim);
      result->add_worst_index(element / rest);
      element %= rest;
    }
  }

 private:
  double distance_ = 0, relative_ = 0, a_ = 0, b_ = 0;
  std::int64_t element_ = -1;
};

}  // namespace stepscope
