// What a plan for many ranks says: memory and bytes that shrink and grow as they must, times that follow the network.
#include "engine/lab/rank_capacity.h"

#include <gtest/gtest.h>

#include "tests/support/rank_model.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

NetworkFile network(double latencyNs, double bytesPerSecond, std::int64_t near = 0) {
  NetworkFile made;
  if (near > 0) made.levels.push_back({"near", near, latencyNs / 10, bytesPerSecond * 10});
  made.levels.push_back({"all", 0, latencyNs, bytesPerSecond});
  return made;
}

std::vector<RankPoint> pointsOf(const NetworkFile& on, const std::vector<std::int64_t>& ranks,
                                const std::map<std::string, std::string>& settings = {}) {
  const auto session = testing::openSession(testing::digits(), settings);
  if (!session) return {};
  auto points = session->lab().rankCapacity(on, ranks, "", "");
  EXPECT_TRUE(points.has_value()) << points.error().message;
  return points ? *points : std::vector<RankPoint>{};
}

TEST(RankCapacity, OneRankSendsNothing) {
  const auto points = pointsOf(network(1000, 1e9), {1});
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(points[0].sentBytes, 0);
  EXPECT_EQ(points[0].exposedNs, 0);
  EXPECT_GT(points[0].peakBytes, 0);
  EXPECT_GT(points[0].computeNs, 0);
}

TEST(RankCapacity, PartsTakeLessTheMoreRanksThereAre) {
  const std::vector<std::int64_t> ranks{2, 8, 64, 4096};
  const auto all = pointsOf(network(1000, 1e9), ranks);
  const auto parts = pointsOf(network(1000, 1e9), ranks, {{"ranks.shard", "optimizer"}});
  ASSERT_EQ(parts.size(), ranks.size());
  ASSERT_EQ(all.size(), ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    EXPECT_EQ(all[i].stateBytes, all[0].stateBytes);
    EXPECT_LT(parts[i].stateBytes, all[i].stateBytes);
    if (i > 0) EXPECT_LT(parts[i].stateBytes, parts[i - 1].stateBytes);
  }
}

// Of six numbers each: AllToAll, what rank 0 tells and sends, AllReduce, rows of twice as many, and what goes back; then the
// gradient of nine.
TEST(RankCapacity, WhatTheModelSendsItselfCounts) {
  const testing::TemporaryFolder folder;
  const testing::RankModels models = testing::writeRankModels(folder, 1);
  const auto session = testing::openedSession(models.ranks, {{"optimizer", "sgd"}});
  ASSERT_TRUE(session.has_value()) << session.error().message;
  const auto points = (*session)->lab().rankCapacity(network(1000, 1e9, 1), {2}, "", "");
  ASSERT_TRUE(points.has_value()) << points.error().message;
  EXPECT_EQ(points->front().collectives, 18);
  EXPECT_EQ(points->front().sentBytes, (12 + 24 + 24 + 24 + 24 + 24) + (24 + 24 + 24 + 24 + 12 + 24 + 24) + 36);
  EXPECT_EQ(points->front().levelBytes.back(), points->front().sentBytes);
  const auto one = (*session)->lab().rankCapacity(network(1000, 1e9), {1}, "", "");
  ASSERT_FALSE(one.has_value());
  EXPECT_NE(one.error().message.find("expected 0 to 0"), std::string::npos) << one.error().message;
}

// A rank sends as much of gradients with parts as without; every micro step, where it keeps parts of gradients.
TEST(RankCapacity, BytesAreThoseOfTheCollectives) {
  const auto sent = [](const char* shard) {
    const auto points = pointsOf(network(1000, 1e9), {4}, {{"ranks.shard", shard}, {"accumulate", "3"}});
    return points.empty() ? std::int64_t{0} : points[0].sentBytes;
  };
  const std::int64_t all = sent("off"), optimizer = sent("optimizer"), gradients = sent("gradients");
  ASSERT_GT(all, 0);
  EXPECT_NEAR(static_cast<double>(optimizer), static_cast<double>(all), 0.01 * static_cast<double>(all));
  EXPECT_NEAR(static_cast<double>(gradients), 2 * static_cast<double>(all), 0.02 * static_cast<double>(all));
}

TEST(RankCapacity, TimesFollowTheNetwork) {
  const auto taken = [](const NetworkFile& on) {
    const auto points = pointsOf(on, {16});
    return points.empty() ? 0 : points[0].communicationNs;
  };
  EXPECT_NEAR(taken(network(0, 1e9)), 2 * taken(network(0, 2e9)), 1);
  EXPECT_NEAR(taken(network(2000, 1e15)), 2 * taken(network(1000, 1e15)), 10);
  EXPECT_LT(taken(network(1000, 1e9, 8)), taken(network(1000, 1e9)));
  const auto points = pointsOf(network(1000, 1e9, 8), {16});
  ASSERT_EQ(points.size(), 1u);
  ASSERT_EQ(points[0].levelBytes.size(), 2u);
  EXPECT_NEAR(static_cast<double>(points[0].levelBytes[0]), static_cast<double>(points[0].levelBytes[1]) * 7 / 8, 16);
}

TEST(RankCapacity, WhatRunsBesideNodesIsExposedWhereTheyAreTooShort) {
  for (const char* shard : {"off", "optimizer", "gradients", "parameters"}) {
    const auto point = [&](const char* beside, double latencyNs) {
      const auto points = pointsOf(
          network(latencyNs, 1e12), {4},
          {{"ranks.shard", shard}, {"ranks.bucket", "4096"}, {"ranks.overlap", beside}, {"ranks.prefetch", beside}});
      return points.empty() ? RankPoint() : points[0];
    };
    const RankPoint off = point("off", 200), on = point("on", 200);
    EXPECT_NEAR(off.exposedNs, off.communicationNs, 1) << shard;
    EXPECT_NEAR(on.communicationNs, off.communicationNs, 1) << shard << ": the same is sent";
    EXPECT_EQ(on.sentBytes, off.sentBytes) << shard;
    EXPECT_LT(on.exposedNs, on.communicationNs) << shard;
    // However short the step, no more is hidden than it computes.
    const RankPoint slow = point("on", 1e9);
    EXPECT_GE(slow.exposedNs, slow.communicationNs - slow.computeNs - 1) << shard;
  }
}

// Parameters are whole only while a phase reads them: the less are gathered together, the less memory that takes.
TEST(RankCapacity, PartsOfParametersAreGatheredWhereTheyAreRead) {
  const auto point = [](const char* shard, const char* bucket) {
    const auto points = pointsOf(network(1000, 1e9), {8}, {{"ranks.shard", shard}, {"ranks.bucket", bucket}});
    return points.empty() ? RankPoint() : points[0];
  };
  const RankPoint gradients = point("gradients", "4096"), all = point("parameters", "1000000"),
                  few = point("parameters", "1");
  EXPECT_LT(all.stateBytes, gradients.stateBytes / 2);
  EXPECT_LE(few.peakBytes, all.peakBytes);
  EXPECT_LT(few.peakBytes, gradients.peakBytes);
  EXPECT_GT(few.collectives, all.collectives);
  // A gather in front of each phase that reads the parameter, in place of one behind the update.
  EXPECT_GT(few.sentBytes, gradients.sentBytes);
  EXPECT_LE(few.sentBytes, gradients.sentBytes * 3 / 2 + 1);
}

}  // namespace
}  // namespace stepscope
