// Random subsets of the options that must not change what is learned: passes, threads, memory, kernels. A model trains to
// the same losses with each as with the defaults. CI tries a few; the label `long` tries at least 200 over all models.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "engine/passes/pipeline.h"
#include "engine/train/session.h"
#include "tests/support/models.h"

namespace stepscope {
namespace {

using testing::TestModel;
using Settings = std::map<std::string, std::string>;

constexpr int kSteps = 3;

// What a person may switch without learning something else. Passes that are on are switched off in half of the draws, those
// that are off are switched on.
Settings draw(std::mt19937& random) {
  Settings settings;
  const auto coin = [&] { return random() % 2 == 0; };
  for (const PassList& list : pipeline())
    for (const Pass& pass : list.passes)
      if (pass.enabled != PassSwitch::kMandatory && coin())
        settings[fmt::format("pass.{}", pass.name)] = pass.enabled == PassSwitch::kOff ? "on" : "off";
  if (coin()) settings["threads"] = std::to_string(1 + random() % 3);
  if (coin()) settings["deterministic"] = "threads";
  for (const char* name : {"memory.inplace", "memory.reuse", "record.flight"})
    if (random() % 3 == 0) settings[name] = "off";
  if (random() % 4 == 0) settings["recompute.budget"] = "200000";
  return settings;
}

Result<std::vector<double>> losses(const TestModel& model, const Settings& drawn) {
  SS_ASSIGN(const auto session, Session::open(model.model, {}, {}));
  TrainOptions options;
  // Plain descent: Adam divides by gradients that are almost zero, which makes rounding visible.
  Settings settings{
      {"data", model.data.string()}, {"loss", model.loss}, {"optimizer", "sgd"}, {"lr", "0.01"}, {"threads", "2"}};
  for (const auto& [name, value] : drawn) settings[name] = value;
  for (const auto& [name, value] : settings) SS_TRY(applySetting(options, name, value, "test"));
  SS_TRY(session->setOptions(options));
  SS_TRY(session->build());
  std::vector<double> result;
  for (int step = 0; step < kSteps; ++step) {
    SS_ASSIGN(const snapshot::StepRecord record, session->step());
    result.push_back(record.loss());
  }
  return result;
}

std::string text(const Settings& settings) {
  std::string all;
  for (const auto& [name, value] : settings) all += fmt::format(" --set {}={}", name, value);
  return all;
}

// `subsets` of them, from the seed; a failure prints what to set.
void trySubsets(const TestModel& model, int subsets, unsigned seed) {
  const auto expected = losses(model, {});
  ASSERT_TRUE(expected) << expected.error().message;
  std::mt19937 random(seed);
  for (int i = 0; i < subsets; ++i) {
    const Settings settings = draw(random);
    const auto found = losses(model, settings);
    ASSERT_TRUE(found) << model.name << text(settings) << ": " << found.error().message;
    for (int step = 0; step < kSteps; ++step) {
      const auto at = static_cast<std::size_t>(step);
      EXPECT_NEAR((*found)[at], (*expected)[at], 1e-4 * (1 + std::abs((*expected)[at])))
          << model.name << " step " << step << text(settings);
    }
  }
}

std::vector<TestModel> allModels() {
  std::vector<TestModel> models = testing::testModels();
  for (TestModel& model : testing::furtherModels()) models.push_back(std::move(model));
  return models;
}
unsigned seedOf(const std::string& name) {
  unsigned seed = 1;
  for (const char c : name) seed = seed * 31 + static_cast<unsigned char>(c);
  return seed;
}

class OptionSubsets : public ::testing::TestWithParam<TestModel> {};
class LongOptionSubsets : public OptionSubsets {};

TEST_P(OptionSubsets, TrainToTheSameLosses) { trySubsets(GetParam(), 2, seedOf(GetParam().name)); }
TEST_P(LongOptionSubsets, TrainToTheSameLosses) { trySubsets(GetParam(), 10, 7 + seedOf(GetParam().name)); }

const auto nameOf = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Models, OptionSubsets, ::testing::ValuesIn(allModels()), nameOf);
INSTANTIATE_TEST_SUITE_P(Models, LongOptionSubsets, ::testing::ValuesIn(allModels()), nameOf);

// 21 models of ten draws each, where the corpus lies next to the tree.
TEST(LongOptionSubsetsOfAll, AreAtLeastTwoHundred) {
  if (allModels().size() <= 2) GTEST_SKIP() << "no corpus";
  EXPECT_GE(10 * allModels().size(), 200u);
}

}  // namespace
}  // namespace stepscope
