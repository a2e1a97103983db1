// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011).
//
// The number for (seed, step, node, element) depends on nothing else: not on the plan, the order of execution or the
// number of threads. So a recomputed Dropout draws the same mask, and any instruction can be run again alone.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace stepscope {

// `node` is the id of the *imported* node; `step` the micro step.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t node = 0;
};

// Four random words of a counter and a key, in ten rounds.
inline std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// Four 32-bit words for elements 4*block … 4*block+3.
inline std::array<std::uint32_t, 4> randomBlock(const RandomKey& key, std::uint64_t block) {
  const std::uint64_t mixedSeed = key.seed ^ (key.step * 0x9E3779B97F4A7C15ull);
  return philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), key.node,
                     static_cast<std::uint32_t>(key.step)},
                    {static_cast<std::uint32_t>(mixedSeed), static_cast<std::uint32_t>(mixedSeed >> 32)});
}

// Uniform in [0, 1), 24 bits, for one element.
inline float uniform01(const RandomKey& key, std::uint64_t element) {
  const auto words = randomBlock(key, element / 4);
  return static_cast<float>(words[element % 4] >> 8) * 0x1p-24f;
}

// Standard normal by Box-Muller, one per element (two words of the element's own block).
inline double normal01(const RandomKey& key, std::uint64_t element) {
  const auto words = randomBlock(key, element);
  const double u1 = (static_cast<double>(words[0]) + 1.0) * 0x1p-32;
  const double u2 = static_cast<double>(words[1]) * 0x1p-32;
  return std::sqrt(-2.0 * std::log(u1)) * std::cos(6.283185307179586 * u2);
}

// RandomKey::node of a rounding that no imported node draws for.
inline std::uint32_t streamOfRounding(std::int64_t stream) { return static_cast<std::uint32_t>(stream) | 0x80000000u; }

}  // namespace stepscope
