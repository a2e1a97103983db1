// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/gradient_norm.h"

#include <cmath>

namespace stepscope {

double gradientNorm(const snapshot::StepRecord& step) {
  double squares = 0;
  int parameters = 0, gradients = 0;
  for (const auto& s : step.statistics()) {
    if (s.kind() == "parameter") ++parameters;
    if (s.kind() != "gradient") continue;
    ++gradients;
    const auto& t = s.statistics();
    squares += t.nan() + t.inf() > 0 ? std::nan("") : t.norm() * t.norm();
  }
  return gradients > 0 && gradients == parameters ? std::sqrt(squares) : -1;
}

}  // namespace stepscope
