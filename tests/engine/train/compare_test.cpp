// The rule of numbers, values beside files and each other, what a row adds to the loss, densities.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "engine/build/density.h"
#include "engine/data/npy.h"
#include "engine/profile/compare_tensors.h"
#include "engine/snapshot/number_rule.h"
#include "engine/step/values.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

TEST(NumberRule, NanEqualsNanAndAnInfinityItsEqual) {
  const struct {
    double a, b, distance, relative;
  } table[] = {{1, 1, 0, 0},
               {0.0, -0.0, 0, 0},
               {kNan, kNan, 0, 0},
               {kInf, kInf, 0, 0},
               {-kInf, -kInf, 0, 0},
               {1, 3, 2, 2.0 / 3},
               {-1, 1, 2, 2},
               {kNan, 1, kInf, kInf},
               {1, kNan, kInf, kInf},
               {kInf, 1, kInf, kInf},
               {kInf, -kInf, kInf, kInf},
               {kNan, kInf, kInf, kInf},
               {1e308, -1e308, kInf, kInf}};
  for (const auto& row : table) {
    EXPECT_EQ(sameNumber(row.a, row.b), row.distance == 0) << row.a << ' ' << row.b;
    EXPECT_EQ(numberDistance(row.a, row.b), row.distance) << row.a << ' ' << row.b;
    EXPECT_EQ(relativeDistance(row.a, row.b), row.relative) << row.a << ' ' << row.b;
  }
  EXPECT_TRUE(agreeWithin(1.05, 1, 0.1, 0));
  EXPECT_FALSE(agreeWithin(1.2, 1, 0.1, 0));
  EXPECT_FALSE(agreeWithin(kInf, 1e300, 1e300, kInf)) << "no tolerance excuses an infinity";
}

TEST(CompareTensors, NamesTheFirstOfTheLargestDifferences) {
  const std::vector<float> a = {1, 2, 3, 4, std::nanf(""), 0.0F}, b = {1, 2.5F, 3, 3.5F, std::nanf(""), -0.0F};
  const auto r = compareTensors("x", Tensor::of<float>({2, 3}, a).view(), Tensor::of<float>({2, 3}, b).view());
  EXPECT_EQ(r.max_abs(), 0.5);
  EXPECT_EQ(r.max_rel(), 0.2);
  ASSERT_EQ(r.worst_index_size(), 2);
  EXPECT_EQ(r.worst_index(0), 0);
  EXPECT_EQ(r.worst_index(1), 1);
  EXPECT_EQ(r.a(), 2);
  EXPECT_EQ(r.b(), 2.5);
  EXPECT_EQ(r.differing(), 3) << "-0 has other bits than 0";
  EXPECT_EQ(r.elements(), 6);
  EXPECT_FALSE(r.equal_bits());
  const std::vector<double> c(a.begin(), a.end());
  const auto wide = compareTensors("x", Tensor::of<float>({2, 3}, a).view(), Tensor::of<double>({2, 3}, c).view());
  EXPECT_EQ(wide.differing(), 0) << "the same numbers in another type";
  EXPECT_TRUE(wide.equal_bits());
}

TEST(ConvertExactly, RefusesWhatTheTypeCannotHold) {
  const std::vector<double> good = {0.5, -2, kNan, kInf}, tenth = {1, 0.1};
  const auto held = convertExactly("array 'x'", Tensor::of<double>({4}, good).view(), DType::kF32);
  ASSERT_TRUE(held.has_value()) << held.error().message;
  EXPECT_EQ(held->as<float>()[1], -2);
  const auto refused = convertExactly("array 'x'", Tensor::of<double>({2}, tenth).view(), DType::kF32);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(
      refused.error().message,
      "array 'x': element [1] is 0.1 of type float64; expected float32, which cannot hold it exactly; convert the file");
  EXPECT_FALSE(convertExactly("x", Tensor::of<double>({4}, good).view(), DType::kI64).has_value());
  const std::vector<std::int64_t> large = {(std::int64_t{1} << 53) + 1}, negative = {-1};
  EXPECT_FALSE(convertExactly("x", Tensor::of<std::int64_t>({1}, large).view(), DType::kF64).has_value());
  EXPECT_FALSE(convertExactly("x", Tensor::of<std::int64_t>({1}, negative).view(), DType::kU8).has_value());
}

class CompareOnModel : public ::testing::TestWithParam<testing::TestModel> {};

