// Statistics of pairs on noise that is made here: how often nothing is called something, and a change is found.
#include "engine/lab/paired_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace stepscope {
namespace {

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

bool decided(std::string_view verdict) { return verdict == "slower" || verdict == "faster"; }

// 100 pairs of nothing, each as it would be judged alone, and all of them together.
TEST(PairedTimes, FindNothingWhereNothingChanged) {
  Machine machine(7, 0.01);
  std::vector<double> p;
  int alone = 0, together = 0, outside = 0;
  std::vector<PairedTimes> pairs;
  for (int i = 0; i < 100; ++i) {
    pairs.push_back(pairOf(machine, 1, kPairs));
    p.push_back(pairs.back().p);
    alone += decided(verdictOf(pairs.back(), pairs.back().p));
    outside += pairs.back().low > 1 || pairs.back().high < 1;
  }
  const std::vector<double> adjusted = adjustedByHolm(p);
  for (std::size_t i = 0; i < pairs.size(); ++i) together += decided(verdictOf(pairs[i], adjusted[i]));
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
    const PairedTimes planted = pairOf(machine, 1.05, kPairs);
    std::vector<double> p{planted.p};
    for (int k = 0; k < 40; ++k) p.push_back(0.1 + 0.02 * k);
    found += verdictOf(planted, adjustedByHolm(p)[0]) == "slower";
    faster += verdictOf(pairOf(machine, 1 / 1.05, kPairs), 0.001) == "faster";
    held += planted.low <= 1.05 && 1.05 <= planted.high;
  }
  EXPECT_GE(found, 95);
  EXPECT_GE(faster, 95);
  EXPECT_GE(held, 88);
}

// As tests/bench/trials_bench.py asks: pairs of nothing and pairs that are slowed down, judged together. How many of 100 are
// found of each.
std::pair<int, int> foundOfBoth(Machine& machine, int rounds) {
  std::vector<PairedTimes> pairs;
  std::vector<double> p;
  for (int i = 0; i < 200; ++i) {
    pairs.push_back(pairOf(machine, i < 100 ? 1 : 1.05, rounds));
    p.push_back(pairs.back().p);
  }
  const std::vector<double> adjusted = adjustedByHolm(p);
  std::pair<int, int> found;
  for (std::size_t i = 0; i < pairs.size(); ++i)
    if (decided(verdictOf(pairs[i], adjusted[i]))) ++(i < 100 ? found.first : found.second);
  return found;
}

TEST(PairedTimes, OfTheUsualNumberBearNoiseThatHidesTheChangeFromFewer) {
  int ofNothing = 0, few = 0, usual = 0;
  for (std::uint64_t session = 0; session < 20; ++session) {
    Machine machine(100 + session, 0.02);
    few += foundOfBoth(machine, 25).second;
    const auto [nothing, planted] = foundOfBoth(machine, kPairs);
    ofNothing = std::max(ofNothing, nothing);
    usual += planted;
  }
  EXPECT_LE(ofNothing, 5) << "of 100 in any session";
  EXPECT_LT(few, 20 * 93);
  EXPECT_GE(usual, 20 * 95);
}

// How many of `pairs` signs may be contrary so that p is still at most 0.05 / candidates; -1: none may.
int mostContrary(int pairs, int candidates) {
  const std::vector<double> before(static_cast<std::size_t>(pairs), 1.0);
  std::vector<double> after(before.size(), 1.05);
  for (int contrary = 0; contrary < pairs; ++contrary) {
    if (comparePaired(before, after).p > 0.05 / candidates) return contrary - 1;
    after[static_cast<std::size_t>(contrary)] = 0.95;
  }
  return pairs;
}

// The chance that a change is found which a turn hides with chance `q`.
double power(int pairs, int candidates, double q) {
  double sum = 0, one = std::pow(1 - q, pairs);
  for (int k = 0; k <= mostContrary(pairs, candidates); ++k) {
    sum += one;
    one *= q / (1 - q) * (pairs - k) / (k + 1);
  }
  return sum;
}

// What the number of pairs was chosen by: the hardest level of Holm's method among many candidates.
TEST(PairedTimes, AreAsManyAsTheirSignsNeed) {
  EXPECT_EQ(mostContrary(25, 100), 3);
  EXPECT_EQ(mostContrary(kPairs, 100), 8);
  EXPECT_EQ(mostContrary(12, 90), 0);
  EXPECT_EQ(mostContrary(kPairsOfSlowSteps, 90), 1);
  EXPECT_LT(power(25, 100, 1.0 / 14), 0.92);
  EXPECT_GT(power(kPairs, 100, 1.0 / 14), 0.99);
  EXPECT_GT(power(kPairs, 100, 1.0 / 9), 0.95);
  EXPECT_LT(power(12, 90, 0.02), 0.8);
  EXPECT_GT(power(kPairsOfSlowSteps, 90, 0.02), 0.95);
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
  EXPECT_EQ(verdictOf({0.97, 0.95, 0.989, 1e-6}, 1e-5), "faster");
  EXPECT_EQ(verdictOf({0.995, 0.991, 0.999, 1e-6}, 1e-5), "same");
}

// What an interval tells alone, among many, is no "same"; nor is a change that may be larger than the smallest effect or
// not.
TEST(Verdict, SaysWhatIsNotShown) {
  EXPECT_EQ(verdictOf({1.03, 1.011, 1.05, 0.02}, 0.4), "not shown");
  EXPECT_EQ(verdictOf({0.97, 0.95, 0.98, 0.01}, 0.06), "not shown");
  EXPECT_EQ(verdictOf({1.005, 1.001, 1.02, 0.02}, 0.4), "not shown");
  EXPECT_EQ(verdictOf({0.97, 0.95, 0.991, 1e-6}, 1e-5), "not shown");
  EXPECT_EQ(verdictOf({1.03, 1.005, 1.05, 1e-6}, 1e-5), "not shown");
  EXPECT_EQ(verdictOf({1.03, 0.999, 1.06, 0.08}, 0.4), "not shown") << "6 % slower is possible";
  EXPECT_EQ(verdictOf({0.7514, 0.59, 1.02, 0.08}, 0.08), "not shown");
  EXPECT_EQ(verdictOf({1.01, 0.98, 1.04, 0.4}, 0.4), "same") << "5 % is ruled out";
}

}  // namespace
}  // namespace stepscope
