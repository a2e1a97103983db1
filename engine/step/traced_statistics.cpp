#include "engine/step/traced_statistics.h"

#include <algorithm>
#include <cmath>

namespace stepscope {
namespace {

struct Rule {
  double momentum, initial;
};

Rule ruleOf(const Graph& graph, const Value& next) {
  return {graph.node(next.producer).attrs.real("momentum", 0.9F), next.outputIndex == 1 ? 0.0 : 1.0};
}

}  // namespace

bool writesStatistics(const Graph& graph, const Value& next) {
  return next.producer && graph.node(next.producer).op.ends_with("BatchNormalization");
}

bool traceCountedFirstBatch(const Executor& executor) {
  const Graph& graph = executor.graph();
  bool any = false;
  for (const StateUpdate& update : graph.stateUpdates) {
    const Value& next = graph.value(update.next);
    if (!writesStatistics(graph, next)) continue;
    const auto [momentum, initial] = ruleOf(graph, next);
    const TensorView before = executor.view(update.state), after = executor.view(update.next);
    const double count = static_cast<double>(executor.view(graph.node(next.producer).input(0)).elements()) /
                         static_cast<double>(std::max<std::int64_t>(1, before.elements()));
    const double sample = next.outputIndex == 2 && count > 1 ? count / (count - 1) : 1.0;
    for (std::int64_t c = 0; c < before.elements(); ++c) {
      const double old = elementAsDouble(before, c);
      const double ofBatch = elementAsDouble(after, c) - momentum * old;  // (1 - momentum) times the batch's statistic
      const double tolerance = 1e-5 * (std::abs(initial) + std::abs(old)) + 1e-7;
      if (std::abs(old - (momentum * initial + ofBatch)) > tolerance &&
          std::abs(old - (momentum * initial + ofBatch * sample)) > tolerance)
        return false;
      any = true;
    }
  }
  return any;
}

void firstStatistics(const Graph& graph, const Value& next, const TensorView& computed, const TensorView& state) {
  const auto [momentum, initial] = ruleOf(graph, next);
  for (std::int64_t c = 0; c < state.elements(); ++c)
    storeElement(state, c, elementAsDouble(computed, c) + momentum * (initial - elementAsDouble(state, c)));
}

}  // namespace stepscope
