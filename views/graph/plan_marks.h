// SPDX-License-Identifier: GPL-3.0-or-later
// The marks that follow from a graph and its plan alone. Made once for both, so that a stop, a click or a new step costs the
// nodes one look each and no lookup by id.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "views/common/snapshots.h"
#include "views/graph/graph_model.h"

namespace stepscope {

struct PlanMarks {
  std::shared_ptr<const GraphModel> model;
  std::shared_ptr<const PlanSnapshot> plan;  // may be nullptr: then nothing is known of instructions
  std::vector<int> instruction;              // by model node; -1 none
  std::vector<std::uint8_t> inPlace;         // by model node: an output takes over the memory of an input
  std::vector<std::int64_t> stash;  // by group, with everything below: bytes of forward values that the gradient reads

  static PlanMarks make(std::shared_ptr<const GraphModel> model, std::shared_ptr<const PlanSnapshot> plan);
};

}  // namespace stepscope
