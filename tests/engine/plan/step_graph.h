// A training step of any depth, without a model file: what plans of many instructions are tested with.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/ops/op_def.h"
#include "engine/passes/infer.h"
#include "engine/plan/plan.h"

namespace stepscope::testing {

// Six nodes a layer: a product with the parameter and a Relu forward; backward three products, of which two read stashes; an
// update. Parameter, gradient and stash have `width` elements each.
class StepGraph {
 public:
  StepGraph(int layers, std::int64_t width) : width_(width) {
    const ValueId x = value("x", ValueRole::kInput);
    const ValueId rate = scalar("rate", DType::kF32), update = scalar("update", DType::kI64);
    std::vector<ValueId> hidden{x}, products, weights;
    for (int l = 0; l < layers; ++l) {
      weights.push_back(value("w" + std::to_string(l), ValueRole::kInitializer));
      products.push_back(node("Mul", {hidden.back(), weights.back()}, Phase::kForward));
      hidden.push_back(node("Relu", {products.back()}, Phase::kForward));
    }
    loss = hidden.back();
    ValueId upstream = loss;
    for (int l = layers; l-- > 0;) {
      const auto k = static_cast<std::size_t>(l);
      const ValueId inner = node("Mul", {upstream, products[k]}, Phase::kBackward);
      gradients.push_back(node("Mul", {inner, hidden[k]}, Phase::kBackward));
      upstream = node("Mul", {inner, weights[k]}, Phase::kBackward);
    }
    for (int l = layers; l-- > 0;) {
      const auto k = static_cast<std::size_t>(l);
      const ValueId gradient = gradients[static_cast<std::size_t>(layers) - 1 - k];
      const ValueId next =
          node("SgdUpdate", {weights[k], gradient, {}, rate, {}, update}, Phase::kOptimizer, std::string(kInternalDomain));
      graph.stateUpdates.push_back({weights[k], next});
    }
    graph.mutableOutputs() = {loss};
    trained = weights;
    inference = std::make_unique<Inference>(graph, builtInOperators(), InferOptions{.foldElements = -1});
    const Status status = inference->run();
    EXPECT_TRUE(status.has_value()) << status.error().message;
  }

  ExecutionPlan plan(PlanOptions options = {}) const {
    options.trained = trained;
    auto made = makePlan(graph, *inference, options);
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return made ? std::move(*made) : ExecutionPlan();
  }

  Graph graph;
  std::unique_ptr<Inference> inference;
  ValueId loss;
  std::vector<ValueId> trained, gradients;

 private:
  ValueId value(std::string name, ValueRole role) {
    const ValueId id = graph.addValue(std::move(name), {ValueKind::kTensor, DType::kF32, shapeOf({width_})}, role);
    if (role == ValueRole::kInput) graph.mutableInputs().push_back(id);
    return id;
  }
  ValueId scalar(std::string name, DType dtype) {
    const ValueId id = graph.addValue(std::move(name), {ValueKind::kTensor, dtype, Shape{}}, ValueRole::kInput);
    graph.mutableInputs().push_back(id);
    return id;
  }
  ValueId node(std::string op, std::vector<ValueId> inputs, Phase phase, std::string domain = "") {
    const NodeId id = graph.addNode("", std::move(domain), std::move(op), std::move(inputs),
                                    {std::string("v") + std::to_string(graph.valueCapacity())}, {});
    graph.mutableNode(id).phase = phase;
    graph.mutableNode(id).sinceVersion = kInternalOpset;
    return graph.node(id).output(0);
  }

  std::int64_t width_;
};

}  // namespace stepscope::testing
