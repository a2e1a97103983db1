// The norm of all gradients of a step together, from the statistics that the step recorded. Clipping computes it in every
// step; without clipping storage (two runs) and views (curves) take it from here.
#pragma once

#include <cmath>
#include <limits>

#include "engine/snapshot/run.pb.h"

namespace stepscope {

// `statistics`: RecordedStatistics of one step. Negative when it has no gradients, or not one for each parameter; NaN when
// one of them holds what is not finite.
template <typename Statistics>
double gradientNorm(const Statistics& statistics) {
  double squares = 0;
  int parameters = 0, gradients = 0;
  for (const snapshot::RecordedStatistics& s : statistics) {
    if (s.kind() == "parameter") ++parameters;
    if (s.kind() != "gradient") continue;
    ++gradients;
    const auto& t = s.statistics();
    squares += t.nan() + t.inf() > 0 ? std::numeric_limits<double>::quiet_NaN() : t.norm() * t.norm();
  }
  return gradients > 0 && gradients == parameters ? std::sqrt(squares) : -1;
}

}  // namespace stepscope
