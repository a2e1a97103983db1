// What a run computes again in its backward phase, as modules and operators for torch.utils.checkpoint.
//
// A module stands as a whole where something in it is computed again and nothing in it is kept for the backward phase but
// what it hands on: the largest such modules. What else is computed again stands as operators of the module that it belongs
// to; PyTorch can tell operators of a module apart by name alone, so all of that name in it are computed again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/project.h"

namespace stepscope::storage {

struct CheckpointEntry {
  std::string module;                  // path, as the export recorded it: "model.blocks.0"
  std::vector<std::string> operators;  // as torchNames; empty: the whole module
  std::vector<std::string> kept;       // of a module with operators: what is kept of it for the backward phase
  std::int64_t nodes = 0;              // nodes of the plan that are computed again there
};

struct CheckpointPolicy {
  std::vector<CheckpointEntry> modules;  // in order of execution
  std::vector<std::string> leftOut;      // names of nodes that belong to no module
};

// Error: kNotFound where the run has no graph, or computes nothing again.
Result<CheckpointPolicy> checkpointPolicy(const Project& project, std::int64_t run);

// The file that stepscope.apply_checkpoint_policy reads (JSON). `model`: where it comes from, a note.
std::string checkpointPolicyJson(const CheckpointPolicy& policy, const std::string& model, std::int64_t run);

}  // namespace stepscope::storage
