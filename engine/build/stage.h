// A graph kept at a phase boundary. Stages are immutable; where a phase failed the last good one is still there to look at.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/ir/graph.h"

namespace stepscope {

struct Stage {
  std::string phase;
  std::shared_ptr<const Graph> graph;
};

// Appends a copy of `graph`; a stage of that phase that is there already is replaced.
void keepStage(std::vector<Stage>& stages, std::string phase, const Graph& graph);

}  // namespace stepscope
