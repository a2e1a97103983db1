// pass.sparse_labels over batches whose labels count in different numbers: plans by buckets, the losses and weights of a run
// without it, rows told at their own places, and the same after a way back.
#include <gtest/gtest.h>

#include <set>

#include "engine/step/row_losses.h"
#include "engine/step/values.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;
using testing::TestModel;

class SparseLabelsOfModel : public ::testing::TestWithParam<TestModel> {};

TEST_P(SparseLabelsOfModel, EveryBatchTrainsAsWithout) {
  auto all = openSession(GetParam(), {{"optimizer", "sgd"}}),
       sparse = openSession(GetParam(), {{"optimizer", "sgd"}, {"pass.sparse_labels", "on"}});
  ASSERT_TRUE(all && sparse);
  std::set<std::string> plans;
  for (int step = 0; step < 8; ++step) {
    const auto expected = all->step(), found = sparse->step();
    ASSERT_TRUE(expected && found) << (found ? expected : found).error().message;
    EXPECT_NEAR(found->loss(), expected->loss(), 1e-5 * (1 + std::abs(expected->loss()))) << step;
    plans.insert(sparse->plans().signature());
  }
  EXPECT_GT(plans.size(), 1u);  // batches of this model differ
  EXPECT_NE(plans.begin()->find(".kept_rows int64["), std::string::npos) << *plans.begin();
  const auto weights = all->trained().named(false), others = sparse->trained().named(false);
  ASSERT_EQ(weights.size(), others.size());
  for (const auto& [name, weight] : weights)
    for (std::int64_t k = 0; k < weight.elements(); ++k)
      ASSERT_NEAR(elementAsDouble(others.at(name), k), elementAsDouble(weight, k), 1e-5) << name;
}

TEST_P(SparseLabelsOfModel, AWayBackHasTheBitsOfAStraightRun) {
  auto walker = openSession(GetParam(), {{"pass.sparse_labels", "on"}}),
       straight = openSession(GetParam(), {{"pass.sparse_labels", "on"}});
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

TEST_P(SparseLabelsOfModel, RowsAreToldAtTheirPlaces) {
  auto all = openSession(GetParam()), sparse = openSession(GetParam(), {{"pass.sparse_labels", "on"}});
  ASSERT_TRUE(all && sparse);
  const auto rows = [](Session& session) {
    EXPECT_TRUE(session.beginStep().has_value());
    const Node* node = rowLossNode(session.runningGraph(), session.lossValue());
    EXPECT_NE(node, nullptr);
    for (int place = 1; place < session.stepper().count(); ++place) {
      EXPECT_TRUE(session.runTo(place).has_value());
      const auto losses = rowLosses(
          session.runningGraph(), session.lossValue(), [&](ValueId id) { return session.stepper().value(id); },
          [](NodeId) { return 0; });
      if (losses.unavailable().empty()) return losses;
    }
    return snapshot::RowLosses{};
  };
  const snapshot::RowLosses expected = rows(*all), found = rows(*sparse);
  ASSERT_GT(expected.values_size(), 0);
  ASSERT_EQ(found.values_size(), expected.values_size());
  for (int row = 0; row < found.values_size(); ++row) {
    EXPECT_EQ(found.ignored(row), expected.ignored(row)) << row;
    EXPECT_NEAR(found.values(row), expected.values(row), 1e-4) << row;
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, SparseLabelsOfModel, ::testing::ValuesIn(testing::corpusCases({"bert_mlm"})),
                         [](const auto& info) { return info.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SparseLabelsOfModel);

}  // namespace
}  // namespace stepscope
