// The product of a walk over time: a few rows times one matrix that stays the same for all steps.
//
// The matrix is packed once per walk into panels of kPanel columns, zeros beyond its last column, so that every step reads
// it in one stream and nothing is packed, split or joined between two steps. An element of the result is one sum over k in
// order: it does not depend on which rows a thread has.
#pragma once

#include <cstdint>

namespace stepscope::cpu {

inline constexpr std::int64_t kPanel = 32;

// Floats that a packed matrix of `depth` rows and `columns` columns takes.
constexpr std::int64_t packedSize(std::int64_t depth, std::int64_t columns) {
  return (columns + kPanel - 1) / kPanel * kPanel * depth;
}

// Packs b, element (k, j) at b[k * rowStep + j * columnStep], into `packed`: [panel][k][kPanel].
void packPanels(const float* b, std::int64_t depth, std::int64_t columns, std::int64_t rowStep, std::int64_t columnStep,
                float* packed, int threads);

// y[r, j] += sum_k a[r, k] b[k, j] for `rows` rows that lie aStep and yStep floats apart.
void addPanels(const float* a, std::int64_t aStep, std::int64_t rows, const float* packed, std::int64_t depth,
               std::int64_t columns, float* y, std::int64_t yStep);

}  // namespace stepscope::cpu
