// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/drawing/axis_ticks.h"

#include <algorithm>
#include <cmath>

namespace stepscope {
namespace {

std::vector<double> multiples(double begin, double end, double step) {
  std::vector<double> ticks;
  for (double i = std::ceil(begin / step); i * step <= end && ticks.size() < 1000; ++i) ticks.push_back(i * step);
  return ticks;
}

bool usable(double begin, double end, int most) {
  return std::isfinite(begin) && std::isfinite(end) && end > begin && most > 0;
}

}  // namespace

std::vector<double> decimalTicks(double begin, double end, int most) {
  if (!usable(begin, end, most)) return {};
  const double rough = (end - begin) / most, power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (power * factor >= rough) return multiples(begin, end, power * factor);
  }
  return multiples(begin, end, power * 10);
}

std::vector<double> binaryTicks(double begin, double end, int most) {
  if (!usable(begin, end, most)) return {};
  return multiples(begin, end, std::max(1.0, std::exp2(std::ceil(std::log2((end - begin) / most)))));
}

}  // namespace stepscope
