// How much slower than the machine on which bounds were chosen this one is now: 1 or more. Bounds of CPU time are multiplied
// by it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <random>
#include <vector>

namespace stepscope::testing {

// CPU time of this process alone, in seconds: other tests run at the same time.
inline double cpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Sorts 200,000 numbers, which took 14 ms there (-O2), and takes the best of three.
inline double slowness() {
  constexpr double kThere = 0.014;
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    std::mt19937_64 random(1);
    std::vector<std::uint64_t> numbers(200'000);
    for (std::uint64_t& n : numbers) n = random();
    const double start = cpuSeconds();
    std::sort(numbers.begin(), numbers.end());
    best = std::min(best, cpuSeconds() - start);
  }
  return std::max(1.0, best / kThere);
}

}  // namespace stepscope::testing
