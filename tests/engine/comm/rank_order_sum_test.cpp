#include "engine/comm/rank_order_sum.h"

#include <gtest/gtest.h>

#include <vector>

namespace stepscope::testing {
namespace {

template <typename T>
std::vector<T> sum(const std::vector<std::vector<T>>& parts, double factor = 1) {
  std::vector<const std::byte*> pointers;
  for (const auto& part : parts) pointers.push_back(reinterpret_cast<const std::byte*>(part.data()));
  std::vector<T> out(parts[0].size());
  const Status done = sumInRankOrder(DTypeOf<T>::value, pointers, static_cast<std::int64_t>(out.size()), factor,
                                     reinterpret_cast<std::byte*>(out.data()));
  EXPECT_TRUE(done.has_value());
  return out;
}

TEST(RankOrderSum, AddsInTheOrderOfTheRanks) {
  // (1e8 + 1) - 1e8 is 0 in float32, (1e8 - 1e8) + 1 is 1: the order shows.
  EXPECT_EQ(sum<float>({{1e8F, 1e8F}, {1, -1e8F}, {-1e8F, 1}}), (std::vector<float>{0, 1}));
}

TEST(RankOrderSum, AddsLowTypesInFloat32AndRoundsOnce) {
  // Each step alone would be lost: 256 + 0.5 rounds back to 256 in bfloat16, whose neighbours there are 2 apart.
  std::vector<std::vector<BFloat16>> parts{{BFloat16(256)}};
  for (int r = 0; r < 4; ++r) parts.push_back({BFloat16(0.5F)});
  EXPECT_EQ(static_cast<float>(sum<BFloat16>(parts)[0]), 258);
  // The sum overflows float16, the mean does not.
  EXPECT_EQ(static_cast<float>(sum<Float16>({{Float16(60000)}, {Float16(60000)}}, 0.5)[0]), 60000);
}

TEST(RankOrderSum, IntegersWrapAround) {
  EXPECT_EQ(sum<std::int8_t>({{127}, {1}})[0], -128);
  EXPECT_EQ(sum<std::uint64_t>({{~std::uint64_t{0}}, {2}})[0], 1U);
}

TEST(RankOrderSum, RefusesWhatCannotBeAdded) {
  const std::byte* part = nullptr;
  EXPECT_FALSE(sumInRankOrder(DType::kBool, std::span(&part, 1), 0, 1, nullptr).has_value());
  EXPECT_FALSE(sumInRankOrder(DType::kI32, std::span(&part, 1), 0, 0.5, nullptr).has_value());
}

}  // namespace
}  // namespace stepscope::testing
