// One node of a step as a graph of its own in float64, with a loss and the gradients of its operands.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ops/operators.h"
#include "kernels/tensor.h"

namespace stepscope {

struct OneNodeStep {
  double loss = 0;                // sum over the outputs that carry a gradient of w * y; w: sin(1 + 1.7 k), 0 for infinities
  double size = 0;                // that of the absolute values
  std::vector<Tensor> gradients;  // float64, in the order of OneNode::varied; empty where they were not asked for
};

class OneNode {
 public:
  // `contents` reads an operand; `wanted`: whether the step wants its gradient, others stay as they are. Errors:
  // kUnsupported for a node with a body, without a rule (with the reason of its op), without an operand that can receive a
  // gradient, or without kernels in float64.
  static Result<OneNode> of(const Graph& graph, const Node& node, const Operators& operators,
                            const std::function<Result<Tensor>(ValueId)>& contents,
                            const std::function<bool(ValueId)>& wanted);

  std::vector<Tensor> operands;     // in the order of the node's inputs; those that vary in float64, absent ones invalid
  std::vector<std::string> names;   // of them
  std::vector<std::size_t> varied;  // which of them can receive a gradient

  // At these operands. Errors: those of the kernels.
  Result<OneNodeStep> step(const std::vector<Tensor>& at, bool withGradients) const;

 private:
  struct Made {
    Graph graph;
    std::vector<ValueId> inputs, gradients;  // per operand that varies
    ValueId loss, size;
  };
  Result<Made> make(bool othersToo) const;

  const Operators* operators_ = nullptr;
  Node node_;
  std::vector<bool> carries_;  // per output: it carries a gradient
  Graph plain_, withGradients_;
  std::vector<ValueId> inputs_, gradients_;
  ValueId loss_, size_;
};

}  // namespace stepscope
