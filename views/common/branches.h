// SPDX-License-Identifier: GPL-3.0-or-later
// Which instructions were passed by without running: those of a branch of an If that the step did not take, and updates in
// a micro step that only accumulates.
#pragma once

#include "views/common/snapshot_store.h"

namespace stepscope {

enum class Taken { kRan, kBranchLeftOut, kUpdateLeftOut };

// In the step that the times of the instruction are of; kRan too where it has none. A recorded span without a duration says
// it: a kernel takes some time.
Taken takenIn(const SnapshotStore& store, int instruction);

}  // namespace stepscope
