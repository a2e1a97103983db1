// Every pass, switched off alone, leaves losses and parameters of real models what they were within rounding.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/passes/pipeline.h"
#include "engine/train/session.h"
#include "tests/support/models.h"

namespace stepscope {
namespace {

using testing::TestModel;

struct Outcome {
  std::vector<double> losses;
  std::map<std::string, Tensor> parameters;
};

Outcome train(const TestModel& model, const std::string& passOff) {
  Outcome outcome;
  auto session = Session::open(model.model, {}, {});
  EXPECT_TRUE(session.has_value());
  if (!session) return outcome;
  TrainOptions options;
  // Plain descent: Adam divides by gradients that are almost zero, which makes rounding visible in single parameters.
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"data", model.data.string()}, {"loss", model.loss}, {"optimizer", "sgd"}, {"lr", "0.01"}, {"threads", "2"}})
    EXPECT_TRUE(applySetting(options, name, value, "test").has_value());
  if (!passOff.empty()) EXPECT_TRUE(applySetting(options, "pass." + passOff, "off", "test").has_value());
  EXPECT_TRUE((*session)->setOptions(options).has_value());
  const Status built = (*session)->build();
  EXPECT_TRUE(built.has_value()) << built.error().message;
  for (int step = 0; built && step < 2; ++step) {
    auto record = (*session)->step();
    EXPECT_TRUE(record.has_value()) << record.error().message;
    if (record) outcome.losses.push_back(record->loss());
  }
  for (const auto& [name, view] : (*session)->namedState(false))
    outcome.parameters[name] = Tensor(view.dtype, view.dims, nullptr, view.data).clone();
  return outcome;
}

std::vector<std::string> passNames() {
  std::vector<std::string> names;
  for (const PassList& list : pipeline())
    for (const Pass& pass : list.passes)
      if (pass.enabled != PassSwitch::kMandatory && std::find(names.begin(), names.end(), pass.name) == names.end())
        names.emplace_back(pass.name);
  return names;
}

std::vector<TestModel> smallModels() {
  std::vector<TestModel> models;
  for (const TestModel& model : testing::testModels())
    if (model.name != "resnet") models.push_back(model);
  return models;
}

class PassesOnModel : public ::testing::TestWithParam<TestModel> {};

TEST_P(PassesOnModel, NumbersAreTheSameWithEachPassOff) {
  const Outcome all = train(GetParam(), "");
  ASSERT_EQ(all.losses.size(), 2u);
  for (const std::string& name : passNames()) {
    const Outcome without = train(GetParam(), name);
    ASSERT_EQ(without.losses.size(), 2u) << name;
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_NEAR(without.losses[i], all.losses[i], 2e-5 * (1 + std::abs(all.losses[i]))) << name;
    for (const auto& [parameter, tensor] : all.parameters) {
      const Tensor& other = without.parameters.at(parameter);
      double worst = 0;
      for (std::int64_t k = 0; k < tensor.elements(); ++k)
        worst = std::max(worst, std::abs(elementAsDouble(tensor.view(), k) - elementAsDouble(other.view(), k)) /
                                    (1 + std::abs(elementAsDouble(tensor.view(), k))));
      EXPECT_LE(worst, 2e-5) << name << " changes " << parameter;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PassesOnModel, ::testing::ValuesIn(smallModels()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace stepscope
