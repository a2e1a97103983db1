// `stepscope evaluate` as a user runs it, also of what training saved and exported.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/app/cli/program.h"
#include "tests/app/cli/samples.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

std::vector<nlohmann::json> eventsIn(const Answer& answer, const std::string& name) {
  std::vector<nlohmann::json> events;
  std::istringstream lines(answer.text);
  for (std::string text; std::getline(lines, text);)
    if (text.starts_with("{"))
      if (auto event = nlohmann::json::parse(text); event["event"] == name) events.push_back(std::move(event));
  return events;
}

TEST(EvaluateCommand, TellsLossAndAccuracyOfAllBatches) {
  const TemporaryFolder folder;
  const Answer answer = run("evaluate " + kDigitsWithData + "--json", folder.path());
  ASSERT_EQ(answer.exitCode, 0) << answer.text;
  const auto batches = eventsIn(answer, "evaluated_batch"), all = eventsIn(answer, "evaluation");
  ASSERT_EQ(all.size(), 1u) << answer.text;
  ASSERT_EQ(std::ssize(batches), all[0]["batches"].get<std::int64_t>());
  double sum = 0;
  std::int64_t labels = 0, correct = 0;
  for (const auto& batch : batches) {
    const auto counted = batch["labels"].get<std::int64_t>();
    sum += batch["loss"].get<double>() * static_cast<double>(counted);
    labels += counted;
    correct += batch["correct"].get<std::int64_t>();
  }
  ASSERT_GT(labels, 0);
  EXPECT_NEAR(all[0]["loss"].get<double>(), sum / static_cast<double>(labels), 1e-9);
  EXPECT_NEAR(all[0]["accuracy"].get<double>(), static_cast<double>(correct) / static_cast<double>(labels), 1e-12);
  EXPECT_NEAR(all[0]["perplexity"].get<double>(), std::exp(all[0]["loss"].get<double>()), 1e-9);
  EXPECT_FALSE(all[0]["synthetic"]);
}

TEST(EvaluateCommand, TakesTheParametersOfATraining) {
  const TemporaryFolder folder;
  const std::string weights = (folder.path() / "w.safetensors").string();
  ASSERT_EQ(
      run("train " + kDigitsWithData + "--optimizer adamw --lr 0.01 --steps 40 --save " + weights, folder.path()).exitCode,
      0);
  const Answer before = run("evaluate " + kDigitsWithData + "--json", folder.path()),
               after = run("evaluate " + kDigitsWithData + "--json --init-from " + weights, folder.path());
  ASSERT_EQ(after.exitCode, 0) << after.text;
  EXPECT_LT(eventsIn(after, "evaluation")[0]["loss"].get<double>(), eventsIn(before, "evaluation")[0]["loss"].get<double>());
  const Answer text = run("evaluate " + kDigitsWithData + "--batches 2 --init-from " + weights, folder.path());
  for (const char* part : {"batch 1  loss", "2 batches of the data", "accuracy", "running statistics frozen"})
    EXPECT_NE(text.text.find(part), std::string::npos) << part << "\n" << text.text;
}

TEST(EvaluateCommand, CountsNoBatchTwice) {
  const TemporaryFolder folder;
  const Answer all = run("evaluate " + kDigitsWithData + "--json", folder.path());
  const auto entries = eventsIn(all, "evaluation").at(0)["batches"].get<std::int64_t>();
  const Answer more = run("evaluate " + kDigitsWithData + "--batches " + std::to_string(entries + 1), folder.path());
  EXPECT_EQ(more.exitCode, 1);
  EXPECT_NE(more.text.find(fmt::format("option 'batches': found {}; expected at most {}, the entries of the data",
                                       entries + 1, entries)),
            std::string::npos)
      << more.text;
  EXPECT_EQ(run("evaluate " + kDigitsWithData + "--batches " + std::to_string(entries), folder.path()).exitCode, 0);
}

// What a processor makes of Inf - Inf has a sign; nobody is told of it.
TEST(EvaluateCommand, ANaNHasNoSign) {
  const TemporaryFolder folder;
  const std::string weights = (folder.path() / "w.safetensors").string();
  run("train " + kDigitsWithData + "--optimizer sgd --lr 1e30 --steps 3 --save " + weights, folder.path());
  const Answer answer = run("evaluate " + kDigitsWithData + "--batches 2 --init-from " + weights, folder.path());
  EXPECT_EQ(answer.exitCode, 1);
  for (const char* part : {"batch 1  loss nan", "the data: loss nan", "perplexity nan", "error: loss: nan over 2 batches"})
    EXPECT_NE(answer.text.find(part), std::string::npos) << part << "\n" << answer.text;
  EXPECT_EQ(answer.text.find("-nan"), std::string::npos) << answer.text;
  const Answer study = run("precision " + kDigitsWithData + "--init-from " + weights, folder.path());
  EXPECT_EQ(study.text.find("-nan"), std::string::npos) << study.text;
}

TEST(EvaluateCommand, RefusesFewerThanNoBatches) {
  const TemporaryFolder folder;
  const Answer answer = run("evaluate " + kDigitsWithData + "--batches=-1", folder.path());
  EXPECT_EQ(answer.exitCode, 2) << answer.text;
}

}  // namespace
}  // namespace stepscope::testing
