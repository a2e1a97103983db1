#include "tests/engine/passes/one_pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {

std::size_t matchesOf(Sketch& s, std::string_view pass) {
  const std::size_t matches = s.apply(pass).matches;
  const std::uint64_t version = s.graph.version();
  EXPECT_EQ(s.apply(pass).matches, 0u);
  EXPECT_EQ(s.graph.version(), version);
  return matches;
}
std::string missOf(Sketch& s, std::string_view pass) {
  const std::uint64_t version = s.graph.version();
  const PassResult result = s.apply(pass);
  EXPECT_EQ(result.matches, 0u);
  EXPECT_EQ(s.graph.version(), version);
  return result.nearMisses.size() == 1 ? result.nearMisses[0].condition
                                       : std::to_string(result.nearMisses.size()) + " near misses";
}

SmallStep sameStep(const std::string& graph, const std::string& pass, const std::vector<std::string>& parameters,
                   std::map<std::string, std::string> settings) {
  settings["pass." + pass] = "on";
  const auto on = smallStep(graph, 20, parameters, {1, settings, {}});
  settings["pass." + pass] = "off";
  const auto off = smallStep(graph, 20, parameters, {1, settings, {}});
  EXPECT_TRUE(on.has_value()) << on.error().message;
  EXPECT_TRUE(off.has_value()) << off.error().message;
  if (!on || !off) return {};
  EXPECT_NEAR(on->loss, off->loss, 1e-6 * (1 + std::abs(off->loss)));
  double largest = 0;
  for (const auto& [name, gradient] : off->gradients)
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      EXPECT_NEAR(on->gradients.at(name)[i], gradient[i], 1e-6 * (1 + std::abs(gradient[i]))) << name << ' ' << i;
      largest = std::max(largest, std::abs(gradient[i]));
    }
  EXPECT_GT(largest, 0) << "gradients that are all zero show nothing";
  return *on;
}

std::vector<float> ramp(std::size_t count, float from, float step) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(from + step * static_cast<float>(i % 11));
  return values;
}
std::string sumOfSquares(const std::string& y) {
  return node("Mul", y + " " + y, "squared") + node("ReduceSum", "squared", "loss", attribute("keepdims", 0));
}

}  // namespace stepscope::testing
