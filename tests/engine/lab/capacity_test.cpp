// What capacity predicts is what a session then needs.
#include "engine/lab/capacity.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;
using testing::TestModel;

std::unique_ptr<Session> opened(const TestModel& model, const std::map<std::string, std::string>& settings = {}) {
  auto session = Session::open(model.model, {}, {});
  EXPECT_TRUE(session.has_value()) << session.error().message;
  if (!session) return nullptr;
  TrainOptions options;
  std::map<std::string, std::string> all = settings;
  all.insert({{"loss", model.loss}, {"optimizer", "adamw"}, {"threads", "2"}});
  for (const auto& [name, value] : all) {
    const Status set = applySetting(options, name, value, "test");
    EXPECT_TRUE(set.has_value()) << set.error().message;
  }
  EXPECT_TRUE((*session)->setOptions(options).has_value());
  return std::move(*session);
}

snapshot::GetCapacity question(const std::string& dimension, std::int64_t least, std::int64_t most,
                               std::int64_t memory = std::int64_t{1} << 40) {
  snapshot::GetCapacity asked;
  asked.set_dimension(dimension);
  asked.set_least(least);
  asked.set_most(most);
  asked.set_memory_bytes(memory);
  return asked;
}

std::int64_t measuredPeak(const TestModel& model, std::map<std::string, std::string> settings) {
  settings["data"] = "";
  auto session = openSession(model, settings);
  if (!session) return 0;
  snapshot::StepRecord record;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(session->step(record).has_value());
  return record.peak_bytes();
}

class CapacityOf : public ::testing::TestWithParam<TestModel> {};

TEST_P(CapacityOf, PredictsThePeakThatAStepHas) {
  for (const std::string precision : {"fp32", "bf16"})
    for (const std::int64_t batch : {1, 3}) {
      auto session = opened(GetParam(), {{"precision", precision}});
      ASSERT_TRUE(session);
      const auto report = session->lab().capacity(question("batch", batch, batch));
      ASSERT_TRUE(report.has_value()) << report.error().message;
      ASSERT_EQ(report->points_size(), 1);
      const auto& point = report->points(0);
      EXPECT_EQ(point.batch(), batch);
      EXPECT_EQ(point.recompute(), "none");
      EXPECT_TRUE(point.fits());
      EXPECT_GT(point.predicted_ns(), 0);
      const auto measured = static_cast<double>(
          measuredPeak(GetParam(), {{"dim", report->dimension() + "=" + std::to_string(batch)}, {"precision", precision}}));
      EXPECT_NEAR(static_cast<double>(point.peak_bytes()), measured, 0.01 * measured) << precision << " batch " << batch;
    }
}

std::vector<TestModel> models() {
  std::vector<TestModel> list{testing::digits(), testing::languageModel()};
  for (TestModel& model : testing::corpusCases({"bert_mlm", "gpt2_lm", "resnet"})) list.push_back(std::move(model));
  return list;
}

INSTANTIATE_TEST_SUITE_P(Models, CapacityOf, ::testing::ValuesIn(models()),
                         [](const auto& info) { return info.param.name; });

// Rows whose labels do not count need no memory where a pass leaves them out.
TEST(Capacity, CountsTheLabelsThatCount) {
  for (const TestModel& model : testing::corpusCases({"bert_mlm", "gpt2_lm"})) {
    auto session = opened(model, {{"padding", "0.75"}});
    ASSERT_TRUE(session);
    const auto report = session->lab().capacity(question("batch", 4, 4));
    ASSERT_TRUE(report.has_value()) << report.error().message;
    const auto measured =
        static_cast<double>(measuredPeak(model, {{"dim", report->dimension() + "=4"}, {"padding", "0.75"}}));
    EXPECT_NEAR(static_cast<double>(report->points(0).peak_bytes()), measured, 0.01 * measured) << model.name;
  }
}

// The largest that fits, and the next that does not; with recompute more of it.
TEST(Capacity, FindsTheLargestThatFits) {
  auto session = opened(testing::languageModel());
  ASSERT_TRUE(session);
  constexpr std::int64_t kMemory = 20 << 20;
  snapshot::GetCapacity asked = question("batch", 1, 4096, kMemory);
  asked.set_recompute(true);
  const auto report = session->lab().capacity(asked);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_GT(report->largest(), 4);
  EXPECT_GT(report->largest_with_recompute(), report->largest());
  std::map<std::pair<std::int64_t, std::string>, const snapshot::CapacityPoint*> points;
  for (const auto& point : report->points()) {
    EXPECT_EQ(point.fits(), point.peak_bytes() <= kMemory);
    points[{point.extent(), point.recompute() == "none" ? "none" : "some"}] = &point;
  }
  ASSERT_TRUE(points.contains({report->largest(), "none"}) && points.contains({report->largest() + 1, "none"}));
  EXPECT_TRUE((points.at({report->largest(), "none"})->fits()));
  EXPECT_FALSE((points.at({report->largest() + 1, "none"})->fits()));
  const auto& recomputed = *points.at({report->largest_with_recompute(), "some"});
  EXPECT_TRUE(recomputed.fits());
  EXPECT_GT(recomputed.repeated(), 0);
  EXPECT_GT(recomputed.predicted_ns(), points.at({report->largest_with_recompute(), "none"})->predicted_ns());
  // The option that it names gives what was predicted.
  const std::string budget = recomputed.recompute().substr(std::string("budget=").size());
  const std::int64_t measured =
      measuredPeak(testing::languageModel(),
                   {{"dim", report->dimension() + "=" + std::to_string(recomputed.extent())}, {"recompute.budget", budget}});
  EXPECT_NEAR(static_cast<double>(recomputed.peak_bytes()), static_cast<double>(measured),
              0.01 * static_cast<double>(measured));
}

