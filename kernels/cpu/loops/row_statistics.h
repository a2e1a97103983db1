// Mean and variance of a row of floats as layer, group and instance normalisation need them.
#pragma once

#include <cstdint>

namespace stepscope::cpu {

// Floats that are summed in float before they join a double.
inline constexpr std::int64_t kSumBlock = 1024;

// The mean in two parts, so that large means cost no digits: x - mean = (x - rough) - rest. inverse = 1 / sqrt(variance +
// epsilon).
struct RowStatistics {
  float rough = 0;
  double rest = 0, inverse = 0;
  double mean() const { return static_cast<double>(rough) + rest; }
};
// With `centred` false the mean is taken to be 0.
RowStatistics rowStatistics(const float* x, std::int64_t width, double epsilon, bool centred);

}  // namespace stepscope::cpu
