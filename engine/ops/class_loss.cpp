#include "engine/ops/class_loss.h"

namespace stepscope {

bool isCrossEntropy(const Node& node) {
  return node.domain.empty() ? node.op == "SoftmaxCrossEntropyLoss"
                             : node.domain == "com.microsoft" && node.op == "SoftmaxCrossEntropyLossInternal";
}

bool isClassLoss(const Node& node) {
  return isCrossEntropy(node) || (node.domain.empty() && node.op == "NegativeLogLikelihoodLoss");
}

std::optional<std::int64_t> ignoredLabel(const Graph& graph, const Node& loss) {
  if (!isClassLoss(loss)) return std::nullopt;
  if (loss.attrs.has("ignore_index")) return loss.attrs.integer("ignore_index", -100);
  if (loss.domain.empty() || !loss.input(3)) return std::nullopt;
  const auto data = graph.value(loss.input(3)).data.inMemory();  // one number is never given up
  return data && data->elements() == 1 ? std::optional(elementAsInt(data->view(), 0)) : std::nullopt;
}

}  // namespace stepscope
