#include "engine/build/pass_stages.h"

#include <fmt/format.h>

namespace stepscope {

bool isPassStage(const Stage& stage) { return stage.phase.find('/') != std::string::npos; }

void StagesOfPasses::begin(const Graph& graph) { version_ = graph.version(); }

void StagesOfPasses::end(std::string_view pass, const Graph& graph, bool failed) {
  const int run = ++runs_[std::string(pass)];
  if (failed || graph.version() == version_) return;
  stages_.push_back({fmt::format("{}/{}{}", phase_, pass, run == 1 ? "" : fmt::format(" #{}", run)),
                     std::make_shared<const Graph>(graph)});
}

}  // namespace stepscope
