#include "engine/build/stage.h"

#include "engine/build/pass_stages.h"

namespace stepscope {

void keepStage(std::vector<Stage>& stages, std::string phase, const Graph& graph, const BuildLog& log) {
  std::erase_if(stages, [&](const Stage& stage) { return stage.phase == phase; });
  stages.push_back({std::move(phase), std::make_shared<const Graph>(graph)});
  if (log.observer().stage) log.observer().stage(stages.back());
}

void tellStages(const std::vector<Stage>& stages, const BuildLog& log) {
  if (!log.observer().stage) return;
  for (const Stage& stage : stages)
    if (!isPassStage(stage)) log.observer().stage(stage);
}

}  // namespace stepscope
