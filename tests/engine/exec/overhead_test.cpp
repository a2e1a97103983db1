// What a step costs beside its kernels: the executor's own work between them.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/train/session.h"
#include "tests/support/models.h"
#include "tests/support/yardstick.h"

namespace stepscope {
namespace {

using testing::TestModel;

std::int64_t median(std::vector<std::int64_t> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

class OverheadOnModel : public ::testing::TestWithParam<TestModel> {};

// Spans hold the kernels; what lies between them is ours. CTest runs this test alone, the median of many steps ignores
// disturbances, and the bound grows on a machine that is slow now.
TEST_P(OverheadOnModel, AStepCostsLessThanFiftyMicrosecondsBesideItsKernels) {
  auto session = Session::open(GetParam().model, {}, {});
  ASSERT_TRUE(session.has_value()) << session.error().message;
  TrainOptions options;
  for (const auto& [name, value] : {std::pair<std::string, std::string>{"data", GetParam().data.string()},
                                    {"loss", GetParam().loss},
                                    {"optimizer", "adamw"},
                                    {"record", "instructions"},
                                    {"threads", "1"}})
    ASSERT_TRUE(applySetting(options, name, value, "test").has_value());
  ASSERT_TRUE((*session)->setOptions(options).has_value());
  ASSERT_TRUE((*session)->build().has_value());
  std::vector<std::int64_t> between, around;
  for (int i = 0; i < 51; ++i) {
    const std::int64_t begin = monotonicNs();
    const auto record = (*session)->step();
    const std::int64_t whole = monotonicNs() - begin;
    ASSERT_TRUE(record.has_value()) << record.error().message;
    std::int64_t kernels = 0;
    for (const auto& span : record->spans()) kernels += span.end_ns() - span.begin_ns();
    between.push_back(record->ns() - kernels);
    around.push_back(whole - record->ns());
  }
  EXPECT_LE(static_cast<double>(median(between)), 50'000 * testing::slowness())
      << "between kernels; around them, batch and commit included: " << median(around) << " ns";
}

INSTANTIATE_TEST_SUITE_P(Models, OverheadOnModel, ::testing::ValuesIn(testing::testModels()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace stepscope
