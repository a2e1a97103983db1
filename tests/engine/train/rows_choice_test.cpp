// Rows that count are computed alone or not, decided for every batch; plans that do not run stay within variants.bytes.
#include "engine/build/rows_choice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;
using testing::TestModel;

snapshot::InputDensity densityOf(const char* input, const char* kind, std::int64_t valid) {
  snapshot::InputDensity density;
  density.set_input(input);
  density.set_kind(kind);
  density.set_valid(valid);
  density.set_total(100);
  return density;
}

TrainOptions both() {
  TrainOptions options;
  options.passes = {{"sparse_labels", true}, {"eliminate_padding", true}};
  return options;
}

TEST(RowsChoice, HasHysteresis) {
  RowsChoices now;
  std::string course;
  for (const int valid : {80, 75, 80, 85, 86, 80, 76, 75, 85, 100}) {
    now = chooseRows(std::vector{densityOf("labels", "labels", valid)}, both(), now);
    course += now.at("labels").alone ? 'a' : '-';
  }
  EXPECT_EQ(course, "-aaa---aa-");
  EXPECT_NE(now.at("labels").reason.find("100.0 % of the labels of 'labels' count; above 85 %"), std::string::npos)
      << now.at("labels").reason;
}

TEST(RowsChoice, EachInputHasItsOwn) {
  const std::vector batch{densityOf("words", "tokens", 50), densityOf("answers", "tokens", 99),
                          densityOf("labels", "labels", 15), densityOf("mask", "mask", 50)};
  const RowsChoices choices = chooseRows(batch, both());
  ASSERT_EQ(choices.size(), 3u) << "a mask has no rows of its own";
  EXPECT_TRUE(choices.at("words").alone);
  EXPECT_FALSE(choices.at("answers").alone);
  EXPECT_TRUE(choices.at("labels").alone);
  TrainOptions labelsAlone;
  labelsAlone.passes = {{"sparse_labels", true}};
  EXPECT_EQ(chooseRows(batch, labelsAlone).size(), 1u);
  EXPECT_TRUE(chooseRows(batch, TrainOptions()).empty());
  EXPECT_FALSE(choosesRows(TrainOptions()));
}

// The first batch of the model's data with other labels: of hundred places, so many keep a label in step after step.
class ChangingLabels final : public DataSource {
 public:
  ChangingLabels(Batch first, std::vector<int> shares) : first_(std::move(first)), shares_(std::move(shares)) {}
  std::int64_t entries() const override { return static_cast<std::int64_t>(shares_.size()); }
  Result<Batch> batch(std::int64_t step) override {
    Batch batch = first_;
    Tensor labels(DType::kI64, batch.arrays.at("labels").dims());
    const auto to = labels.as<std::int64_t>();
    const auto most = static_cast<std::size_t>(shares_[static_cast<std::size_t>(step) % shares_.size()]);
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = i * 100 < most * to.size() ? static_cast<std::int64_t>(1 + i % 3) : -100;
    batch.arrays["labels"] = labels;
    return batch;
  }

 private:
  Batch first_;
  std::vector<int> shares_;
};

std::unique_ptr<Session> openChanging(const TestModel& model, const std::map<std::string, std::string>& settings,
                                      const std::vector<int>& shares) {
  auto session = openSession(model, settings);
  if (!session) return nullptr;
  auto source = openData(session->imported(), session->options(), session->registry().operators(), nullptr);
  EXPECT_TRUE(source.has_value());
  auto batch = (*source)->batch(0);
  EXPECT_TRUE(batch.has_value());
  session->feedFrom(std::make_unique<ChangingLabels>(std::move(*batch), shares));
  return session;
}

class RowsChoiceOfModel : public ::testing::TestWithParam<TestModel> {};

