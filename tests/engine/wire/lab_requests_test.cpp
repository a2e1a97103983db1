// What the laboratory is asked over the wire: trials that are told one by one and can be cancelled, a ledger, what fits,
// what makes numbers differ, a capture next to PyTorch.
#include <gtest/gtest.h>

#include "engine/snapshot/worker.pb.h"
#include "tests/engine/wire/live_worker.h"
#include "tests/support/models.h"

namespace stepscope {
namespace {

using testing::LiveWorker;

TEST(LabRequests, TellsEachTrialBeforeThatOfAll) {
  LiveWorker worker;
  worker.openDigits();
  const auto id = worker.send([](auto& r) {
    r.mutable_trials()->set_only("^pass\\.(group_updates|fuse_relu_gradient)=");
    r.mutable_trials()->set_rounds(6);
  });
  int told = 0;
  snapshot::Response response = worker.next(id);
  for (; !response.done(); response = worker.next(id)) {
    ASSERT_EQ(response.trials().trials_size(), 1);
    EXPECT_TRUE(response.trials().trials(0).verdict().empty()) << "it is given when all are there";
    ++told;
  }
  ASSERT_TRUE(response.has_trials()) << response.error().message();
  EXPECT_EQ(told, response.trials().trials_size());
  EXPECT_EQ(response.trials().trials_size(), 3);
  EXPECT_FALSE(response.trials().cancelled());
  EXPECT_EQ(worker.ask([](auto& r) { r.mutable_trials()->set_only("("); }).error().code(), "invalid_argument");
  EXPECT_EQ(worker.ask([](auto& r) { r.mutable_state(); }).state().position().step(), 0);
}

TEST(LabRequests, ACancelledSessionOfTrialsTellsWhatItMeasured) {
  LiveWorker worker;
  worker.openDigits();
  const auto id = worker.send([](auto& r) { r.mutable_trials()->set_rounds(150); });
  for (int told = 0; told < 2; ++told) ASSERT_FALSE(worker.next(id).done());
  worker.send([&](auto& r) { r.mutable_cancel()->set_id(id); });
  const snapshot::Response response = worker.last(id);
  ASSERT_TRUE(response.has_trials()) << response.error().message();
  EXPECT_TRUE(response.trials().cancelled());
  EXPECT_GE(response.trials().trials_size(), 2);
  EXPECT_LT(response.trials().trials_size(), response.trials().candidates());
  for (const auto& trial : response.trials().trials()) EXPECT_FALSE(trial.verdict().empty()) << trial.option();
  // The cancel is spent: what is asked next runs.
  EXPECT_TRUE(worker.ask([](auto& r) { r.mutable_train()->set_steps(1); }).has_step());
}

TEST(LabRequests, TrialsThatWaitAreCancelledBeforeTheyBegin) {
  LiveWorker worker;
  worker.openDigits();
  const auto train = worker.send([](auto& r) { r.mutable_train()->set_steps(std::int64_t{1} << 40); });
  const auto trials = worker.send([](auto& r) { r.mutable_trials(); });
  ASSERT_TRUE(worker.next(train).has_step());
  worker.send([&](auto& r) { r.mutable_cancel()->set_id(trials); });
  worker.send([&](auto& r) { r.mutable_cancel()->set_id(train); });
  EXPECT_EQ(worker.last(train).error().code(), "cancelled");
  EXPECT_EQ(worker.last(trials).error().code(), "cancelled");
}

TEST(LabRequests, ALedgerSumsToItsStepAndLeavesTheRunWhereItIs) {
  LiveWorker worker;
  worker.openDigits();
  EXPECT_TRUE(worker.ask([](auto& r) { r.mutable_train()->set_steps(2); }).has_step());
  EXPECT_TRUE(worker.ask([](auto& r) { r.mutable_step()->set_count(3); }).has_position());
  const auto answer = worker.ask([](auto& r) { r.mutable_ledger()->set_steps(3); });
  ASSERT_TRUE(answer.has_ledger()) << answer.error().message();
  const auto& ledger = answer.ledger();
  EXPECT_EQ(ledger.step(), 2);
  EXPECT_EQ(ledger.steps(), 3);
  std::int64_t ns = 0, flops = 0;
  for (const auto& line : ledger.lines()) {
    ns += line.ns_kernel() + line.ns_gap() + line.ns_waiting();
    flops += line.flops_useful() + line.flops_padding() + line.flops_ignored() + line.flops_recomputed();
  }
  EXPECT_EQ(ns, ledger.ns());
  EXPECT_GT(flops, 0);
  const auto plan = worker.ask([](auto& r) { r.mutable_plan(); }).plan();
  EXPECT_EQ(ledger.signature(), plan.signature());
  std::int64_t planned = 0;
  for (const auto& in : plan.instructions())
    if (!in.view()) planned += static_cast<std::int64_t>(in.flops());
  EXPECT_EQ(flops, planned);
  const auto state = worker.ask([](auto& r) { r.mutable_state(); }).state();
  EXPECT_EQ(state.position().step(), 2);
  EXPECT_EQ(state.position().instruction(), 3) << "the run stays where it is";
  EXPECT_EQ(worker.ask([](auto& r) { r.mutable_ledger()->set_steps(-1); }).error().code(), "invalid_argument");
}

TEST(LabRequests, WhatFitsIsExactAndNeedsNoNameOfTheBatch) {
  LiveWorker worker;
  worker.openDigits();
  const auto all = worker.ask([](auto& r) { r.mutable_capacity()->set_dimension("nobody"); });
  EXPECT_EQ(all.error().code(), "not_found");
  const auto answer = worker.ask([](auto& r) {
    r.mutable_capacity()->set_dimension("batch");
    r.mutable_capacity()->set_most(64);
  });
  ASSERT_TRUE(answer.has_capacity()) << answer.error().message();
  ASSERT_GT(answer.capacity().points_size(), 0);
  if (answer.capacity().dimension().empty()) return;  // its extents are numbers
  std::int64_t peak = 0;
  for (const auto& point : answer.capacity().points()) {
    EXPECT_GE(point.peak_bytes(), peak) << point.extent();
    peak = point.peak_bytes();
  }
  EXPECT_EQ(answer.capacity().largest(), 64);
}

TEST(LabRequests, AStepThatComputesWhatTheReferenceDoesHasNoCause) {
  LiveWorker worker;
  worker.openDigits();
  const auto answer = worker.ask([](auto& r) { r.mutable_bisect(); });
  ASSERT_TRUE(answer.has_bisect()) << answer.error().message();
  EXPECT_FALSE(answer.bisect().differs());
  EXPECT_GT(answer.bisect().candidates(), 0);
  EXPECT_EQ(answer.bisect().options_size(), 0);
  EXPECT_EQ(worker.ask([](auto& r) { r.mutable_bisect()->set_tolerance(2); }).error().code(), "invalid_argument");
}

// A folder that says of one parameter that its gradient is zero, and nothing of the others.
TEST(LabRequests, ComparesACaptureAndTellsEveryDifference) {
  const auto model = testing::digits();
  const std::filesystem::path folder = model.data.parent_path();
  std::string wrong;
  LiveWorker worker([&wrong](const std::filesystem::path&, const TrainOptions&) -> Result<std::optional<Golden>> {
    if (wrong.empty()) return std::optional<Golden>();
    Golden golden;
    golden.notes = {"a branch is not kept"};
    golden.gradients[wrong] = Tensor::of<float>({10}, std::vector<float>(10, 0));
    return std::optional(std::move(golden));
  });
  worker.openDigits();
  const auto compare = [&](auto& r) { r.mutable_golden()->set_folder(folder.string()); };
  EXPECT_FALSE(worker.ask(compare).golden().captured()) << "nothing of PyTorch lies there";
  const auto plan = worker.ask([](auto& r) { r.mutable_graph(); }).graph();
  for (const auto& value : plan.values())
    if (value.role() == snapshot::INITIALIZER && value.dims_size() == 1 && value.dims(0) == "10") wrong = value.name();
  ASSERT_FALSE(wrong.empty());
  const auto answer = worker.ask(compare);
  ASSERT_TRUE(answer.has_golden()) << answer.error().message();
  const auto& found = answer.golden();
  EXPECT_TRUE(found.captured());
  EXPECT_EQ(found.unchecked(), "");
  ASSERT_EQ(found.notes_size(), 1);
  EXPECT_EQ(found.notes(0), "a branch is not kept");
  // The gradients that it lacks differ too.
  int differ = 0;
  for (const auto& tensor : found.tensors()) differ += tensor.verdict() == "differs";
  EXPECT_EQ(found.alerts_size(), differ);
  std::string message;
  for (const auto& alert : found.alerts()) {
    EXPECT_EQ(alert.code(), "capture_differs");
    EXPECT_GE(alert.value(), 0) << alert.message();
    if (alert.message().find("'" + wrong + "'") != std::string::npos) message = alert.message();
  }
  EXPECT_NE(message.find("gradient '" + wrong + "' is not what PyTorch computed (10): "), std::string::npos) << message;
  // After a step its parameters are others.
  EXPECT_TRUE(worker.ask([](auto& r) { r.mutable_train()->set_steps(1); }).has_step());
  const auto later = worker.ask(compare).golden();
  EXPECT_NE(later.unchecked().find("expected step 0"), std::string::npos);
  EXPECT_EQ(later.tensors_size(), 0);
  const auto elsewhere = worker.ask([](auto& r) { r.mutable_golden()->set_folder("/nowhere"); }).golden();
  EXPECT_NE(elsewhere.unchecked().find("not that of the capture"), std::string::npos);
}

}  // namespace
}  // namespace stepscope
