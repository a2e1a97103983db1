// Random words of many draws at once: the same numbers as kernels/random.h, in loops that become vector code.
#pragma once

#include <array>

#include "kernels/cpu/loops/vector_math.h"
#include "kernels/random.h"

namespace stepscope::cpu {

// words[4 * d + w] is word w of draw block + d.
template <std::size_t kWords>
SS_INLINE void drawWords(const RandomKey& key, std::uint64_t block, std::array<std::uint32_t, kWords>& words) {
#pragma GCC ivdep
  for (std::size_t d = 0; d < kWords / 4; ++d) {
    const auto four = randomBlock(key, block + d);
    words[4 * d] = four[0];
    words[4 * d + 1] = four[1];
    words[4 * d + 2] = four[2];
    words[4 * d + 3] = four[3];
  }
}

// Uniform in [0, 1) as uniform01 has it.
SS_INLINE float uniformOf(std::uint32_t word) { return static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 0x1p-24F; }

}  // namespace stepscope::cpu
