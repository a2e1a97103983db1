// The graph on its way through the phases of a build; for the Builder alone.
#pragma once

#include <algorithm>
#include <vector>

#include "engine/build/builder.h"

namespace stepscope {

struct Builder::Work {
  Graph graph;
  Inference inference;
  std::vector<Stage>& stages;
  std::vector<ValueId> gradients;  // by trained value; invalid where the loss does not depend on it
  ValueId lossScale;               // the input that the gradients carry

  Work(const ImportedModel& model, std::vector<Stage>& kept)
      : graph(model.graph), inference(*model.inference), stages(kept) {
    inference.rebind(graph);
  }
  std::size_t gradientCount() const {
    return static_cast<std::size_t>(std::count_if(gradients.begin(), gradients.end(), [](ValueId g) { return g.valid(); }));
  }
};

}  // namespace stepscope
