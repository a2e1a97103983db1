// SPDX-License-Identifier: GPL-3.0-or-later
// What the inputs of the graph are to each other: which is the mask of which, and which holds the labels.
#pragma once

#include <vector>

#include "views/common/snapshot_store.h"

namespace stepscope::batch {

// Value ids in the order of the graph; empty without one.
std::vector<int> inputs(const SnapshotStore& store);
// What inspection found out about an input; nullptr for those that the build added.
const snapshot::InputInfo* info(const SnapshotStore& store, int input);
// The mask input of the same extents; -1 when there is none.
int maskOf(const SnapshotStore& store, int input);
// The integer input with one number per sample of `input`; -1 when there is none.
int labelsOf(const SnapshotStore& store, int input);

}  // namespace stepscope::batch
