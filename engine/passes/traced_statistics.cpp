#include "engine/passes/traced_statistics.h"

#include <fmt/format.h>

namespace stepscope {
namespace {

constexpr std::size_t kMean = 3, kVariance = 4;

// Unknown contents may be anything.
bool isAll(const Value& value, double number) {
  const auto contents = value.data ? value.data.read() : Tensor();
  if (!contents || !contents->valid()) return false;
  for (std::int64_t c = 0; c < contents->elements(); ++c)
    if (elementAsDouble(contents->view(), c) != number) return false;
  return true;
}

}  // namespace

Status findTracedStatistics(Graph& graph, PassContext& context) {
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.op != "BatchNormalization" || node.attrs.integer("training_mode", 0) == 0) continue;
    const ValueId mean = node.input(kMean), variance = node.input(kVariance);
    if (!mean || !variance) continue;
    if (node.attrs.integer("sample_variance", 0) != 0) {
      context.miss(id, "the file says that its statistics are PyTorch's, from before the first batch");
      continue;
    }
    if (isAll(graph.value(mean), 0) && isAll(graph.value(variance), 1)) {
      context.miss(id, "the statistics in the file are mean 0 and variance 1: no batch is counted in them");
      continue;
    }
    context.match();
    context.note(
        fmt::format("'{}' and '{}' are judged in the first step: where they count its batch already, it is counted once",
                    graph.value(mean).name, graph.value(variance).name));
  }
  return {};
}

}  // namespace stepscope
