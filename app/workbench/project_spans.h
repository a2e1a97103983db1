// SPDX-License-Identifier: GPL-3.0-or-later
// When the instructions of recorded steps ran, and what a device did in them.
#pragma once

#include <memory>
#include <vector>

#include "engine/snapshot/run.pb.h"
#include "storage/queries.h"

namespace stepscope {

// Into `records`, one for each of the steps; of the newest 20.
void readSpans(const storage::Project& project, const std::vector<storage::StepRow>& steps,
               const std::vector<std::shared_ptr<snapshot::StepRecord>>& records);

}  // namespace stepscope