TEST_P(CompareOnModel, AValueIsComparedWithItsFileAndTakesItsContentsBack) {
  auto session = testing::openSession(GetParam());
  ASSERT_NE(session, nullptr);
  ValueId parameter;
  for (const ParameterChoice& p : session->plans().parameters())
    if (p.trained && !parameter) parameter = session->findValue(session->imported().value(p.value).name);
  ASSERT_TRUE(parameter);
  ASSERT_TRUE(session->beginStep().has_value());
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("stepscope-compare-" + std::to_string(::getpid()) + ".npy");
  const auto view = session->stepper().value(parameter);
  ASSERT_TRUE(view.has_value()) << view.error().message;
  const Tensor before = Tensor(view->dtype, view->dims, nullptr, view->data).clone();
  ASSERT_TRUE(writeNpy(file, *view).has_value());
  auto same = compareWithFile(session->stepper(), parameter, file);
  ASSERT_TRUE(same.has_value()) << same.error().message;
  EXPECT_TRUE(same->equal_bits());
  EXPECT_EQ(same->elements(), before.elements());

  std::vector<std::int64_t> last;
  for (const std::int64_t dim : before.dims()) last.push_back(dim - 1);
  ASSERT_TRUE(editValue(session->stepper(), parameter, last, 1000, false).has_value());
  auto differs = compareWithFile(session->stepper(), parameter, file);
  ASSERT_TRUE(differs.has_value()) << differs.error().message;
  EXPECT_EQ(differs->differing(), 1);
  EXPECT_EQ(std::vector<std::int64_t>(differs->worst_index().begin(), differs->worst_index().end()), last);
  EXPECT_EQ(differs->a(), 1000);
  EXPECT_EQ(differs->b(), elementAsDouble(before.view(), before.elements() - 1));

  ASSERT_TRUE(editFromFile(session->stepper(), parameter, file).has_value());
  EXPECT_TRUE(compareWithFile(session->stepper(), parameter, file)->equal_bits());

  ASSERT_TRUE(writeNpy(file, Tensor(DType::kF32, {3, 1, 4, 1, 5}).view()).has_value());
  const auto refused = compareWithFile(session->stepper(), parameter, file);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("found float32[3, 1, 4, 1, 5]; expected float32["), std::string::npos)
      << refused.error().message;
  EXPECT_FALSE(editFromFile(session->stepper(), parameter, file).has_value());
  std::ofstream(file) << "no array";
  EXPECT_FALSE(compareWithFile(session->stepper(), parameter, file).has_value());
  EXPECT_FALSE(editFromFile(session->stepper(), parameter, file).has_value());
  EXPECT_TRUE(compareWithValue(session->stepper(), parameter, parameter)->equal_bits());
  EXPECT_FALSE(compareWithValue(session->stepper(), parameter, ValueId{1 << 28}).has_value());
  std::filesystem::remove(file);
}

TEST_P(CompareOnModel, RowLossesReduceToTheLoss) {
  auto session = testing::openSession(GetParam());
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->beginStep().has_value());
  const snapshot::RowLosses early = rowLossesNow(session->stepper());
  EXPECT_EQ(early.values_size(), 0);
  EXPECT_FALSE(early.unavailable().empty());
  ASSERT_GE(early.instruction(), 0) << early.unavailable();
  ASSERT_TRUE(session->runTo(early.instruction() + 1).has_value());
  const snapshot::RowLosses rows = rowLossesNow(session->stepper());
  ASSERT_GT(rows.values_size(), 0) << rows.unavailable();
  double sum = 0;
  int counted = 0;
  for (int i = 0; i < rows.values_size(); ++i) {
    if (rows.ignored_size() > 0 && rows.ignored(i)) continue;
    sum += rows.values(i);
    ++counted;
  }
  const auto loss = session->stepper().value(session->lossValue());
  ASSERT_TRUE(loss.has_value()) << loss.error().message;
  // The losses of the corpus are means or sums over their rows.
  const double whole = elementAsDouble(*loss, 0), mean = sum / counted;
  const auto near = [whole](double x) { return std::abs(x - whole) <= 1e-4 * std::abs(whole); };
  EXPECT_TRUE(near(mean) || near(sum)) << "loss " << whole << ", mean " << mean << ", sum " << sum;
}

TEST_P(CompareOnModel, DensitiesStandInEveryStep) {
  auto session = testing::openSession(GetParam());
  ASSERT_NE(session, nullptr);
  std::size_t noted = 0;
  for (const snapshot::PhaseSpan& span : session->phases())
    if (span.name() == "inspect inputs")
      for (const std::string& note : span.pass().notes()) noted += note.find(" valid (") != std::string::npos;
  const auto step = session->step();
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(static_cast<std::size_t>(step->densities_size()), noted);
  for (const snapshot::InputDensity& d : step->densities()) {
    EXPECT_LE(d.valid(), d.total());
    EXPECT_LE(d.shortest() * d.rows(), d.valid());
    EXPECT_GE(d.longest() * d.rows(), d.valid());
    EXPECT_GT(d.rows(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, CompareOnModel, ::testing::ValuesIn(testing::testModels()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace stepscope
