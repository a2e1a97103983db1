// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/branches.h"

namespace stepscope {

Taken takenIn(const SnapshotStore& store, int instruction) {
  const auto* in = store.plan() ? store.plan()->instruction(instruction) : nullptr;
  if (!in || in->view() || store.timing(instruction).ns != 0) return Taken::kRan;
  if (in->update_entry()) return Taken::kUpdateLeftOut;
  // Clocks of devices are coarse: where nothing is chosen, nothing was left out.
  for (const auto& other : store.plan()->plan().instructions())
    if (other.op() == "Select" || other.op() == "Gate" || other.op() == "ConcatTaken") return Taken::kBranchLeftOut;
  return Taken::kRan;
}

}  // namespace stepscope
