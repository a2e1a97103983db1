#include "storage/comparison.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "storage/report/comparison_document.h"
#include "storage/report/html_writer.h"
#include "storage/report/report.h"
#include "storage/report/text_writer.h"
#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// Outputs of the graph of these runs: of the first node and of the last backward one.
struct Ends {
  std::int32_t firstId = -1, lastId = -1;
  std::string first, last;
};
Ends endsOf(const snapshot::Graph& graph) {
  Ends ends;
  for (const auto& node : graph.nodes()) {
    if (node.outputs_size() == 0) continue;
    if (ends.firstId < 0) ends.firstId = node.outputs(0);
    if (node.phase() == snapshot::BACKWARD) ends.lastId = node.outputs(0);
  }
  for (const auto& v : graph.values()) {
    if (v.id() == ends.firstId) ends.first = v.name();
    if (v.id() == ends.lastId) ends.last = v.name();
  }
  return ends;
}

struct Change {
  std::int64_t from = 1'000;  // first step whose numbers are changed
  double lossBy = 0, normBy = 0;
  bool lossNan = false;
  std::int64_t slower = 0;   // nanoseconds more for instruction 0
  double valueBy = 0;        // to the norms of the values with statistics
  bool normed = true;        // steps have a gradient norm, or gradients that make one
  bool clipped = true;       // its norm is computed in every step; otherwise every third step recorded its gradients
  std::int64_t onlyIn = -1;  // slower in this step alone
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
      if (!change.normed) {
        row.set_has_gradient_norm(false);
        row.clear_statistics();
      }
      if (!change.clipped) {
        row.set_has_gradient_norm(false);
        row.clear_statistics();
        if (step % 3 == 0) recordGradients(row, {3, step >= change.from ? 4 + change.normBy : 4});
      }
      if (row.spans_size() > 0 && (change.onlyIn < 0 || change.onlyIn == step))
        row.mutable_spans(0)->set_end_ns(row.spans(0).end_ns() + change.slower);
      recorder->step(row);
      if (withStatistics) recordStatistics(*recorder, step, change);
    }
    recorder->endRun(RunStatus::kFinished);
    ASSERT_TRUE(recorder->close());
  }
  RunComparison compare(const Tolerance& tolerance = {}) {
    auto result = compareRuns(Project::openReadOnly(path()).value(), 1, 2, tolerance);
    EXPECT_TRUE(result) << result.error().message;
    return result.value_or(RunComparison{});
  }
  static void recordGradients(snapshot::StepRecord& row, const std::vector<double>& norms) {
    for (const char* kind : {"parameter", "gradient"})
      for (std::size_t i = 0; i < norms.size(); ++i) {
        auto& s = *row.add_statistics();
        s.set_kind(kind);
        s.set_of("p" + std::to_string(i));
        s.set_name(std::string(kind) + std::to_string(i));
        s.set_value(static_cast<std::int32_t>(100 + i + (kind[0] == 'g' ? 50 : 0)));
        s.set_node(-1);
        s.mutable_statistics()->set_count(4);
        s.mutable_statistics()->set_norm(norms[i]);
      }
  }
  // Of both ends of the graph and of a name that no graph has, parted as `change` says.
  void recordStatistics(Recorder& recorder, std::int64_t step, const Change& change) {
    const Ends ends = endsOf(testing::sampleGraph({1, 0}));
    const bool parted = step >= change.from;
    const auto record = [&](std::int32_t id, const std::string& name, double norm) {
      snapshot::TensorStatistics s;
      s.set_count(8);
      s.set_norm(norm);
      if (parted && change.lossNan) s.set_nan(1);
      recorder.tensorStats(step, id, name, s);
    };
    record(ends.lastId, ends.last, parted ? 1 + change.valueBy : 1);
    record(ends.firstId, ends.first, parted ? 2 + change.valueBy : 2);
    record(9'999, "state", 3);
  }
  bool withStatistics = false;
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

// One of them was walked, say: nothing was measured that could differ.
TEST_F(CompareRuns, ANumberThatOneRunDidNotMeasureIsNoDivergence) {
  record({});
  record({.normed = false});
  RunComparison c = compare({0, 0});
  EXPECT_FALSE(c.steps.unequal);
  EXPECT_FALSE(c.steps.tolerance);
  EXPECT_EQ(c.steps.outside, 0);
  EXPECT_EQ(c.steps.norm.onlyA, c.steps.both);
  EXPECT_EQ(unmeasuredText(c.steps), "B did not measure the gradient norm");
  EXPECT_NE(plainTextOf(comparisonDocument(c, {})).find("B did not measure the gradient norm"), std::string::npos);
  c.steps.norm = {1, 3};
  EXPECT_EQ(unmeasuredText(c.steps),
            "A did not measure the gradient norm in 3 of 10 steps; B did not measure the gradient norm in 1 of 10 steps");
  c.steps.norm = {};
  EXPECT_EQ(unmeasuredText(c.steps), "");
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

TEST_F(CompareRuns, WarmUpAloneIsNotSetAgainstOtherSteps) {
  record({});
  record({1'000, 0, 0, false, 5'000}, 0, 1);
  const RunComparison c = compare();
  EXPECT_NE(c.warmUp.find("run B recorded no step but warm-up"), std::string::npos) << c.warmUp;
  ASSERT_FALSE(c.ops.empty());
  ASSERT_FALSE(c.stepPhases.empty());
  for (const auto* rows : {&c.ops, &c.stepPhases})
    for (const TimeDifference& row : *rows) {
      EXPECT_FALSE(row.alike) << row.name;
      EXPECT_EQ(row.difference(), 0) << row.name;
      EXPECT_TRUE(row.a && row.b) << row.name << ": both were measured";
    }
  for (const TimeDifference& row : c.buildPhases) EXPECT_TRUE(row.alike) << row.name;
  EXPECT_NE(plainTextOf(comparisonDocument(c, {})).find("no step but warm-up"), std::string::npos);
}

TEST_F(CompareRuns, TwoRunsOfWarmUpAloneAreSetAgainstEachOther) {
  record({}, 0, 1);
  record({1'000, 0, 0, false, 5'000}, 0, 1);
  const RunComparison c = compare();
  EXPECT_EQ(c.warmUp, "");
  EXPECT_NEAR(c.ops.front().difference(), 5'000, 1e-6);
}

// Somebody else had the core for a moment.
TEST_F(CompareRuns, OneLongStepIsNoDifference) {
  record({});
  Change once;
  once.slower = 4'000'000;
  once.onlyIn = 7;
  record(once);
  const RunComparison c = compare();
  ASSERT_FALSE(c.ops.empty());
  for (const auto* rows : {&c.ops, &c.stepPhases})
    for (const TimeDifference& row : *rows) EXPECT_LT(std::abs(row.difference()), 10'000) << row.name << ' ' << row.phase;
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

// Another number of threads explains last bits that differ, unless sums do not depend on it.
TEST_F(CompareRuns, AComparisonIsADocumentLikeThatOfARun) {
  record({});
  record({.from = 4, .lossBy = 0.25, .slower = 1'000'000}, 0, 10, "lamb<script>");
  const doc::Document document = comparisonDocument(compare(), {});
  const std::string text = plainTextOf(document), page = htmlOf(document);
  EXPECT_NE(text.find("step 4, loss: "), std::string::npos) << text;
  EXPECT_NE(text.find("diverge"), std::string::npos) << text;
  EXPECT_NE(text.find("lamb<script>"), std::string::npos) << text;
  EXPECT_NE(page.find("lamb&lt;script&gt;"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  for (const char* id : {"numbers", "options", "time", "ops", "memory", "startup"})
    EXPECT_NE(page.find(fmt::format("<section id=\"{}\"", id)), std::string::npos) << id;
  const auto file = path().parent_path() / "c.html";
  EXPECT_TRUE(writeReport(document, file));
  EXPECT_GT(std::filesystem::file_size(file), 1000U);
  EXPECT_EQ(writeReport(document, path().parent_path() / "c.csv").error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(plainTextOf(comparisonDocument(RunComparison{}, {})).find("no step to compare"), std::string::npos);
}

TEST_F(CompareRuns, AnotherNumberOfThreadsIsAReason) {
  const auto recordWith = [this](int threads, const char* deterministic) {
    auto recorder = Recorder::start(Project::openForWriting(path()).value()).value();
    RunInfo info = testing::sampleRunInfo();
    info.threads = threads;
    auto& option = info.options.emplace_back();
    option.set_name("deterministic");
    option.set_value(deterministic);
    recorder->beginRun(info);
    ASSERT_TRUE(recorder->close());
  };
  recordWith(1, "run");
  recordWith(4, "run");
  recordWith(1, "threads");
  recordWith(4, "threads");
  const auto project = Project::openReadOnly(path()).value();
  const auto reason = [&](std::int64_t a, std::int64_t b) { return compareRuns(project, a, b).value().threads; };
  EXPECT_TRUE(reason(1, 2).starts_with("1 and 4 threads: ")) << reason(1, 2);
  EXPECT_FALSE(reason(2, 3).empty());
  EXPECT_EQ(reason(3, 4), "");
  EXPECT_EQ(reason(1, 3), "");
}

TEST_F(CompareRuns, StatisticsOfValuesDivergeInTheOrderOfExecution) {
  withStatistics = true;
  record({});
  record({4, 0.5, 0, false, 0, 0.25});
  const Ends ends = endsOf(testing::sampleGraph({1, 0}));
  const RunComparison c = compare();
  EXPECT_EQ(c.steps.statistics, 40) << "three watched values in ten steps, and five values that two steps recorded";
  ASSERT_TRUE(c.steps.tolerance);
  EXPECT_EQ(c.steps.tolerance->step, 4);
  EXPECT_EQ(c.steps.tolerance->quantity, "norm");
  EXPECT_EQ(c.steps.tolerance->value, ends.first);
  EXPECT_EQ(c.steps.tolerance->a, 2);
  EXPECT_EQ(c.steps.tolerance->b, 2.25);
  ASSERT_EQ(c.steps.outside, 18);  // two values and the loss in six steps; "state" is the same
  ASSERT_EQ(c.steps.divergences.size(), 18u);
  EXPECT_EQ(c.steps.divergences[1].quantity, "loss");
  EXPECT_EQ(c.steps.divergences[1].phase, "forward");
  EXPECT_EQ(c.steps.divergences[2].value, ends.last);
  EXPECT_EQ(c.steps.divergences[2].phase, "backward");
  EXPECT_EQ(c.steps.numbers.size(), 10u);
  EXPECT_EQ(c.steps.numbers[4].lossB.value() - c.steps.numbers[4].lossA.value(), 0.5);
}

TEST_F(CompareRuns, WithoutClippingTheNormIsThatOfTheRecordedGradients) {
  record({.clipped = false});
  record({.from = 6, .normBy = 8, .clipped = false});
  const RunComparison c = compare();
  ASSERT_EQ(c.steps.numbers.size(), 10u);
  for (const auto& n : c.steps.numbers) {
    EXPECT_EQ(n.normA.has_value(), n.step % 3 == 0) << n.step;
    if (!n.normA) continue;
    EXPECT_DOUBLE_EQ(*n.normA, 5);
    EXPECT_DOUBLE_EQ(n.normB.value(), n.step < 6 ? 5 : std::hypot(3, 12));
  }
}

TEST_F(CompareRuns, NoToleranceMakesANanOfAValueEqualToNone) {
  withStatistics = true;
  record({});
  record({4, 0, 0, true, 0, 0});
  const RunComparison c = compare({1e9, 1e9});
  ASSERT_TRUE(c.steps.tolerance);
  EXPECT_EQ(c.steps.tolerance->step, 4);
  EXPECT_EQ(c.steps.tolerance->quantity, "NaN");
}

TEST_F(CompareRuns, TimesCarryTheirStatistics) {
  record({});
  record({1'000, 0, 0, false, 5'000});
  const RunComparison c = compare();
  const TimeDifference& op = c.ops.front();
  EXPECT_GT(op.timeA.n, 0);
  EXPECT_EQ(op.timeA.n, op.timeB.n);
  EXPECT_GE(op.timeB.p95, op.timeB.median);
  EXPECT_GT(op.timeB.max, op.timeA.max);
  ASSERT_FALSE(c.buildPhases.empty());
  EXPECT_EQ(c.buildPhases[0].timeA.n, 1);
  EXPECT_EQ(static_cast<double>(c.buildPhases[0].timeA.median), c.buildPhases[0].a);
}

TEST_F(CompareRuns, ARunOfAnotherProject) {
  record({});
  record({3, 1, 0, false, 0});
  testing::TemporaryFolder folder;
  testing::recordSample(folder / "other.stepscope", {1, 5});
  const auto here = Project::openReadOnly(path()).value(), there = Project::openReadOnly(folder / "other.stepscope").value();
  const auto c = compareRuns(here, 2, there, 1);
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->a.id, 2);
  EXPECT_EQ(c->b.steps, 5);
  EXPECT_EQ(c->steps.both, 5);
  EXPECT_EQ(c->steps.tolerance.value().step, 3);
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
