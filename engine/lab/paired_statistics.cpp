#include "engine/lab/paired_statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/profile/step_times.h"
#include "kernels/status.h"

namespace stepscope {
namespace {

constexpr double kLevel = 0.05;

// P(K <= k) of k heads among n throws of a coin, for k = 0, 1, …
class Coins {
 public:
  explicit Coins(std::size_t n)
      : n_(n), logRest_(std::lgamma(static_cast<double>(n) + 1) - static_cast<double>(n) * std::log(2.0)) {}
  // For the next k.
  double next() {
    sum_ += std::exp(logRest_ - std::lgamma(static_cast<double>(k_) + 1) - std::lgamma(static_cast<double>(n_ - k_) + 1));
    ++k_;
    return std::min(1.0, sum_);
  }

 private:
  std::size_t n_, k_ = 0;
  double logRest_, sum_ = 0;
};

}  // namespace

PairedTimes comparePaired(std::span<const double> before, std::span<const double> after) {
  SS_CHECK(before.size() == after.size() && before.size() >= static_cast<std::size_t>(kFewestPairs));
  std::vector<double> differences;
  std::size_t more = 0, less = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    SS_CHECK(before[i] > 0 && after[i] > 0);
    differences.push_back(std::log(after[i] / before[i]));
    more += after[i] > before[i];
    less += after[i] < before[i];
  }
  std::sort(differences.begin(), differences.end());
  // As many differences are left out at each end as may lie on one side of the median by chance.
  const std::size_t n = differences.size();
  std::size_t out = 0;
  for (Coins coins(n); coins.next() <= kLevel / 2;) ++out;
  PairedTimes times;
  times.low = std::exp(differences[out - 1]);
  times.high = std::exp(differences[n - out]);
  times.ratio = std::exp(medianOf(std::move(differences)));
  Coins coins(more + less);
  double p = 0;
  for (std::size_t k = 0; k <= std::min(more, less); ++k) p = coins.next();
  if (more + less > 0) times.p = std::min(1.0, 2 * p);
  return times;
}

std::vector<double> adjustedByHolm(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double largest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, std::min(1.0, p[order[i]] * static_cast<double>(p.size() - i)));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

std::string_view verdictOf(const PairedTimes& times, double adjustedP) {
  constexpr double kLeast = 1 + kSmallestEffect;
  const bool shown = adjustedP <= kLevel;
  if (shown && times.low > kLeast) return "slower";
  if (shown && times.high < 1 / kLeast) return "faster";
  const bool leavesOneOut = times.low > 1 || times.high < 1;
  const bool large = times.ratio > kLeast || times.ratio < 1 / kLeast;
  const bool wide = times.low < 1 / (1 + kRuledOut) || times.high > 1 + kRuledOut;
  return wide || (leavesOneOut && (!shown || large)) ? "not shown" : "same";
}

}  // namespace stepscope
