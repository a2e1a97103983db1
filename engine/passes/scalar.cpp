#include "engine/passes/scalar.h"

#include <cmath>

namespace stepscope {

std::optional<double> constantScalar(const Inference& inference, ValueId id) {
  const Tensor* tensor = id ? inference.constant(id) : nullptr;
  if (!tensor || tensor->elements() != 1 || !isFloating(tensor->dtype())) return std::nullopt;
  return elementAsDouble(tensor->view(), 0);
}

std::optional<Scale> readScale(const Graph& graph, const Inference& inference, const Node& node) {
  if (!node.domain.empty() || (node.op != "Mul" && node.op != "Div") || node.inputs.size() != 2) return std::nullopt;
  for (const std::size_t side : {0u, 1u}) {
    if (side == 0 && node.op == "Div") continue;  // constant / x is no scale
    const auto constant = constantScalar(inference, node.input(side));
    const ValueId x = node.input(1 - side);
    if (!constant || graph.value(x).type.shape != graph.value(node.output(0)).type.shape) continue;
    const double factor = node.op == "Div" ? 1 / *constant : *constant;
    if (std::isfinite(factor)) return Scale{x, factor};
  }
  return std::nullopt;
}

}  // namespace stepscope
