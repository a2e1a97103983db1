// Turns an OpExample into a one-node graph with contents.
#pragma once

#include <vector>

#include "engine/ir/graph.h"
#include "engine/ops/op_def.h"
#include "tests/engine/ops/op_example.h"

namespace stepscope::testing {

struct ExampleGraph {
  Graph graph;
  NodeId node;
  std::vector<ValueId> inputs;   // one per example input; invalid when absent
  std::vector<Tensor> contents;  // of each input
};

std::vector<OpExample> allExamples();

// Inputs that are floats become `floatType`. Constants become graph constants unless they are floats that can be
// differentiated; everything else is a graph input.
ExampleGraph makeGraph(const OpExample& example, DType floatType);

}  // namespace stepscope::testing
