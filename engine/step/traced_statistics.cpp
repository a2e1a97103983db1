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

bool isStatistic(const Graph& graph, const Value& next) {
  return next.producer && graph.node(next.producer).op.ends_with("BatchNormalization");
}

}  // namespace

std::vector<NextStatistic> nextStatistics(const Graph& graph) {
  std::vector<NextStatistic> all;
  for (const StateUpdate& update : graph.stateUpdates)
    if (const Value& next = graph.value(update.next); isStatistic(graph, next))
      all.push_back({update, ruleOf(graph, next).momentum});
  return all;
}

bool writesStatistics(const Graph& graph) {
  return std::any_of(graph.stateUpdates.begin(), graph.stateUpdates.end(),
                     [&](const StateUpdate& update) { return isStatistic(graph, graph.value(update.next)); });
}

Result<bool> traceCountedFirstBatch(const Executor& executor) {
  const Graph& graph = executor.graph();
  bool any = false;
  for (const StateUpdate& update : graph.stateUpdates) {
    const Value& next = graph.value(update.next);
    if (!isStatistic(graph, next)) continue;
    if (graph.node(next.producer).attrs.integer("sample_variance", 0) != 0)
      return false;  // the file says that it counts none
    const auto [momentum, initial] = ruleOf(graph, next);
    SS_ASSIGN(const Tensor before, executor.read(update.state));
    SS_ASSIGN(const Tensor after, executor.read(update.next));
    const auto& shape = graph.value(graph.node(next.producer).input(0)).type.shape;
    const auto dims = shape ? knownDims(*shape) : std::nullopt;
    const double count = static_cast<double>(dims ? elementCount(*dims) : 0) /
                         static_cast<double>(std::max<std::int64_t>(1, before.elements()));
    const double sample = next.outputIndex == 2 && count > 1 ? count / (count - 1) : 1.0;
    for (std::int64_t c = 0; c < before.elements(); ++c) {
      const double old = elementAsDouble(before.view(), c);
      const double ofBatch =
          elementAsDouble(after.view(), c) - momentum * old;  // (1 - momentum) times the batch's statistic
      const double tolerance = 1e-5 * (std::abs(initial) + std::abs(old)) + 1e-7;
      const auto isFirst = [&](double statistic) {  // NaN is none
        return std::abs(old - (momentum * initial + statistic)) <= tolerance;
      };
      if (!isFirst(ofBatch) && !isFirst(ofBatch * sample)) return false;
      any = true;
    }
  }
  return any;
}

Status writeFirstStatistics(Executor& executor) {
  const Graph& graph = executor.graph();
  for (const StateUpdate& update : graph.stateUpdates) {
    const Value& next = graph.value(update.next);
    if (!isStatistic(graph, next)) continue;
    const auto [momentum, initial] = ruleOf(graph, next);
    SS_ASSIGN(const Tensor state, executor.read(update.state));
    SS_ASSIGN(const Tensor computed, executor.read(update.next));
    const Tensor first = computed.clone();
    for (std::int64_t c = 0; c < first.elements(); ++c)
      storeElement(first.view(), c,
                   elementAsDouble(computed.view(), c) + momentum * (initial - elementAsDouble(state.view(), c)));
    SS_TRY(executor.write(update.next, first.view(), executor.plan().firstCommit));
  }
  return {};
}

}  // namespace stepscope
