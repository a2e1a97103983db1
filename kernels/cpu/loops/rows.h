// What softmax and cross entropy take from a row.
#pragma once

#include <cstdint>

namespace stepscope::cpu {

struct RowSum {
  float max;
  double sum;  // of e^(x - max)
};
RowSum rowSum(const float* x, std::int64_t width);

}  // namespace stepscope::cpu
