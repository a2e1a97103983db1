#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

TEST(SortTopologically, WaitsForWhatBranchesTakeFromOutside) {
  auto loaded = parse(branchingModel());
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  Graph& graph = loaded->graph;
  // x' = Relu(x), made after the If in the present order, under the name that the branches take.
  const ValueId x = graph.findValue("x");
  ASSERT_TRUE(x.valid());
  NodeId branching;
  for (const NodeId id : graph.order())
    if (graph.node(id).op == "If") branching = id;
  ASSERT_TRUE(branching.valid());
  const NodeId made = graph.addNode("late", "", "Relu", {x}, {"late_out"});
  graph.renameValue(x, "early");
  graph.renameValue(graph.node(made).outputs[0], "x");
  ASSERT_TRUE(graph.sortTopologically().has_value());
  const auto place = [&](NodeId id) {
    return std::find(graph.order().begin(), graph.order().end(), id) - graph.order().begin();
  };
  EXPECT_LT(place(made), place(branching));
}

}  // namespace
}  // namespace stepscope::testing
