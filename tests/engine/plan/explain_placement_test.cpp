// Every buffer of the arena says whose memory it takes, and why there.
#include "engine/plan/explain_placement.h"

#include <gtest/gtest.h>

namespace stepscope {
namespace {

void add(ExecutionPlan& plan, const std::string& name, std::int64_t offset, std::int64_t bytes, int first, int last) {
  Buffer b;
  b.name = name;
  b.bytes = bytes;
  b.first = first;
  b.last = last;
  plan.buffers.push_back(b);
  plan.offsets.push_back(offset);
}

TEST(ExplainPlacement, NamesWhoseMemoryItTakesAndTheGapsThereWere) {
  ExecutionPlan plan;
  plan.arenaBytes = 512;
  add(plan, "a", 0, 128, 0, 1);
  add(plan, "b", 128, 256, 0, 5);
  add(plan, "c", 384, 128, 1, 2);
  add(plan, "d", 0, 64, 3, 4);
  add(plan, "e", 384, 128, 4, 5);
  add(plan, "f", 64, 64, 5, 5);
  const std::vector<std::string> texts = explainPlacement(plan);
  EXPECT_EQ(texts[0],
            "takes memory that nothing used before; the only gap that is free from 0 to 1 and large "
            "enough: it fits exactly");
  EXPECT_EQ(texts[3],
            "takes the memory of 'a', dead since instruction 1; the only gap that is free from 3 to 4 and large "
            "enough: 64 bytes are left of it");
  EXPECT_EQ(texts[4],
            "takes the memory of 'c', dead since instruction 2; the only gap that is free from 4 to 5 and large "
            "enough: it fits exactly");
  EXPECT_EQ(texts[5],
            "takes the memory of 'a', dead since instruction 1; the only gap that is free from 5 to 5 and large "
            "enough: 64 bytes are left of it");
}

TEST(ExplainPlacement, NamesTheLargestOfSeveral) {
  ExecutionPlan plan;
  plan.arenaBytes = 320;
  add(plan, "small", 0, 64, 0, 0);
  add(plan, "large", 64, 256, 0, 1);
  add(plan, "both", 0, 320, 2, 2);
  EXPECT_TRUE(
      explainPlacement(plan)[2].starts_with("takes the memory of 'large', dead since instruction 1, and of 1 more; "));
}

TEST(ExplainPlacement, SaysWhichOfTheGapsItTook) {
  ExecutionPlan plan;
  plan.arenaBytes = 512;
  add(plan, "middle", 128, 192, 0, 1);
  add(plan, "x", 0, 64, 1, 1);
  EXPECT_EQ(explainPlacement(plan)[1],
            "takes memory that nothing used before; 2 gaps are free from 1 to 1 and large enough, "
            "it lies in the smallest: 64 bytes are left of it");
  plan.offsets[1] = 320;
  EXPECT_TRUE(
      explainPlacement(plan)[1].ends_with("one that gave the smallest arena with all others: 128 bytes are left of it"));
}

TEST(ExplainPlacement, SaysNothingOfMemoryThatIsShared) {
  ExecutionPlan plan;
  plan.arenaBytes = 64;
  add(plan, "own", 0, 64, 0, 2);
  add(plan, "view", 0, 64, 1, 2);
  plan.buffers.edit(1).shares = 0;
  plan.buffers.edit(1).owner = 0;
  const std::vector<std::string> texts = explainPlacement(plan);
  EXPECT_FALSE(texts[0].empty());
  EXPECT_TRUE(texts[1].empty());
}

}  // namespace
}  // namespace stepscope
