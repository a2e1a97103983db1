// What a plan for a device leaves to the CPU, and what that costs in every step: the host waits for the device before each
// such instruction, and what crosses between them is copied.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/plan/plan.h"

namespace stepscope {

struct Fallbacks {
  struct Op {
    int count = 0;
    std::string reason;  // of the first one
  };
  std::map<std::string, Op> ops;  // instructions that run on the CPU, by op
  int copies = 0;                 // for them: from the device, and what they make back to it
  std::int64_t bytes = 0;         // that these copies move in a step
  int hostWaits = 0;              // places where the host waits for the device because of them

  // "2 nodes run on the CPU: LSTM (device 'cuda' has no kernel for it), 2 × Range (…); in every step 4 copies move 4096
  // bytes for them, and the host waits for the device 3 times". Empty: none does.
  std::string text() const;
};

// Of a plan with waits. Nothing for a plan of the CPU.
Fallbacks fallbacksOf(const ExecutionPlan& plan, const Graph& graph);

}  // namespace stepscope
