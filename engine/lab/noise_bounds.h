// How far apart two runs of a step may be that compute the same, quantity by quantity.
//
// A bound is kNoiseFactor times the largest error that was seen where nothing but rounding differed, and at least
// kLeastBound. So a gradient that is zero in theory, and rounding in practice, has a wide bound, and all others keep narrow
// ones. The factor covers what an A/A run does not do: sums in the order of a fused kernel, approximations of exp and erf,
// Winograd's convolutions. tests/bench/bisect_noise.py tells it from the models of the corpus.
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace stepscope {

inline constexpr double kNoiseFactor = 30, kLeastBound = 1e-5;
// Adam divides by the root of a square: an element whose gradient is nearly zero may be updated the other way.
inline constexpr double kLeastBoundOfUpdates = 0.05;

class NoiseBounds {
 public:
  // Every bound is `tolerance`, where noise does not ask for more; 0: kLeastBound.
  explicit NoiseBounds(double tolerance = 0) : tolerance_(tolerance) {}

  void add(const std::string& what, double error);  // of a run beside itself; relative L2
  double boundOf(const std::string& what) const;
  // Of quantities whose name begins so; 0 where there are none.
  double medianNoise(const std::string& prefix) const;

 private:
  double tolerance_;
  std::map<std::string, double> noise_;  // the largest
};

}  // namespace stepscope
