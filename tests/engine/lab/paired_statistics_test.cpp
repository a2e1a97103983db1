// Statistics of pairs on noise that is made here: how often nothing is called something, and a change is found.
#include "engine/lab/paired_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace stepscope {
namespace {

constexpr int kRounds = 25;  // that a session of trials takes of itself

// Times of a step of 1 ms on a machine that slows down and recovers, with single long turns among them.
class Machine {
 public:
  explicit Machine(std::uint64_t seed, double noise) : random_(seed), noise_(noise) {}
  double step(double factor) {
    drift_ = 0.95 * drift_ + 0.005 * normal_(random_);
    const double spike = uniform_(random_) < 0.05 ? 1.5 : 1;
    return 1e6 * factor * spike * std::exp(noise_ * normal_(random_) + drift_);
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  double noise_, drift_ = 0;
};

// Rounds in turns, as the trials run them.
PairedTimes pairOf(Machine& machine, double factor, int rounds) {
  std::vector<double> before, after;
  for (int round = 0; round < rounds; ++round) {
    if (round % 2 == 0) before.push_back(machine.step(1));
    after.push_back(machine.step(factor));
    if (round % 2 == 1) before.push_back(machine.step(1));
  }
  return comparePaired(before, after);
}

// 100 pairs of nothing, each as it would be judged alone, and all of them together.
TEST(PairedTimes, FindNothingWhereNothingChanged) {
  Machine machine(7, 0.01);
  std::vector<double> p;
  int alone = 0, together = 0, outside = 0;
  std::vector<PairedTimes> pairs;
  for (int i = 0; i < 100; ++i) {
    pairs.push_back(pairOf(machine, 1, kRounds));
    p.push_back(pairs.back().p);
    alone += verdictOf(pairs.back(), pairs.back().p) != "same";
    outside += pairs.back().low > 1 || pairs.back().high < 1;
  }
  const std::vector<double> adjusted = adjustedByHolm(p);
  for (std::size_t i = 0; i < pairs.size(); ++i) together += verdictOf(pairs[i], adjusted[i]) != "same";
  EXPECT_LE(alone, 5);
  EXPECT_EQ(together, 0);
  EXPECT_LE(outside, 12) << "95 % intervals hold 1 about 95 times of 100";
  EXPECT_GE(outside, 1) << "and not always: they are not wider than they have to be";
}

TEST(PairedTimes, FindAPlantedSlowdownOfFivePercent) {
  Machine machine(11, 0.01);
  int found = 0, faster = 0, held = 0;
  for (int i = 0; i < 100; ++i) {
    // Among 40 candidates of which it is the only one that changes anything.
    const PairedTimes planted = pairOf(machine, 1.05, kRounds);
    std::vector<double> p{planted.p};
    for (int k = 0; k < 40; ++k) p.push_back(0.1 + 0.02 * k);
    found += verdictOf(planted, adjustedByHolm(p)[0]) == "slower";
    faster += verdictOf(pairOf(machine, 1 / 1.05, kRounds), 0.001) == "faster";
    held += planted.low <= 1.05 && 1.05 <= planted.high;
  }
  EXPECT_GE(found, 95);
  EXPECT_GE(faster, 95);
  EXPECT_GE(held, 88);
}

// Coins: 6 of 6 heads have p = 2 / 2^6, 1 of 8 tails 2 (1 + 8) / 2^8; with 25 pairs the 8th and the 18th bound the median.
TEST(PairedTimes, AreExact) {
  const std::vector<double> ones(25, 1.0);
  std::vector<double> times;
  for (int i = 1; i <= 6; ++i) times.push_back(std::exp(0.1 * i));
  const PairedTimes six = comparePaired(std::span(ones).first(6), times);
  EXPECT_NEAR(six.p, 2.0 / 64, 1e-12);
  EXPECT_NEAR(six.ratio, std::exp(0.35), 1e-12);
  EXPECT_NEAR(six.low, std::exp(0.1), 1e-12) << "the whole range";
  EXPECT_NEAR(six.high, std::exp(0.6), 1e-12);
  times.assign(8, 2.0);
  times[3] = 0.5;
  EXPECT_NEAR(comparePaired(std::span(ones).first(8), times).p, 18.0 / 256, 1e-12);
  times.clear();
  for (int i = 1; i <= 25; ++i) times.push_back(std::exp(0.1 * i));
  std::shuffle(times.begin(), times.end(), std::mt19937_64(1));
  const PairedTimes all = comparePaired(ones, times);
  EXPECT_NEAR(all.low, std::exp(0.8), 1e-12);
  EXPECT_NEAR(all.ratio, std::exp(1.3), 1e-12);
  EXPECT_NEAR(all.high, std::exp(1.8), 1e-12);
}

// As many rounds as --seconds may give: no number leaves its range.
TEST(PairedTimes, TakeVeryManyPairs) {
  std::vector<double> before(100'001, 1.0), after(100'001, 1.1);
  const PairedTimes slower = comparePaired(before, after);
  EXPECT_LT(slower.p, 1e-300);
  EXPECT_GE(slower.p, 0);
  for (std::size_t i = 0; i < after.size(); i += 2) after[i] = 0.9;
  EXPECT_NEAR(comparePaired(before, after).p, 1, 1e-6);
}

TEST(PairedTimes, ThatAreEqualSayNothing) {
  const std::vector<double> same(10, 3.0);
  const PairedTimes times = comparePaired(same, same);
  EXPECT_EQ(times.p, 1);
  EXPECT_EQ(times.ratio, 1);
  EXPECT_EQ(times.low, 1);
  EXPECT_EQ(times.high, 1);
  EXPECT_EQ(verdictOf(times, 1), "same");
}

TEST(Holm, MultipliesTheSmallestByAllAndTheLargestByOne) {
  const std::vector<double> p{0.01, 0.04, 0.03, 0.005};
  const std::vector<double> adjusted = adjustedByHolm(p);
  EXPECT_NEAR(adjusted[3], 0.02, 1e-12);
  EXPECT_NEAR(adjusted[0], 0.03, 1e-12);
  EXPECT_NEAR(adjusted[2], 0.06, 1e-12);
  EXPECT_NEAR(adjusted[1], 0.06, 1e-12) << "never below the one before it";
  EXPECT_TRUE(adjustedByHolm({}).empty());
}

// Significant, and yet no change that counts.
TEST(Verdict, NeedsMoreThanTheSmallestEffect) {
  EXPECT_EQ(verdictOf({1.008, 1.006, 1.02, 1e-6}, 1e-5), "same");
  EXPECT_EQ(verdictOf({1.03, 1.011, 1.05, 1e-6}, 1e-5), "slower");
  EXPECT_EQ(verdictOf({1.03, 1.011, 1.05, 0.02}, 0.4), "same") << "among many";
  EXPECT_EQ(verdictOf({0.97, 0.95, 0.989, 1e-6}, 1e-5), "faster");
  EXPECT_EQ(verdictOf({0.97, 0.95, 0.991, 1e-6}, 1e-5), "same");
}

}  // namespace
}  // namespace stepscope
