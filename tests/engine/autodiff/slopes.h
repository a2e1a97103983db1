// Central differences of the loss of a small model, for gradients that no formula in the test gives.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "tests/engine/passes/small_step.h"

namespace stepscope::testing {

// `graph` makes the text of the model with double initializer `name` of these values; the gradient of `name` must agree with
// (loss(v + h) - loss(v - h)) / 2h for every element. Values lie away from kinks.
inline void expectSlopes(const std::function<std::string(const std::vector<double>&)>& graph, const std::string& name,
                         const std::vector<double>& values, int opset = 18) {
  constexpr double kStep = 1e-5;
  const SmallStepOptions inDouble{11, {}, {}};
  const auto loss = [&](std::size_t i, double by) {
    std::vector<double> moved = values;
    moved[i] += by;
    const auto step = smallStep(graph(moved), opset, {}, inDouble);
    EXPECT_TRUE(step.has_value()) << step.error().message;
    return step ? step->loss : 0;
  };
  const auto center = smallStep(graph(values), opset, {name}, inDouble);
  ASSERT_TRUE(center.has_value()) << center.error().message;
  const std::vector<double>& found = center->gradients.at(name);
  ASSERT_EQ(found.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(found[i], (loss(i, kStep) - loss(i, -kStep)) / (2 * kStep), 1e-6) << name << "[" << i << "]";
}

// loss = sum of y.
inline std::string sumOf(const std::string& y) { return node("ReduceSum", y, "loss", attribute("keepdims", 0)); }

}  // namespace stepscope::testing
