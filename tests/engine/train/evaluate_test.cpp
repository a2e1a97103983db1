// Evaluation: the loss of the parameters as they are, without Dropout, and nothing of the run changes.
#include "engine/train/evaluate.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "engine/train/forward.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;
using testing::stateBits;
using testing::TestModel;

std::unique_ptr<Session> opened(const TestModel& model) {
  auto session = Session::open(model.model, {}, {});
  EXPECT_TRUE(session.has_value()) << session.error().message;
  TrainOptions options;
  EXPECT_TRUE(applySetting(options, "data", model.data.string(), "test").has_value());
  EXPECT_TRUE(applySetting(options, "loss", model.loss, "test").has_value());
  EXPECT_TRUE((*session)->setOptions(options).has_value());
  return std::move(*session);
}

TEST(Evaluate, TellsTheLossesThatTrainingBeginsWith) {
  const TestModel model = testing::languageModel();  // neither Dropout nor running statistics
  auto session = openSession(model, {{"lr", "0"}});
  ASSERT_NE(session, nullptr);
  std::vector<double> losses;
  const auto evaluation = session->lab().evaluate(3, [&](const EvaluatedBatch& batch) {
    EXPECT_EQ(batch.index, std::ssize(losses));
    losses.push_back(batch.loss);
  });
  ASSERT_TRUE(evaluation.has_value()) << evaluation.error().message;
  ASSERT_EQ(losses.size(), 3u);
  for (const double loss : losses) {
    const auto record = session->step();
    ASSERT_TRUE(record.has_value());
    EXPECT_NEAR(loss, record->loss(), 1e-5 * std::abs(loss));
  }
}

TEST(Evaluate, SharesTheParametersAndChangesNothing) {
  std::vector<TestModel> models{testing::languageModel(), testing::digits()};
  for (TestModel& model : testing::corpusCases({"gpt2_dropout", "resnet", "bert_mlm", "mlp"})) models.push_back(model);
  for (const TestModel& model : models) {
    SCOPED_TRACE(model.name);
    auto session = openSession(model);
    ASSERT_NE(session, nullptr);
    for (int step = 0; step < 3; ++step) ASSERT_TRUE(session->step().has_value());
    const std::string before = stateBits(*session);
    const auto first = session->lab().evaluate(2), second = session->lab().evaluate(2);
    ASSERT_TRUE(first.has_value()) << first.error().message;
    ASSERT_TRUE(second.has_value());
    EXPECT_EQ(first->loss, second->loss) << "a Dropout is left";
    EXPECT_EQ(stateBits(*session), before);
    EXPECT_EQ(session->nextStep(), 3);
    EXPECT_TRUE(session->step().has_value());
    // A session of its own, with the parameters from a file.
    auto other = openSession(model);
    for (int step = 0; step < 3; ++step) ASSERT_TRUE(other->step().has_value());
    const auto file = std::filesystem::temp_directory_path() / ("stepscope_evaluate_" + std::to_string(getpid()));
    ASSERT_TRUE(other->trained().save(file).has_value());
    auto fresh = opened(model);
    ASSERT_TRUE(fresh->trained().load(file, false).has_value());
    const auto third = fresh->lab().evaluate(2);
    std::filesystem::remove(file);
    ASSERT_TRUE(third.has_value()) << third.error().message;
    EXPECT_NEAR(third->loss, first->loss, 1e-5 * std::abs(first->loss));
  }
}

TEST(Evaluate, CountsTheLabelsThatAreHit) {
  const auto models = testing::corpusCases({"mlp"});  // no BatchNormalization: `run` would take the batch's statistics
  if (models.empty()) GTEST_SKIP() << "the corpus is not there";
  const TestModel& model = models.front();
  auto session = opened(model);
  const auto evaluation = session->lab().evaluate(1);
  ASSERT_TRUE(evaluation.has_value()) << evaluation.error().message;
  ASSERT_TRUE(evaluation->crossEntropy);
  EXPECT_GT(evaluation->labels, 0);
  // The same from the scores.
  auto forward = opened(model);
  const Graph& graph = forward->imported();
  ValueId scores, labels;
  for (const NodeId id : graph.order())
    if (graph.node(id).op == "SoftmaxCrossEntropyLoss") {
      scores = graph.node(id).input(0);
      labels = graph.node(id).input(1);
    }
  ASSERT_TRUE(scores && labels);
  const auto outputs = runForward(*forward, {graph.value(scores).name});
  ASSERT_TRUE(outputs.has_value()) << outputs.error().message;
  const auto asked = forward->stepper().value(forward->findValue(graph.value(labels).name));
  ASSERT_TRUE(asked.has_value());
  const Tensor& found = outputs->back().second;
  const std::int64_t classes = found.dims()[1];
  std::int64_t correct = 0;
  for (std::int64_t row = 0; row < found.dims()[0]; ++row) {
    const auto values =
        found.as<float>().subspan(static_cast<std::size_t>(row * classes), static_cast<std::size_t>(classes));
    correct += std::ranges::max_element(values) - values.begin() == elementAsInt(*asked, row);
  }
  EXPECT_EQ(evaluation->labels, found.dims()[0]);
  EXPECT_EQ(evaluation->correct, correct);
}

TEST(Evaluate, LearningShowsInIt) {
  auto session = openSession(testing::digits(), {{"lr", "0.01"}});
  ASSERT_NE(session, nullptr);
  const auto before = session->lab().evaluate(0);
  for (int step = 0; step < 40; ++step) ASSERT_TRUE(session->step().has_value());
  const auto after = session->lab().evaluate(0);
  ASSERT_TRUE(before.has_value() && after.has_value());
  EXPECT_GT(after->batches, 1);
  EXPECT_LT(after->loss, before->loss);
  EXPECT_GT(after->correct, before->correct);
}

TEST(Evaluate, RefusesABegunStep) {
  auto session = openSession(testing::digits());
  ASSERT_TRUE(session->beginStep().has_value());
  const auto evaluation = session->lab().evaluate(1);
  ASSERT_FALSE(evaluation.has_value());
  EXPECT_NE(evaluation.error().message.find("a step is begun"), std::string::npos);
  EXPECT_TRUE(session->finishStep().has_value());
}

}  // namespace
}  // namespace stepscope