TEST_P(RowsChoiceOfModel, EveryBatchDecides) {
  const std::vector<int> shares{20, 95, 80, 70, 80, 95, 22};
  const std::string expected = "a--aa-a";
  auto all = openChanging(GetParam(), {{"optimizer", "sgd"}}, shares),
       some = openChanging(GetParam(), {{"optimizer", "sgd"}, {"pass.sparse_labels", "on"}}, shares);
  ASSERT_TRUE(all && some);
  std::string course;
  for (std::size_t step = 0; step < shares.size(); ++step) {
    const auto wanted = all->step(), found = some->step();
    ASSERT_TRUE(wanted && found) << (found ? wanted : found).error().message;
    EXPECT_NEAR(found->loss(), wanted->loss(), 1e-5 * (1 + std::abs(wanted->loss()))) << step;
    for (const snapshot::InputDensity& density : found->densities()) {
      if (density.kind() != "labels") continue;
      course += density.computed() < density.total() ? 'a' : '-';
      EXPECT_GE(density.computed(), density.valid()) << step;
      EXPECT_FALSE(density.decision().empty()) << step;
    }
    for (const snapshot::InputDensity& density : wanted->densities()) {
      EXPECT_EQ(density.computed(), density.total());
      EXPECT_TRUE(density.decision().empty()) << density.decision();
    }
  }
  EXPECT_EQ(course, expected);
  // Both steps were built once: the last batch found the plan of the first ones.
  const std::size_t builds = some->log().builds();
  for (std::size_t step = 0; step < shares.size(); ++step) ASSERT_TRUE(some->step().has_value());
  EXPECT_EQ(some->log().builds(), builds);
  const auto weights = all->trained().named(false), others = some->trained().named(false);
  ASSERT_EQ(weights.size(), others.size());
}

TEST_P(RowsChoiceOfModel, PlansStayWithinTheirBytes) {
  const std::vector<int> shares{20, 95};
  auto wide = openChanging(GetParam(), {{"pass.sparse_labels", "on"}}, shares),
       narrow = openChanging(GetParam(), {{"pass.sparse_labels", "on"}, {"variants.bytes", "4096"}}, shares);
  ASSERT_TRUE(wide && narrow);
  for (int step = 0; step < 4; ++step) {
    ASSERT_TRUE(wide->step().has_value());
    ASSERT_TRUE(narrow->step().has_value());
  }
  EXPECT_EQ(testing::stateBits(*wide) == testing::stateBits(*narrow), true);
  EXPECT_GT(narrow->log().builds(), wide->log().builds()) << "plans that were given back are made again";
  const auto told = [](const Session& session) {
    return std::ranges::count_if(session.alerts(), [](const auto& alert) { return alert.code() == "plan_given_back"; });
  };
  EXPECT_EQ(told(*wide), 0);
  EXPECT_GE(told(*narrow), 3);
  EXPECT_NE(narrow->stepper().plan().reason.find("was given back"), std::string::npos) << narrow->stepper().plan().reason;
}

INSTANTIATE_TEST_SUITE_P(Corpus, RowsChoiceOfModel, ::testing::ValuesIn(testing::corpusCases({"bert_mlm"})),
                         [](const auto& info) { return info.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RowsChoiceOfModel);

// A pass that does not apply is asked once, not with every batch.
TEST(RowsChoice, WhatAPassRefusesIsBuiltOnce) {
  const auto models = testing::corpusCases({"gpt2_lm"});
  if (models.empty()) GTEST_SKIP() << "the corpus is not there";
  auto session = openChanging(models.front(), {{"pass.sparse_labels", "on"}}, {20, 95, 20, 95});
  ASSERT_TRUE(session);
  const std::size_t builds = session->log().builds();
  for (int step = 0; step < 4; ++step) {
    const auto record = session->step();
    ASSERT_TRUE(record.has_value()) << record.error().message;
    for (const snapshot::InputDensity& density : record->densities()) EXPECT_EQ(density.computed(), density.total());
  }
  EXPECT_LE(session->log().builds(), builds + 1);
}

TEST(RowsChoice, AModelOfPicturesIsLeftAlone) {
  const auto models = testing::corpusCases({"resnet"});
  if (models.empty()) GTEST_SKIP() << "the corpus is not there";
  auto plain = openSession(models.front()),
       asked = openSession(models.front(), {{"pass.sparse_labels", "on"}, {"pass.eliminate_padding", "on"}});
  ASSERT_TRUE(plain && asked);
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(plain->step().has_value());
    const auto record = asked->step();
    ASSERT_TRUE(record.has_value());
    for (const snapshot::InputDensity& density : record->densities()) EXPECT_EQ(density.computed(), density.total());
  }
  EXPECT_EQ(testing::stateBits(*plain) == testing::stateBits(*asked), true);
  EXPECT_EQ(asked->log().builds(), plain->log().builds());
}

}  // namespace
}  // namespace stepscope