TEST(Capacity, TakesTheExtentsOfTheData) {
  auto session = opened(testing::languageModel(), {{"data", testing::languageModel().data.string()}});
  auto built = openSession(testing::languageModel());
  ASSERT_TRUE(session && built && built->step());
  snapshot::GetCapacity asked;
  const auto report = session->lab().capacity(asked);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  ASSERT_EQ(report->points_size(), 1);
  EXPECT_EQ(report->points(0).peak_bytes(), built->stepper().executor().plannedBytes());
  EXPECT_GT(report->memory_bytes(), 0) << "what the machine has";
}

TEST(Capacity, LeavesTheSessionAsItIs) {
  auto session = openSession(testing::digits());
  ASSERT_TRUE(session && session->step());
  const std::string before = testing::stateBits(*session);
  const std::size_t builds = session->log().builds();
  snapshot::GetCapacity asked;
  ASSERT_TRUE(session->lab().capacity(asked).has_value());
  EXPECT_EQ(testing::stateBits(*session), before);
  EXPECT_EQ(session->log().builds(), builds);
  EXPECT_TRUE(session->step().has_value());
}

// A machine of half the speed takes twice the time, and has its own memory.
TEST(Capacity, PredictsTimesOfAMachineThatAFileDescribes) {
  auto session = opened(testing::languageModel());
  ASSERT_TRUE(session);
  const auto described = [&](double speed) {
    snapshot::GetCapacity asked = question("batch", 4, 4, 0);
    asked.set_machine(fmt::format(R"({{"name": "paper", "memory_bytes": 1000000000, "peak": {{"operations_per_second": {},
        "levels": [{{"name": "cache", "capacity": 1000000, "bytes_per_second": {}}},
                   {{"name": "memory", "bytes_per_second": {}}}]}}}})",
                                  speed * 1e11, speed * 1e11, speed * 1e10));
    asked.set_machine_name("paper.json");
    return session->lab().capacity(asked);
  };
  const auto slow = described(1), fast = described(2);
  ASSERT_TRUE(slow && fast) << (slow ? fast : slow).error().message;
  EXPECT_GT(fast->points(0).predicted_ns(), 0);
  EXPECT_NEAR(slow->points(0).predicted_ns() / fast->points(0).predicted_ns(), 2, 1e-6);
  EXPECT_EQ(slow->points(0).peak_bytes(), fast->points(0).peak_bytes());
  EXPECT_EQ(slow->memory_bytes(), 1'000'000'000);
  EXPECT_EQ(slow->machine(), "paper");
  snapshot::GetCapacity wrong = question("batch", 4, 4);
  wrong.set_machine("{}");
  wrong.set_machine_name("paper.json");
  const auto refused = session->lab().capacity(wrong);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message, "machine 'paper.json': peak: found nothing; expected an object");
}

TEST(Capacity, SaysWhatIsWrong) {
  auto session = opened(testing::digits());
  ASSERT_TRUE(session);
  const auto unknown = session->lab().capacity(question("depth", 1, 2));
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_NE(unknown.error().message.find("dimension 'depth': no input has it; expected one of "), std::string::npos)
      << unknown.error().message;
  const auto empty = session->lab().capacity(question("batch", 4, 2));
  ASSERT_FALSE(empty.has_value());
  EXPECT_EQ(empty.error().message, "dimension 'batch': extents 4 to 2; expected at least one from 1 on");
  session->cancel();
  const auto cancelled = session->lab().capacity(question("batch", 1, 4));
  ASSERT_FALSE(cancelled.has_value());
  EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled);
  const auto none = session->lab().capacity(question("batch", 1, 4, 1));
  ASSERT_TRUE(none.has_value()) << "nothing fits into a byte, which is an answer";
  EXPECT_EQ(none->largest(), 0);
  ASSERT_EQ(none->points_size(), 1);
  EXPECT_FALSE(none->points(0).fits());
}

}  // namespace
}  // namespace stepscope
