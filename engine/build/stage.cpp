#include "engine/build/stage.h"

namespace stepscope {

void keepStage(std::vector<Stage>& stages, std::string phase, const Graph& graph) {
  std::erase_if(stages, [&](const Stage& stage) { return stage.phase == phase; });
  stages.push_back({std::move(phase), std::make_shared<const Graph>(graph)});
}

}  // namespace stepscope
