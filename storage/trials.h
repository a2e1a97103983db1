// What every option gave, as `stepscope trials` measured it.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/snapshot/lab.pb.h"
#include "storage/error.h"
#include "storage/project.h"

namespace stepscope::storage {

// The newest session of the run, in its order; empty where there is none. A file of a version before 7 that is opened for
// reading has none, which is no error.
Result<std::vector<snapshot::Trial>> readTrials(const Project& project, std::int64_t run);

}  // namespace stepscope::storage
