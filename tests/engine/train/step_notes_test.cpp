// What a step notes of its numbers: the same as looking at them afterwards would show, without changing any.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/profile/sampler.h"
#include "engine/profile/tensor_data.h"
#include "engine/profile/tensor_summary.h"
#include "engine/step/values.h"
#include "engine/train/session.h"
#include "tests/support/models.h"

namespace stepscope {
namespace {

using testing::TestModel;
using Settings = std::vector<std::pair<std::string, std::string>>;

std::unique_ptr<Session> open(const TestModel& model, const Settings& settings, bool keepGradients = false) {
  auto session = Session::open(model.model, {}, {});
  EXPECT_TRUE(session.has_value()) << session.error().message;
  if (!session) return nullptr;
  TrainOptions options;
  Settings all{{"data", model.data.string()}, {"loss", model.loss},      {"optimizer", "adamw"}, {"threads", "2"},
               {"record.batch", "1"},         {"record.statistics", "1"}};
  all.insert(all.end(), settings.begin(), settings.end());
  for (const auto& [name, value] : all) EXPECT_TRUE(applySetting(options, name, value, "test").has_value()) << name;
  EXPECT_TRUE((*session)->setOptions(options).has_value());
  (*session)->keepGradients(keepGradients);
  const Status built = (*session)->build();
  EXPECT_TRUE(built.has_value()) << built.error().message;
  return built ? std::move(*session) : nullptr;
}

void expectSame(const snapshot::TensorStatistics& a, const snapshot::TensorStatistics& b, const std::string& what) {
  EXPECT_EQ(a.count(), b.count()) << what;
  EXPECT_EQ(a.min(), b.min()) << what;
  EXPECT_EQ(a.max(), b.max()) << what;
  EXPECT_EQ(a.zeros(), b.zeros()) << what;
  EXPECT_EQ(a.negative(), b.negative()) << what;
  EXPECT_EQ(a.nan(), b.nan()) << what;
  EXPECT_EQ(a.inf(), b.inf()) << what;
  EXPECT_NEAR(a.mean(), b.mean(), 1e-12 * (1 + std::abs(b.mean()))) << what;
  EXPECT_NEAR(a.std(), b.std(), 1e-9 * (1 + std::abs(b.std()))) << what;
  EXPECT_NEAR(a.norm(), b.norm(), 1e-12 * (1 + b.norm())) << what;
}

// Element after element, twice: first the mean, then what lies around it.
snapshot::TensorStatistics inTwoPasses(const TensorView& view) {
  snapshot::TensorStatistics s;
  s.set_count(view.elements());
  std::vector<double> finite;
  double sum = 0, squares = 0, deviation = 0;
  for (std::int64_t i = 0; i < view.elements(); ++i) {
    const double x = elementAsDouble(view, i);
    if (std::isnan(x)) s.set_nan(s.nan() + 1);
    if (std::isinf(x)) s.set_inf(s.inf() + 1);
    if (x < 0) s.set_negative(s.negative() + 1);
    if (x == 0) s.set_zeros(s.zeros() + 1);
    if (!std::isfinite(x)) continue;
    finite.push_back(x);
    sum += x;
    squares += x * x;
  }
  for (int i = 0; i < 64; ++i) s.add_histogram(0);
  if (finite.empty()) return s;
  const double mean = sum / static_cast<double>(finite.size());
  s.set_min(*std::min_element(finite.begin(), finite.end()));
  s.set_max(*std::max_element(finite.begin(), finite.end()));
  s.set_mean(mean);
  s.set_norm(std::sqrt(squares));
  const double width = s.max() - s.min();
  for (const double x : finite) {
    deviation += (x - mean) * (x - mean);
    const int bin = width > 0 ? std::min(63, static_cast<int>((x - s.min()) / width * 64)) : 0;
    s.set_histogram(bin, s.histogram(bin) + 1);
  }
  s.set_std(std::sqrt(deviation / static_cast<double>(finite.size())));
  return s;
}

void expectSameHistogram(const TensorView& view) {
  const auto a = tensorStatistics(view), b = inTwoPasses(view);
  ASSERT_EQ(a.histogram_size(), 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(a.histogram(i), b.histogram(i)) << "bin " << i << " of " << view.elements();
}

std::int64_t bits(double x) {
  std::int64_t b = 0;
  std::memcpy(&b, &x, sizeof b);
  return b;
}

TEST(TensorSummary, AgreesWithTheStatisticsOfTwoPasses) {
  for (const std::int64_t count : {0, 1, 7, 1000, 100'003, 1'000'003}) {
    Tensor tensor(DType::kF32, {count});
    float* x = static_cast<float*>(tensor.data());
    for (std::int64_t i = 0; i < count; ++i) x[i] = static_cast<float>(std::sin(static_cast<double>(i) * 0.7)) * 3 + 0.5f;
    expectSame(tensorSummary(tensor.view()), inTwoPasses(tensor.view()), "floats " + std::to_string(count));
    expectSameHistogram(tensor.view());
    if (count < 1000) continue;
    x[3] = std::numeric_limits<float>::quiet_NaN();
    x[5] = -std::numeric_limits<float>::infinity();
    x[6] = std::numeric_limits<float>::infinity();
    x[8] = 0;
    x[9] = -0.0f;
    expectSame(tensorSummary(tensor.view()), inTwoPasses(tensor.view()), "not finite");
    expectSameHistogram(tensor.view());
    EXPECT_EQ(tensorSummary(tensor.view()).nan(), 1);
    EXPECT_EQ(tensorSummary(tensor.view()).inf(), 2);
  }
  for (const DType type : {DType::kF64, DType::kF16, DType::kI64, DType::kI32, DType::kBool}) {
    Tensor tensor(type, {33'000});
    for (std::int64_t i = 0; i < tensor.elements(); ++i) storeElement(tensor.view(), i, static_cast<double>(i % 5));
    expectSame(tensorSummary(tensor.view()), inTwoPasses(tensor.view()), std::string(dtypeName(type)));
  }
}

TEST(TensorSummary, NothingFiniteHasNoRange) {
  Tensor tensor(DType::kF32, {4});
  for (std::int64_t i = 0; i < 4; ++i) storeElement(tensor.view(), i, std::numeric_limits<double>::quiet_NaN());
  const auto s = tensorSummary(tensor.view());
  EXPECT_EQ(s.nan(), 4);
  EXPECT_EQ(s.min(), 0);
  EXPECT_EQ(s.max(), 0);
  EXPECT_EQ(s.mean(), 0);
  EXPECT_EQ(s.std(), 0);
}

TEST(TensorSummary, IsTheSameForAnyNumberOfThreads) {
  Tensor tensor(DType::kF32, {1'000'003});
  float* x = static_cast<float*>(tensor.data());
  for (std::int64_t i = 0; i < tensor.elements(); ++i) x[i] = static_cast<float>(std::cos(static_cast<double>(i))) * 1e3f;
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const std::string one = tensorSummary(tensor.view()).SerializeAsString();
  omp_set_num_threads(3);
  EXPECT_EQ(tensorSummary(tensor.view()).SerializeAsString(), one);
  expectSameHistogram(tensor.view());
  omp_set_num_threads(before);
}

TEST(Sampler, EveryNthStepAndNever) {
  const Sampler third(*parseSampleRate("record.batch", "3"), 0.01), never(*parseSampleRate("record.batch", "off"), 0.01);
  for (std::int64_t step = 0; step < 10; ++step) {
    EXPECT_EQ(third.wants(step), step % 3 == 0);
    EXPECT_FALSE(never.wants(step));
  }
  for (const char* wrong : {"", "0", "-1", "often", "3x"}) {
    const auto rate = parseSampleRate("record.batch", wrong);
    ASSERT_FALSE(rate.has_value()) << wrong;
    EXPECT_NE(rate.error().message.find("option 'record.batch'"), std::string::npos);
  }
}

TEST(Sampler, ItsCostStaysBelowTheShare) {
  Sampler sampler(*parseSampleRate("record.statistics", "auto"), 0.01);
  EXPECT_TRUE(sampler.wants(0)) << "the first step is always taken";
  sampler.ran(true, 5'000'000, 2'000'000);
  EXPECT_TRUE(sampler.wants(1)) << "what it cost says nothing: it was cold";
  double cost = 0, all = 0;
  int taken = 0;
  for (std::int64_t step = 1; step < 100'000; ++step) {
    const bool wants = sampler.wants(step);
    sampler.ran(wants, 1'000'000, wants ? 30'000 : 0);
    all += 1'000'000;
    if (wants) cost += 30'000;
    taken += wants;
  }
  EXPECT_LE(cost, 0.0101 * all);
  EXPECT_GT(taken, 500);
}

TEST(Sampler, ThinsOutALongRunWhereItCostsNothing) {
  Sampler sampler(*parseSampleRate("record.statistics", "auto"), 0.01);
  int taken = 0, early = 0;
  for (std::int64_t step = 0; step < 1'000'000; ++step) {
    const bool wants = sampler.wants(step);
    sampler.ran(wants, 1'000'000, 1);
    taken += wants;
    if (step < Sampler::kDense) early += wants;
  }
  EXPECT_EQ(early, Sampler::kDense) << "every step at the start";
  EXPECT_LT(taken, 25'000);
}

class StepNotesOnModel : public ::testing::TestWithParam<TestModel> {};

TEST_P(StepNotesOnModel, AreWhatTheStepComputed) {
  auto session = open(GetParam(), {}, true);
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->step().has_value());
  std::map<std::string, snapshot::TensorStatistics> before;
  for (const ParameterChoice& p : session->plans().parameters())
    if (p.trained)
      before[session->imported().value(p.value).name] =
          tensorStatistics(session->trained().named(false).at(session->imported().value(p.value).name));
  const auto record = session->step();
  ASSERT_TRUE(record.has_value()) << record.error().message;
  std::size_t parameters = 0, gradients = 0, outputs = 0;
  for (const auto& s : record->statistics()) {
    if (s.kind() == "parameter") {
      ++parameters;
      ASSERT_TRUE(before.contains(s.of())) << s.of();
      expectSame(s.statistics(), before[s.of()], s.of());
    } else if (s.kind() == "gradient") {
      ++gradients;
      const auto gradient = session->trained().gradient(s.of());
      ASSERT_TRUE(gradient.has_value()) << s.of();
      expectSame(s.statistics(), tensorStatistics(gradient->view()), "gradient of " + s.of());
      EXPECT_GE(s.node(), 0);
    } else {
      ++outputs;
      EXPECT_EQ(s.kind(), "output");
      EXPECT_FALSE(s.of().empty());
    }
  }
  EXPECT_EQ(parameters, before.size());
  EXPECT_EQ(gradients, before.size());
  EXPECT_GT(outputs, 0u);
  EXPECT_GT(record->recording_ns(), 0);
  EXPECT_LT(record->recording_ns(), record->ns());
}

TEST_P(StepNotesOnModel, RowsReduceToTheLossAndInputsAreTheBatch) {
  auto session = open(GetParam(), {{"record.batch.bytes", "100000000"}});
  ASSERT_NE(session, nullptr);
  const auto record = session->step();
  ASSERT_TRUE(record.has_value()) << record.error().message;
  ASSERT_GT(record->row_losses().values_size(), 0) << record->row_losses().unavailable();
  EXPECT_EQ(record->row_losses().step(), 0);
  double sum = 0;
  int counted = 0;
  for (int i = 0; i < record->row_losses().values_size(); ++i) {
    if (record->row_losses().ignored_size() > 0 && record->row_losses().ignored(i)) continue;
    sum += record->row_losses().values(i);
    ++counted;
  }
  // What reduces the rows may be followed by a factor; two of our models have none.
  if (GetParam().name == "language_model" || GetParam().name == "digits") {
    EXPECT_NEAR(sum / counted, record->loss(), 1e-4 * std::abs(record->loss()));
  } else if (std::abs(sum - record->loss()) > 1e-4 * std::abs(record->loss())) {
    EXPECT_NEAR(sum / counted, record->loss(), 1e-4 * std::abs(record->loss())) << record->row_losses().quantity();
  }
  ASSERT_GT(record->inputs_size(), 0);
  for (const auto& input : record->inputs()) {
    const auto fetched = fetchValue(session->stepper(), ValueId{input.value()}, {}, {}, true, std::int64_t{1} << 27);
    ASSERT_TRUE(fetched.has_value());
    EXPECT_EQ(input.data() == fetched->data(), true) << input.name();
    expectSame(input.statistics(), fetched->statistics(), input.name());
  }
}

TEST_P(StepNotesOnModel, KeepTheBeginningOfContentsWithinTheLimit) {
  auto session = open(GetParam(), {{"record.batch.bytes", "512"}});
  ASSERT_NE(session, nullptr);
  const auto record = session->step();
  ASSERT_TRUE(record.has_value());
  for (const auto& input : record->inputs()) EXPECT_LE(input.data().size(), 512u) << input.name();
  auto none = open(GetParam(), {{"record.batch.bytes", "0"}});
  const auto bare = none->step();
  ASSERT_TRUE(bare.has_value());
  for (const auto& input : bare->inputs()) {
    EXPECT_TRUE(input.data().empty());
    EXPECT_GT(input.statistics().count(), 0);
  }
}

TEST_P(StepNotesOnModel, ChangeNoNumber) {
  auto noted = open(GetParam(), {}), plain = open(GetParam(), {{"record", "off"}});
  ASSERT_TRUE(noted && plain);
  for (int step = 0; step < 3; ++step) {
    const auto a = noted->step(), b = plain->step();
    ASSERT_TRUE(a.has_value() && b.has_value());
    EXPECT_EQ(bits(a->loss()), bits(b->loss()));
    EXPECT_GT(a->statistics_size(), 0);
    EXPECT_EQ(b->statistics_size(), 0);
    EXPECT_EQ(b->inputs_size(), 0);
    EXPECT_EQ(b->recording_ns(), 0);
  }
  EXPECT_EQ(noted->planSnapshot()->arena_bytes(), plain->planSnapshot()->arena_bytes());
}

TEST_P(StepNotesOnModel, AreTheSameWhenTheStepIsWalkedThroughAndBack) {
  auto fast = open(GetParam(), {}), walked = open(GetParam(), {});
  ASSERT_TRUE(fast && walked);
  const auto a = fast->step();
  ASSERT_TRUE(walked->beginStep().has_value());
  ASSERT_TRUE(walked->stepPhase(false).has_value());
  ASSERT_TRUE(walked->stepInstructions(-3).has_value());
  ASSERT_TRUE(walked->stepPhase(false).has_value());
  ASSERT_TRUE(walked->runTo(2).has_value());
  const auto b = walked->finishStep();
  ASSERT_TRUE(a.has_value() && b.has_value());
  ASSERT_EQ(a->statistics_size(), b->statistics_size());
  for (int i = 0; i < a->statistics_size(); ++i)
    EXPECT_EQ(a->statistics(i).SerializeAsString() == b->statistics(i).SerializeAsString(), true) << a->statistics(i).name();
  EXPECT_EQ(a->row_losses().SerializeAsString() == b->row_losses().SerializeAsString(), true);
  EXPECT_TRUE(a->warm_up());
  EXPECT_TRUE(b->warm_up());
  const auto next = fast->step();
  ASSERT_TRUE(next.has_value());
  EXPECT_FALSE(next->warm_up());
}

INSTANTIATE_TEST_SUITE_P(Models, StepNotesOnModel, ::testing::ValuesIn(testing::testModels()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace stepscope
