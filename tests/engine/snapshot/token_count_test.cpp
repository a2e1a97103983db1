#include "engine/snapshot/token_count.h"

#include <gtest/gtest.h>

#include <limits>

namespace stepscope {
namespace {

TEST(TokenCount, CountsWhatTheLossCounts) {
  TokenCounter counter(100);
  counter.add("mask", 80, 100);
  counter.add("labels", 50, 100);
  const TokenCount count = counter.count();
  EXPECT_EQ(count.all, 100);
  EXPECT_EQ(count.trained, 50);
  EXPECT_EQ(count.padding, 20);
  EXPECT_EQ(count.ignored(), 30);
  EXPECT_EQ(untrainedText(count), "20.0 % padding, 30.0 % ignored labels");
}

TEST(TokenCount, CountsWhatIsNoPaddingWhereLabelsAreOfWholeRows) {
  TokenCounter counter(100);
  counter.add("tokens", 80, 100);
  counter.add("labels", 4, 4);
  EXPECT_EQ(counter.count().trained, 80);
  EXPECT_EQ(counter.count().padding, 20);
  EXPECT_EQ(untrainedText(counter.count()), "20.0 % padding");
}

TEST(TokenCount, CountsAllWhereNothingTells) {
  EXPECT_EQ(TokenCounter(100).count().trained, 100);
  EXPECT_EQ(untrainedText(TokenCounter(100).count()), "");
  EXPECT_EQ(untrainedText(TokenCounter(0).count()), "") << "no token ids";
}

// The loss counts padding whose labels it does not ignore, and then the step is trained on it.
TEST(TokenCount, TrainedPaddingIsBoth) {
  TokenCounter counter(100);
  counter.add("mask", 80, 100);
  counter.add("labels", 100, 100);
  EXPECT_EQ(counter.count().trained, 100);
  EXPECT_EQ(counter.count().padding, 20);
  EXPECT_EQ(counter.count().ignored(), 0);
}

TEST(TokenCount, SumsOfWhatADamagedFileHasStayInRange) {
  TokenCount sum{std::numeric_limits<std::int64_t>::max(), 5, 0};
  sum.add({1, 2, 3});
  EXPECT_EQ(sum.all, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(sum.trained, 7);
  TokenCounter counter(10);
  counter.add("mask", -1, 10);
  counter.add("mask", 11, 10);
  EXPECT_EQ(counter.count().trained, 10);
}

}  // namespace
}  // namespace stepscope
