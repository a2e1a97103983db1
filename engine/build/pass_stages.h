// Graphs after single passes. They stand among the stages of a build, each before the stage of its phase, so that the
// difference between any two places of the pipeline can be looked at.
//
// The name is "PHASE/PASS"; a pass that runs again within its phase is "PHASE/PASS #2", counted as its spans are. A pass
// that changed nothing keeps none. They share what they have in common with their neighbours, are not told while a build
// runs and are not written into project files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/build/stage.h"

namespace stepscope {

bool isPassStage(const Stage& stage);

// Those of one run of a phase's passes.
class StagesOfPasses {
 public:
  // `stages` outlives it.
  StagesOfPasses(std::vector<Stage>& stages, std::string_view phase) : stages_(stages), phase_(phase) {}

  void begin(const Graph& graph);  // before a pass
  // After it, whether it failed or not; a graph that a failed pass left is not kept.
  void end(std::string_view pass, const Graph& graph, bool failed);

 private:
  std::vector<Stage>& stages_;
  std::string phase_;
  std::uint64_t version_ = 0;  // of the graph before the pass
  std::map<std::string, int, std::less<>> runs_;
};

}  // namespace stepscope
