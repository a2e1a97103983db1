// How much slower or faster: statistics of pairs of times that were taken in turns.
//
// What a pair says is the logarithm of after / before; all pairs are told by its median. Times have long tails, a turn now
// and then takes twice as long, so nothing is assumed of their distribution and no turn counts more than another: the sign
// test, and the interval of the median between two of the ordered differences (Hollander, Wolfe, Chicken: Nonparametric
// Statistical Methods, 3.4 to 3.6). For many candidates: Holm, A Simple Sequentially Rejective Multiple Test Procedure,
// 1979.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace stepscope {

// Fewer pairs have no interval of 95 %.
inline constexpr int kFewestPairs = 6;
// So many are taken where nobody says how many; fewer of steps that take longer than kSlowStepNs. The number is fixed before
// anything is measured: adding pairs until something shows finds too much where there is nothing. Among 100 candidates p has
// to be 0.0005: 8 of 40 signs may be contrary (3 of 25), and a change that one turn in nine hides is found in 95 of 100
// sessions (with 25 pairs one in eighteen). Of 16 pairs one may be contrary, of 12 none.
inline constexpr int kPairs = 40, kPairsOfSlowSteps = 16;
inline constexpr double kSlowStepNs = 2e8;
// A change below it is none: memory that happens to lie otherwise makes as much.
inline constexpr double kSmallestEffect = 0.01;
// "The same" rules out an effect of this size.
inline constexpr double kRuledOut = 0.05;

struct PairedTimes {
  double ratio = 1;          // median of after / before
  double low = 1, high = 1;  // interval that holds it with 95 % or a little more
  double p = 1;              // two-sided: that signs are so uneven where nothing changed
};

// At least kFewestPairs positive times each, equally many. Exact. Equal times of a pair count for neither side.
PairedTimes comparePaired(std::span<const double> before, std::span<const double> after);

// The smallest level at which each is still significant when all are judged together: with a limit of 0.05 the chance of one
// false finding or more among them is at most 0.05.
std::vector<double> adjustedByHolm(std::span<const double> p);

// "slower" or "faster" where adjusted p is at most 0.05 and the whole interval lies beyond kSmallestEffect. "not shown"
// where the interval leaves 1 out and yet adjusted p is above 0.05, or the median lies beyond kSmallestEffect and the
// interval not wholly, or the interval reaches beyond kRuledOut: more pairs, fewer candidates or a quieter machine would
// tell. Else "same".
std::string_view verdictOf(const PairedTimes& times, double adjustedP);

}  // namespace stepscope
