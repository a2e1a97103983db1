// Which options a session of trials tries: every one that changes how a step is run, set to another value.
#pragma once

#include <string>
#include <vector>

#include "engine/build/options.h"
#include "engine/snapshot/lab.pb.h"

namespace stepscope {

struct TrialCandidate {
  std::string option, from, to;
  TrainOptions options;    // with the new value
  std::int64_t batch = 0;  // extent of the batch dimension; 0: that of the step as it is
};

// The step as it is.
struct TrialBase {
  const TrainOptions& options;
  const std::vector<OptionInfo>& table;
  int cores = 1;
  std::int64_t liveBytes = 0;  // largest sum of live activations, which budgets of recompute are shares of
  std::string batchDimension;  // empty: its batch cannot be changed
  std::int64_t batch = 0;
};

// Every pass and the memory switches flipped; the other values of precision, deterministic and subnormals; 1, 2, 4 … threads
// up to the cores; budgets of recompute at 3/4 and 1/2 of the live activations, or none where there is one; the batches of
// the question. Reference kernels and the flight recorder only where `only` names them. In the order of the table. Errors: a
// malformed `only`, or one that leaves nothing; batches where the batch cannot be changed.
Result<std::vector<TrialCandidate>> trialCandidates(const TrialBase& base, const snapshot::GetTrials& question);

}  // namespace stepscope
