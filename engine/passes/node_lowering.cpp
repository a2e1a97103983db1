#include "engine/passes/node_lowering.h"

namespace stepscope {

Status NodeLowering::run() {
  for (const NodeId id : std::vector<NodeId>(graph_.order())) {
    node_ = id;
    const std::vector<ValueId> results = lower();
    if (results.empty()) {
      order_.push_back(id);
      continue;
    }
    for (std::size_t o = 0; o < results.size(); ++o)
      if (node().output(o)) replacements_.replace(node().output(o), results[o]);
    replacements_.remove(id);
    context_.match();
  }
  if (context_.result.matches == 0) return {};
  replacements_.apply();
  graph_.setOrder(std::move(order_));
  return {};
}

std::optional<Shape> NodeLowering::shapeOf(std::size_t input) const {
  return node().input(input) ? context_.inference.shape(node().input(input)) : std::nullopt;
}

std::vector<ValueId> NodeLowering::stay(const std::string& reason) {
  context_.block(node().label() + ": " + reason);
  return {};
}

ValueId NodeLowering::emit(const char* op, std::vector<ValueId> inputs, Attributes attributes) {
  const ValueId result = emitBeside(graph_, node_, op, std::move(inputs), std::move(attributes));
  order_.push_back(graph_.value(result).producer);
  return result;
}

ValueId NodeLowering::ints(const Integers& values) {
  return graph_.addConstant(node().name + "/ints", Tensor::ints(values));
}

ValueId NodeLowering::integer(std::int64_t value) {
  return graph_.addConstant(node().name + "/int", Tensor::of<std::int64_t>({}, std::span<const std::int64_t>(&value, 1)));
}

ValueId NodeLowering::real(DType type, double value) {
  return graph_.addConstant(node().name + "/real", Tensor::scalar(type, value));
}

}  // namespace stepscope
