// Whether the nodes of a plan compute the same bits again. Thousands of nodes share a handful of verdicts, so the file keeps
// one row for each verdict with the nodes it holds for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/snapshot/run.pb.h"
#include "storage/error.h"
#include "storage/project.h"

namespace stepscope::storage {

struct Verdict {
  std::string verdict, reason;
  std::vector<std::int32_t> nodes;
};

// In the order of their first nodes.
std::vector<Verdict> groupVerdicts(const std::vector<snapshot::Determinism>& nodes);

// Of the newest plan of the run that has any, one for each node, in the order of its instructions. A file of a version
// before 4 that is opened for reading has none, which is no error.
Result<std::vector<snapshot::Determinism>> readDeterminism(const Project& project, std::int64_t run);

}  // namespace stepscope::storage
