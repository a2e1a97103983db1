// Somebody who looks at the passes of models that a program runs as functions (model_function.h), and may hold them: before
// an instruction, and where a pass ends. All functions but listens() are called by the thread that runs the pass, which
// waits in them while it is held.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/exec/executor.h"
#include "kernels/status.h"

namespace stepscope {

class Stepper;
struct FunctionPlans;

// Instructions [begin, end) of the plan of one call.
struct WatchedPass {
  std::shared_ptr<const FunctionPlans> plans;  // keeps the stepper
  Stepper* stepper = nullptr;
  const std::vector<Span>* spans = nullptr;  // of what ran so far
  std::uint64_t call = 0;                    // no other call of the process has this number
  int begin = 0, end = 0;
  bool last = false;  // no pass of this call follows
};

class PassWatcher {
 public:
  virtual ~PassWatcher() = default;
  virtual bool listens() const = 0;  // whether passes that begin from now on are told; from any thread
  virtual void begins(const WatchedPass& pass) = 0;
  virtual void before(int instruction) = 0;
  virtual void after(int instruction) = 0;
  virtual void ends(const WatchedPass& pass, bool failed) = 0;
};

}  // namespace stepscope
