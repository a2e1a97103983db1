// pass.eliminate_padding on exported models whose batches are padded: plans by buckets, the losses, gradients and weights of
// a run without it, and the same after a way back.
#include <gtest/gtest.h>

#include <set>

#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;
using testing::TestModel;

class EliminatePaddingOfModel : public ::testing::TestWithParam<TestModel> {};

TEST_P(EliminatePaddingOfModel, EveryBatchTrainsAsWithout) {
  auto all = openSession(GetParam(), {{"optimizer", "sgd"}}),
       packed = openSession(GetParam(), {{"optimizer", "sgd"}, {"pass.eliminate_padding", "on"}});
  ASSERT_TRUE(all && packed);
  for (int step = 0; step < 8; ++step) {
    const auto expected = all->step(), found = packed->step();
    ASSERT_TRUE(expected && found) << (found ? expected : found).error().message;
    EXPECT_NEAR(found->loss(), expected->loss(), 1e-5 * (1 + std::abs(expected->loss()))) << step;
  }
  EXPECT_NE(packed->plans().signature().find(".kept_tokens int64["), std::string::npos) << packed->plans().signature();
  const auto weights = all->trained().named(false), others = packed->trained().named(false);
  ASSERT_EQ(weights.size(), others.size());
  for (const auto& [name, weight] : weights)
    for (std::int64_t k = 0; k < weight.elements(); ++k)
      ASSERT_NEAR(elementAsDouble(others.at(name), k), elementAsDouble(weight, k), 1e-5) << name;
}

TEST_P(EliminatePaddingOfModel, WorksTogetherWithSparseLabels) {
  auto all = openSession(GetParam(), {{"optimizer", "sgd"}}),
       packed =
           openSession(GetParam(), {{"optimizer", "sgd"}, {"pass.eliminate_padding", "on"}, {"pass.sparse_labels", "on"}});
  ASSERT_TRUE(all && packed);
  for (int step = 0; step < 4; ++step) {
    const auto expected = all->step(), found = packed->step();
    ASSERT_TRUE(expected && found) << (found ? expected : found).error().message;
    EXPECT_NEAR(found->loss(), expected->loss(), 1e-5 * (1 + std::abs(expected->loss()))) << step;
  }
}

// Queries behind the last token of a row are left out, and padded keys are masked.
TEST_P(EliminatePaddingOfModel, WorksTogetherWithFusedAttention) {
  for (const char* device : {"cpu", "emulated"}) {
    auto all = openSession(GetParam(), {{"optimizer", "sgd"}}),
         packed = openSession(
             GetParam(),
             {{"optimizer", "sgd"}, {"device", device}, {"pass.eliminate_padding", "on"}, {"pass.fuse_attention", "on"}});
    ASSERT_TRUE(all && packed);
    for (int step = 0; step < 3; ++step) {
      const auto expected = all->step(), found = packed->step();
      ASSERT_TRUE(expected && found) << (found ? expected : found).error().message;
      EXPECT_NEAR(found->loss(), expected->loss(), 1e-5 * (1 + std::abs(expected->loss()))) << device << ' ' << step;
    }
    int forward = 0, backward = 0;
    const auto plan = packed->planSnapshot();
    ASSERT_TRUE(plan.has_value()) << plan.error().message;
    for (const auto& instruction : plan->instructions()) {
      forward += instruction.op() == "FusedAttention" && instruction.inputs_size() == 5;
      backward += instruction.op() == "FusedAttentionGrad" && instruction.inputs_size() == 7;
    }
    EXPECT_GT(forward, 0) << device;
    EXPECT_EQ(backward, forward) << device;
    const auto weights = all->trained().named(false), others = packed->trained().named(false);
    for (const auto& [name, weight] : weights)
      for (std::int64_t k = 0; k < weight.elements(); ++k)
        ASSERT_NEAR(elementAsDouble(others.at(name), k), elementAsDouble(weight, k), 1e-5) << device << ' ' << name;
  }
}

TEST_P(EliminatePaddingOfModel, AWayBackHasTheBitsOfAStraightRun) {
  auto walker = openSession(GetParam(), {{"pass.eliminate_padding", "on"}}),
       straight = openSession(GetParam(), {{"pass.eliminate_padding", "on"}});
  ASSERT_TRUE(walker && straight);
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(walker->beginStep().has_value());
    const int count = walker->stepper().count();
    for (const int place : {count / 2, 3, count - 2, count / 3}) ASSERT_TRUE(walker->runTo(place).has_value());
    ASSERT_TRUE(walker->finishStep().has_value());
    ASSERT_TRUE(straight->step().has_value());
  }
  EXPECT_EQ(testing::stateBits(*walker) == testing::stateBits(*straight), true);
}

INSTANTIATE_TEST_SUITE_P(Corpus, EliminatePaddingOfModel,
                         ::testing::ValuesIn(testing::corpusCases({"bert_mlm", "roberta_classifier"})),
                         [](const auto& info) { return info.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EliminatePaddingOfModel);

}  // namespace
}  // namespace stepscope
