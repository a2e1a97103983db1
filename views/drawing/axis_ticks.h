// SPDX-License-Identifier: GPL-3.0-or-later
// Round numbers along an axis.
#pragma once

#include <vector>

namespace stepscope {

// Multiples of 1, 2 or 5 × 10ⁿ in [begin, end], at most `most` of them. Empty when the range is.
std::vector<double> decimalTicks(double begin, double end, int most);

// Multiples of a power of two (of bytes) in [begin, end], at most `most` of them.
std::vector<double> binaryTicks(double begin, double end, int most);

}  // namespace stepscope
