// A graph kept at a phase boundary. Stages are immutable; where a phase failed the last good one is still there to look at.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/build/build_log.h"
#include "engine/ir/graph.h"

namespace stepscope {

struct Stage {
  std::string phase;
  std::shared_ptr<const Graph> graph;
};

// Appends a copy of `graph` and tells `log` of it; a stage of that phase that is there already is replaced.
void keepStage(std::vector<Stage>& stages, std::string phase, const Graph& graph, const BuildLog& log);
// Tells `log` of all of them: a build begins from them, and they were told to the one before it.
void tellStages(const std::vector<Stage>& stages, const BuildLog& log);

}  // namespace stepscope
