// What an elementwise node is in steps of a chain (kernels/pointwise_program.h).
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "engine/ir/graph.h"
#include "kernels/pointwise_program.h"

namespace stepscope {

// Steps of one node. Operands: below kConstants the node's inputs, below kResults constants, else results of steps before.
struct NodeSteps {
  static constexpr std::size_t kConstants = 100, kResults = 200;
  std::vector<PointwiseStep> steps;  // none: the node hands its input on
  std::vector<float> constants;
};

// Nothing for a node that is no chain of steps: another op, or elements that are neither float32, float16, bfloat16 nor,
// where a step wants a mask, bool. A result of a low type is not rounded by them.
std::optional<NodeSteps> stepsOf(const Graph& graph, const Node& node);

// Makes a node of these steps, whose inputs are all there, a Pointwise by itself: inputs keep their numbers, constants come
// behind them.
void becomeChain(Graph& graph, NodeId node, const NodeSteps& steps);

// Attribute output_type of a chain that makes `result` of `inputs`, where their types do not say it.
void setChainType(const Graph& graph, const std::vector<ValueId>& inputs, DType result, Attributes& attrs);

}  // namespace stepscope
