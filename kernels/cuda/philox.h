// The random numbers of kernels/random.h in the language of the kernels: the same words for the same key and element.
#pragma once

#include "kernels/cuda/support.h"

namespace stepscope::cuda {

// Where a kernel takes its random key from. Seed and step change with every step, but the parameters of a graph do not.
struct Draw {
  RandomKey key;
  Global<const std::uint64_t> now;  // seed and step, where they are not those of the key
};
SS_DEVICE RandomKey keyOf(const Draw& draw) {
  if (!draw.now.present()) return draw.key;
  return {draw.now[0], draw.now[1], draw.key.node};
}
inline Draw drawOf(Launcher& gpu) { return {gpu.call().random, gpu.recordedKey()}; }

struct Words {  // what one counter gives
  std::uint32_t word[4];
};

// Of elements 4 * block … 4 * block + 3.
SS_DEVICE Words randomWords(const RandomKey& key, std::uint64_t block) {
  const std::uint64_t mixed = key.seed ^ (key.step * 0x9E3779B97F4A7C15ull);
  std::uint32_t c0 = static_cast<std::uint32_t>(block), c1 = static_cast<std::uint32_t>(block >> 32), c2 = key.node,
                c3 = static_cast<std::uint32_t>(key.step);
  std::uint32_t k0 = static_cast<std::uint32_t>(mixed), k1 = static_cast<std::uint32_t>(mixed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0, p1 = std::uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// Uniform in [0, 1), 24 bits.
SS_DEVICE float uniformOf(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; }

}  // namespace stepscope::cuda
