// A plan that a session can run, and what belongs to it.
#pragma once

#include <memory>

#include "engine/lab/recompute_analysis.h"
#include "engine/step/stepper.h"
#include "engine/train/session.h"

namespace stepscope {

struct Session::Running {
  std::unique_ptr<Stepper> stepper;
  std::size_t build = 0;                        // which of the log's builds made it
  std::unique_ptr<RecomputeAnalysis> analysis;  // made when it is asked for
};

}  // namespace stepscope
