// What a random number has to reach for an element to survive dropout; every kernel that drops draws the same mask with it.
#pragma once

#include <cmath>

namespace stepscope {

// The smallest float that is at least `ratio`, the share that is dropped.
inline float dropoutThreshold(double ratio) {
  const auto rounded = static_cast<float>(ratio);
  return static_cast<double>(rounded) < ratio ? std::nextafter(rounded, 2.0F) : rounded;
}

}  // namespace stepscope
