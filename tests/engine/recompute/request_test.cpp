// The text of option recompute.plan.
#include <gtest/gtest.h>

#include "engine/recompute/choose.h"

namespace stepscope {
namespace {

TEST(RecomputePlanText, ReadsEntriesWithBlanksAroundThem) {
  const auto plan = parseRecomputePlan(" Gelu+ :1:-1 ,\n Cast+Mul+:1:2, block:0:-1 ");
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  ASSERT_EQ(plan->size(), 3u);
  EXPECT_EQ((*plan)[0].pattern, "Gelu+");
  EXPECT_TRUE((*plan)[0].apply);
  EXPECT_EQ((*plan)[0].count, -1);
  EXPECT_EQ((*plan)[1].pattern, "Cast+Mul+");
  EXPECT_EQ((*plan)[1].count, 2);
  EXPECT_FALSE((*plan)[2].apply);
}

TEST(RecomputePlanText, LetsTheLastEntryOfAPatternWin) {
  const auto plan = parseRecomputePlan("Gelu+:1:-1,Gelu+:1:3");
  ASSERT_TRUE(plan.has_value());
  ASSERT_EQ(plan->size(), 1u);
  EXPECT_EQ((*plan)[0].count, 3);
}

TEST(RecomputePlanText, IsEmptyForNoText) {
  const auto plan = parseRecomputePlan("  ");
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(plan->empty());
}

TEST(RecomputePlanText, NamesTheEntryThatIsWrong) {
  for (const char* text : {"Gelu+", "Gelu+:1", ":1:1", "Gelu+:2:1", "Gelu+:1:-2", "Gelu+:1:many", "Gelu+:1:1,,",
                           "Gelu+:1:99999999999999999999"}) {
    const auto plan = parseRecomputePlan(text);
    ASSERT_FALSE(plan.has_value()) << text;
    EXPECT_NE(plan.error().message.find("option 'recompute.plan': entry '"), std::string::npos) << plan.error().message;
  }
}

}  // namespace
}  // namespace stepscope
