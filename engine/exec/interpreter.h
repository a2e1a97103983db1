// Runs a graph one node after the other with fresh memory for every value: slow, simple, and right where extents depend on
// data. It judges the planned executor in tests, computes finite differences in f64, and runs models whose shapes are only
// known while they run.
#pragma once

#include <map>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/passes/infer.h"
#include "kernels/kernel.h"

namespace stepscope {

class Interpreter {
 public:
  // Works on a copy of the graph. `key.seed` and `key.step` key random nodes; the node part is filled per node.
  // `operators` outlive the interpreter.
  Interpreter(const Graph& graph, const Operators& operators, Backend backend, RandomKey key = {}, int threads = 1);

  // Contents of a graph input, initializer or state (overrides initial contents). Error: dtype that differs from the
  // declared one.
  Status feed(ValueId id, Tensor tensor);
  // All nodes, or those that `wanted` needs. Errors name the node.
  Status run();
  // The contents after run(); null when the value was not computed (a branch that did not run).
  const Tensor* value(ValueId id) const;

 private:
  Status runNode(const Node& node);

  Graph graph_;
  Inference inference_;
  Backend backend_;
  RandomKey key_;
  int threads_;
  std::vector<std::shared_ptr<const Tensor>> values_;
};

}  // namespace stepscope
