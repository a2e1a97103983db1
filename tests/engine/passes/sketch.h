// Small graphs for tests of passes: what a pass makes of one, and that the numbers stay.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/exec/interpreter.h"
#include "engine/ir/pass_scope.h"
#include "engine/passes/pipeline.h"

namespace stepscope::testing {

using Ints = std::vector<std::int64_t>;

// A graph under construction: inputs are random, every node has one result.
class Sketch {
 public:
  ValueId input(std::string name, Shape shape) {
    const ValueId id =
        graph.addValue(std::move(name), {ValueKind::kTensor, DType::kF32, std::move(shape)}, ValueRole::kInput);
    graph.mutableInputs().push_back(id);
    return id;
  }
  ValueId constant(double value) { return graph.addConstant("c", Tensor::scalar(DType::kF32, value)); }
  ValueId ints(Ints values) { return graph.addConstant("i", Tensor::ints(values)); }
  ValueId op(std::string name, std::vector<ValueId> inputs, Attributes attrs = {}) {
    const NodeId node = graph.addNode("", "", std::move(name), std::move(inputs),
                                      {std::string("v") + std::to_string(graph.valueCapacity())}, std::move(attrs));
    return graph.node(node).output(0);
  }
  void finish(std::vector<ValueId> outputs) {
    graph.mutableOutputs() = std::move(outputs);
    inference = std::make_unique<Inference>(graph, builtInOperators());
    const Status status = inference->run();
    ASSERT_TRUE(status.has_value()) << status.error().message;
  }

  std::vector<Tensor> run() const {
    Interpreter interpreter(graph, builtInOperators(), Backend::kReference);
    std::mt19937 random(7);
    std::uniform_real_distribution<float> value(-1.5F, 1.5F);
    for (const ValueId id : graph.inputs()) {
      Tensor tensor(DType::kF32, *knownDims(*graph.value(id).type.shape));
      for (float& x : tensor.as<float>()) x = value(random);
      EXPECT_TRUE(interpreter.feed(id, tensor).has_value());
    }
    const Status status = interpreter.run();
    EXPECT_TRUE(status.has_value()) << status.error().message;
    std::vector<Tensor> results;
    for (const ValueId id : graph.outputs())
      results.push_back(interpreter.value(id) ? interpreter.value(id)->clone() : Tensor());
    return results;
  }

  // Runs the pass and compares the outputs with those before.
  PassResult apply(std::string_view name, std::map<std::string, std::string, std::less<>> options = {},
                   const std::string& device = "cpu") {
    const std::vector<Tensor> before = run();
    PassResult result;
    for (const PassList& list : pipeline())
      for (const Pass& pass : list.passes)
        if (pass.name == name) {
          PassContext context(*inference);
          context.options = options;
          context.target.device = device;
          {
            const PassScope scope(graph, name);
            EXPECT_TRUE(pass.run(graph, context).has_value());
          }
          result = std::move(context.result);
          EXPECT_TRUE(graph.verify().empty());
          const std::vector<Tensor> after = run();
          for (std::size_t o = 0; o < before.size(); ++o) {
            EXPECT_EQ(after[o].dims(), before[o].dims());
            for (std::int64_t k = 0; k < before[o].elements(); ++k)
              EXPECT_NEAR(elementAsDouble(after[o].view(), k), elementAsDouble(before[o].view(), k), 1e-5)
                  << name << " output " << o << " element " << k;
          }
          return result;
        }
    ADD_FAILURE() << "no pass " << name;
    return result;
  }

  std::size_t count(std::string_view op) const {
    std::size_t n = 0;
    for (const NodeId id : graph.order()) n += graph.node(id).op == op;
    return n;
  }
  const Node& only(std::string_view op) const {
    for (const NodeId id : graph.order())
      if (graph.node(id).op == op) return graph.node(id);
    return graph.node(graph.order().front());
  }

  Graph graph;
  std::unique_ptr<Inference> inference;
};

}  // namespace stepscope::testing
