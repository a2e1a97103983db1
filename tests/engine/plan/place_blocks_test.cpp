// Offsets: no two blocks that live together overlap, the arena is small, and many blocks take no more than their share of
// time.
#include "engine/plan/place_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace stepscope {
namespace {

// Stashes from forward to backward, gradients from backward to the end, and short-lived values everywhere.
std::vector<Block> trainingBlocks(int layers, unsigned seed) {
  std::mt19937 random(seed);
  const auto bytes = [&](int most) { return static_cast<std::int64_t>(64 * (1 + random() % static_cast<unsigned>(most))); };
  std::vector<Block> blocks;
  const int forward = 10 * layers, end = 24 * layers;
  for (int l = 0; l < layers; ++l) {
    const int begin = 10 * l, backward = forward + 14 * (layers - 1 - l);
    for (int k = 0; k < 3; ++k) blocks.push_back({bytes(40), begin + 3 * k, backward + 4 * k, nullptr, 0});
    for (int k = 0; k < 2; ++k) blocks.push_back({bytes(60), backward + 5 + 3 * k, end, nullptr, 0});
    for (int k = 0; k < 4; ++k) blocks.push_back({bytes(30), begin + 2 * k, begin + 2 * k + 3, nullptr, 0});
    for (int k = 0; k < 6; ++k) blocks.push_back({bytes(30), backward + 2 * k, backward + 2 * k + 3, nullptr, 0});
  }
  return blocks;
}

bool exclude(const Block& a, const Block& b) {
  if (!a.predicates || !b.predicates) return false;
  for (const Predicate& p : *a.predicates)
    for (const Predicate& q : *b.predicates)
      if (p.condition == q.condition && p.expected != q.expected) return true;
  return false;
}

// The first two that live at the same time in the same memory. Walks time with the live blocks by offset: neighbours would
// overlap first. With conditions of If, neighbours may be alternatives, so all live ones are looked at.
std::string overlapping(const std::vector<Block>& blocks, bool conditions) {
  std::multimap<int, std::size_t> begins, ends;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    begins.emplace(blocks[b].first, b);
    ends.emplace(blocks[b].last + 1, b);
  }
  std::multimap<std::int64_t, std::size_t> live;
  for (const auto& [time, b] : begins) {
    for (auto it = ends.begin(); it != ends.end() && it->first <= time; it = ends.erase(it)) {
      const auto range = live.equal_range(blocks[it->second].offset);
      for (auto l = range.first; l != range.second; ++l)
        if (l->second == it->second) {
          live.erase(l);
          break;
        }
    }
    const Block& block = blocks[b];
    auto it = conditions ? live.begin() : live.lower_bound(block.offset);
    if (!conditions && it != live.begin()) --it;
    for (; it != live.end() && it->first < block.offset + block.bytes; ++it) {
      const Block& other = blocks[it->second];
      if (other.offset + other.bytes > block.offset && !exclude(block, other))
        return "blocks " + std::to_string(it->second) + " and " + std::to_string(b);
    }
    live.emplace(block.offset, b);
  }
  return "";
}

TEST(PlaceBlocks, FewBlocksOfAStepFillTheLowerBoundAlmost) {
  for (const unsigned seed : {1u, 2u, 3u}) {
    std::vector<Block> blocks = trainingBlocks(40, seed);
    const std::int64_t size = placeBlocks(blocks);
    EXPECT_EQ(overlapping(blocks, false), "");
    EXPECT_LE(size, liveBytes(blocks) * 105 / 100);
    EXPECT_GE(size, liveBytes(blocks));
  }
}

TEST(PlaceBlocks, ManyBlocksOfAStepDoNotOverlapAndWasteLittle) {
  for (const int layers : {400, 2000, 15000}) {
    std::vector<Block> blocks = trainingBlocks(layers, 5);
    ASSERT_GT(blocks.size(), kMostComparedBlocks);
    const std::int64_t size = placeBlocks(blocks);
    EXPECT_EQ(overlapping(blocks, false), "");
    EXPECT_LE(size, liveBytes(blocks) * 110 / 100) << blocks.size() << " blocks";
    std::int64_t most = 0;
    for (const Block& block : blocks) most = std::max(most, block.offset + block.bytes);
    EXPECT_LE(most, size);
  }
}

TEST(PlaceBlocks, ManyBlocksThatLiveAllTheTimeLieNextToEachOther) {
  std::vector<Block> blocks(20000, Block{64, 3, 3, nullptr, 0});
  EXPECT_EQ(placeBlocks(blocks), 64 * 20000);
  EXPECT_EQ(overlapping(blocks, false), "");
}

TEST(PlaceBlocks, OnlyBranchesOfOneIfOverlapAmongManyBlocks) {
  const std::vector<Predicate> then{{ValueId{1}, true}}, otherwise{{ValueId{1}, false}};
  std::vector<Block> blocks;
  for (int i = 0; i < 6000; ++i) blocks.push_back({640, i, i + 5, i % 2 ? &then : &otherwise, 0});
  const std::int64_t size = placeBlocks(blocks);
  EXPECT_EQ(overlapping(blocks, true), "");
  EXPECT_LE(size, liveBytes(blocks));  // which counts both branches
}

TEST(PlaceBlocks, TheSameBlocksGetTheSameOffsets) {
  std::vector<Block> first = trainingBlocks(600, 9), second = first;
  EXPECT_EQ(placeBlocks(first), placeBlocks(second));
  for (std::size_t b = 0; b < first.size(); ++b) ASSERT_EQ(first[b].offset, second[b].offset);
}

}  // namespace
}  // namespace stepscope
