// Every pass, switched over alone (off, or on where it is off by default), leaves losses and gradients of real models what
// they were within rounding. Gradients are compared by their own norm: parameters move by the learning rate times them,
// which hides what is wrong with small ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/passes/pipeline.h"
#include "engine/train/session.h"
#include "tests/support/models.h"

namespace stepscope {
namespace {

using testing::TestModel;

struct Outcome {
  std::vector<double> losses;
  std::map<std::string, Tensor> gradients;  // of the first step
};

// `pass`: switched to what it is not by default.
Outcome train(const TestModel& model, const Pass* pass) {
  Outcome outcome;
  auto session = Session::open(model.model, {}, {});
  EXPECT_TRUE(session.has_value());
  if (!session) return outcome;
  TrainOptions options;
  // Plain descent: Adam divides by gradients that are almost zero, which makes rounding visible in single parameters.
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"data", model.data.string()}, {"loss", model.loss}, {"optimizer", "sgd"}, {"lr", "0.01"}, {"threads", "2"}})
    EXPECT_TRUE(applySetting(options, name, value, "test").has_value());
  if (pass)
    EXPECT_TRUE(
        applySetting(options, fmt::format("pass.{}", pass->name), pass->enabled == PassSwitch::kOff ? "on" : "off", "test")
            .has_value());
  EXPECT_TRUE((*session)->setOptions(options).has_value());
  (*session)->keepGradients(true);
  const Status built = (*session)->build();
  EXPECT_TRUE(built.has_value()) << built.error().message;
  for (int step = 0; built && step < 2; ++step) {
    auto record = (*session)->step();
    EXPECT_TRUE(record.has_value()) << record.error().message;
    if (record) outcome.losses.push_back(record->loss());
    if (step > 0) continue;
    for (const auto& [name, view] : (*session)->trained().named(false))
      if (auto gradient = (*session)->trained().gradient(name)) outcome.gradients[name] = std::move(*gradient);
  }
  return outcome;
}

double norm(const Tensor& tensor) {
  double sum = 0;
  for (std::int64_t k = 0; k < tensor.elements(); ++k)
    sum += elementAsDouble(tensor.view(), k) * elementAsDouble(tensor.view(), k);
  return std::sqrt(sum);
}

double distance(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (std::int64_t k = 0; k < a.elements(); ++k) {
    const double difference = elementAsDouble(a.view(), k) - elementAsDouble(b.view(), k);
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

std::vector<Pass> switchedPasses() {
  std::vector<Pass> passes;
  for (const PassList& list : pipeline())
    for (const Pass& pass : list.passes)
      if (pass.enabled != PassSwitch::kMandatory &&
          std::ranges::none_of(passes, [&](const Pass& other) { return other.name == pass.name; }))
        passes.push_back(pass);
  return passes;
}

std::vector<TestModel> smallModels() {
  std::vector<TestModel> models;
  for (const TestModel& model : testing::testModels())
    if (model.name != "resnet") models.push_back(model);
  return models;
}

class PassesOnModel : public ::testing::TestWithParam<TestModel> {};

TEST_P(PassesOnModel, NumbersAreTheSameWithEachPassSwitchedOver) {
  const Outcome all = train(GetParam(), nullptr);
  ASSERT_EQ(all.losses.size(), 2u);
  ASSERT_FALSE(all.gradients.empty());
  // Some gradients are zero but for rounding, such as those of a bias before Softmax.
  double whole = 0;
  for (const auto& [parameter, tensor] : all.gradients) whole += norm(tensor) * norm(tensor);
  whole = std::sqrt(whole);
  for (const Pass& pass : switchedPasses()) {
    const std::string_view name = pass.name;
    const Outcome without = train(GetParam(), &pass);
    ASSERT_EQ(without.losses.size(), 2u) << name;
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_NEAR(without.losses[i], all.losses[i], 2e-5 * (1 + std::abs(all.losses[i]))) << name;
    ASSERT_EQ(without.gradients.size(), all.gradients.size()) << name;
    for (const auto& [parameter, tensor] : all.gradients)
      EXPECT_LE(distance(tensor, without.gradients.at(parameter)), 2e-5 * norm(tensor) + 1e-7 * whole)
          << name << " changes the gradient of " << parameter << ", norm " << norm(tensor);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PassesOnModel, ::testing::ValuesIn(smallModels()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace stepscope
