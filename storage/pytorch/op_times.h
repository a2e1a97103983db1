// The newest trace of PyTorch that was laid beside a run, by operators of ours.
#pragma once

#include <string>
#include <vector>

#include "storage/pytorch/join.h"
#include "storage/timing.h"

namespace stepscope::storage {

// Nanoseconds of a step. A row of the join that holds several of our instructions gives each its share of PyTorch's time,
// as their medians are; rows that one of the two has alone are left out.
struct PyTorchOpTime {
  std::string op, phase;
  double theirNs = 0, ourNs = 0;
  std::vector<int> instructions;  // places in the plan of those that were joined
  std::string theirs;             // PyTorch's operators, each once, in their order
};

// By phase and operator; empty where no trace was imported. Error: no such run.
Result<std::vector<PyTorchOpTime>> readPyTorchOpTimes(const Project& project, std::int64_t run);
// The same of a join, whose rows name instructions by their labels; those that `instructions` lacks get nothing.
std::vector<PyTorchOpTime> opTimesOf(const PyTorchJoin& join, const std::vector<InstructionTime>& instructions);

}  // namespace stepscope::storage
