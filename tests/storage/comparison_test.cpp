#include "storage/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Change {
  std::int64_t from = 1'000;  // first step whose numbers are changed
  double lossBy = 0, normBy = 0;
  bool lossNan = false;
  std::int64_t slower = 0;  // nanoseconds more for instruction 0
};

class CompareRuns : public ::testing::Test {
 protected:
  void record(const Change& change, std::int64_t first = 0, std::int64_t steps = 10, const char* optimizer = nullptr,
              std::int64_t morePersistent = 0) {
    auto recorder = Recorder::start(Project::openForWriting(path()).value()).value();
    RunInfo info = testing::sampleRunInfo();
    if (optimizer) info.optimizer = optimizer;
    if (optimizer && info.options.size() > 0) info.options[0].set_value("changed");
    recorder->beginRun(info);
    recorder->phases(testing::samplePhases());
    recorder->graph(testing::sampleGraph({1, 0}));
    snapshot::Plan plan = testing::samplePlan({1, 0});
    plan.set_persistent_bytes(plan.persistent_bytes() + morePersistent);
    recorder->plan(plan);
    for (std::int64_t step = first; step < first + steps; ++step) {
      auto row = testing::sampleStep(plan, step);
      if (step >= change.from) {
        row.set_loss(change.lossNan ? kNan : row.loss() + change.lossBy);
        row.set_gradient_norm(row.gradient_norm() + change.normBy);
      }
      if (row.spans_size() > 0) row.mutable_spans(0)->set_end_ns(row.spans(0).end_ns() + change.slower);
      recorder->step(row);
    }
    recorder->endRun(RunStatus::kFinished);
    ASSERT_TRUE(recorder->close());
  }
  RunComparison compare(const Tolerance& tolerance = {}) {
    auto result = compareRuns(Project::openReadOnly(path()).value(), 1, 2, tolerance);
    EXPECT_TRUE(result) << result.error().message;
    return result.value_or(RunComparison{});
  }
  std::filesystem::path path() const { return folder_ / "p.stepscope"; }

 private:
  testing::TemporaryFolder folder_;
};

TEST(Agree, NanEqualsNanAndAnInfinityItsEqual) {
  const Tolerance t{0.01, 0};
  EXPECT_TRUE(agree(kNan, kNan, t));
  EXPECT_TRUE(agree(kInf, kInf, t));
  EXPECT_FALSE(agree(kInf, -kInf, t));
  EXPECT_FALSE(agree(kNan, 1, t));
  EXPECT_FALSE(agree(1, kInf, t));
  EXPECT_TRUE(agree(1.009, 1, t));
  EXPECT_FALSE(agree(1.011, 1, t));
}

TEST_F(CompareRuns, EqualRunsHaveNoDifference) {
  record({});
  record({});
  const RunComparison c = compare({0, 0});
  EXPECT_FALSE(c.steps.unequal);
  EXPECT_FALSE(c.steps.tolerance);
  EXPECT_EQ(c.steps.both, 10);
  EXPECT_TRUE(c.options.empty());
  ASSERT_FALSE(c.ops.empty());
  for (const auto& op : c.ops) EXPECT_EQ(op.difference(), 0) << op.name;
  for (const auto& m : c.memory) EXPECT_EQ(m.a, m.b) << m.name;
  ASSERT_FALSE(c.buildPhases.empty());
  ASSERT_FALSE(c.stepPhases.empty());
}

TEST_F(CompareRuns, TheFirstUnequalNumberAndTheFirstDivergenceAreFoundSeparately) {
  record({});
  record({3, 1e-9, 0, false, 0});
  RunComparison c = compare({1e-6, 0});
  ASSERT_TRUE(c.steps.unequal);
  EXPECT_EQ(c.steps.unequal->step, 3);
  EXPECT_EQ(c.steps.unequal->quantity, "loss");
  EXPECT_NE(c.steps.unequal->a, c.steps.unequal->b);
  EXPECT_FALSE(c.steps.tolerance);
  c = compare({0, 1e-12});
  ASSERT_TRUE(c.steps.tolerance);
  EXPECT_EQ(c.steps.tolerance->step, 3);
}

TEST_F(CompareRuns, AGradientNormDivergesBeforeTheLossOfTheNextStep) {
  record({});
  record({5, 0, 0.5, false, 0});
  const RunComparison c = compare();
  ASSERT_TRUE(c.steps.tolerance);
  EXPECT_EQ(c.steps.tolerance->step, 5);
  EXPECT_EQ(c.steps.tolerance->quantity, "gradient norm");
}

TEST_F(CompareRuns, ANanBesideANumberIsADivergence) {
  record({});
  record({4, 0, 0, true, 0});
  const RunComparison c = compare({1e9, 1e9});
  ASSERT_TRUE(c.steps.tolerance);
  EXPECT_EQ(c.steps.tolerance->step, 4);
  EXPECT_TRUE(std::isnan(c.steps.tolerance->b.value()));
}

TEST_F(CompareRuns, StepsAreMatchedByTheirNumber) {
  record({}, 0, 10);
  record({}, 4, 10);
  const RunComparison c = compare();
  EXPECT_EQ(c.steps.both, 6);
  EXPECT_EQ(c.steps.onlyA, 4);
  EXPECT_EQ(c.steps.onlyB, 4);
  EXPECT_FALSE(c.steps.unequal);
}

TEST_F(CompareRuns, OptionsTimeAndMemoryThatDifferAreNamed) {
  record({});
  record({1'000, 0, 0, false, 5'000}, 0, 10, "sgd", 4096);
  const RunComparison c = compare();
  ASSERT_FALSE(c.options.empty());
  bool changed = false;
  for (const auto& o : c.options) changed = changed || (o.b == "changed" && o.a != "changed");
  EXPECT_TRUE(changed);
  EXPECT_NEAR(c.ops.front().difference(), 5'000, 1e-6);  // one execution of instruction 0 per step
  ASSERT_EQ(c.memory.size(), 5u);
  for (const auto& m : c.memory) {  // persistent memory is part of what is planned and measured, not of the arena
    const std::int64_t more = m.name == "arena" || m.name == "lower bound" ? 0 : 4096;
    EXPECT_EQ(m.b.value() - m.a.value(), more) << m.name;
  }
}

TEST_F(CompareRuns, ARunThatIsNotThereIsNamedWithThoseThatAre) {
  record({});
  record({});
  const auto project = Project::openReadOnly(path()).value();
  const auto result = compareRuns(project, 1, 7);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
  EXPECT_NE(result.error().message.find("run '7'"), std::string::npos) << result.error().message;
  EXPECT_NE(result.error().message.find("1, 2"), std::string::npos) << result.error().message;
  for (const Tolerance& bad : {Tolerance{-1, 0}, Tolerance{0, kNan}, Tolerance{kInf, 0}})
    EXPECT_EQ(compareRuns(project, 1, 2, bad).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace stepscope::storage
