// SPDX-License-Identifier: GPL-3.0-or-later
// What belongs to a selection: of an instruction its node, of a value what makes it and its buffer, of a node its source.
#pragma once

#include "views/common/selection.h"
#include "views/common/snapshot_store.h"

namespace stepscope {

// Fields that are set stay. What the graph and the plan of the store do not know stays empty.
Selection completed(Selection selection, const SnapshotStore& store);

}  // namespace stepscope
