#include "kernels/cpu/recurrent/panels.h"

#include <algorithm>

#include "kernels/cpu/channels/lanes.h"

namespace stepscope::cpu {
namespace {

constexpr std::int64_t kTallest = 8;

// kRows rows times one panel, of which `width` columns are there.
template <int kRows>
SS_INLINE void tile(const float* a, std::int64_t aStep, const float* panel, std::int64_t depth, float* y, std::int64_t yStep,
                    std::int64_t width) {
  Floats low[kRows] = {}, high[kRows] = {};
  for (std::int64_t k = 0; k < depth; ++k) {
    Floats left, right;
    load(panel + k * kPanel, left);
    load(panel + k * kPanel + kLanes, right);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const float factor = a[r * aStep + k];
      low[r] += factor * left;
      high[r] += factor * right;
    }
  }
  if (width == kPanel) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      Floats sum;
      load(y + r * yStep, sum);
      store(sum + low[r], y + r * yStep);
      load(y + r * yStep + kLanes, sum);
      store(sum + high[r], y + r * yStep + kLanes);
    }
    return;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
    for (std::int64_t j = 0; j < width; ++j) y[r * yStep + j] += j < kLanes ? low[r][j] : high[r][j - kLanes];
}

}  // namespace

void packPanels(const float* b, std::int64_t depth, std::int64_t columns, std::int64_t rowStep, std::int64_t columnStep,
                float* packed, int threads) {
  const std::int64_t panels = (columns + kPanel - 1) / kPanel;
#pragma omp parallel for schedule(static) num_threads(threads) if (depth * columns > 65536)
  for (std::int64_t p = 0; p < panels; ++p) {
    float* to = packed + p * depth * kPanel;
    const float* from = b + p * kPanel * columnStep;
    const std::int64_t width = std::min(kPanel, columns - p * kPanel);
    if (width < kPanel) std::fill_n(to, depth * kPanel, 0.0F);
    if (columnStep == 1) {
      for (std::int64_t k = 0; k < depth; ++k) std::copy_n(from + k * rowStep, width, to + k * kPanel);
      continue;
    }
    constexpr std::int64_t kBlock = 16;
    for (std::int64_t start = 0; start < depth; start += kBlock)
      for (std::int64_t j = 0; j < width; ++j)
        for (std::int64_t k = start; k < std::min(depth, start + kBlock); ++k)
          to[k * kPanel + j] = from[k * rowStep + j * columnStep];
  }
}

SS_LANE_CLONES
void addPanels(const float* a, std::int64_t aStep, std::int64_t rows, const float* packed, std::int64_t depth,
               std::int64_t columns, float* y, std::int64_t yStep) {
  for (std::int64_t column = 0; column < columns; column += kPanel) {
    const float* panel = packed + column * depth;
    const std::int64_t width = std::min(kPanel, columns - column);
    std::int64_t row = 0;
    for (; row + kTallest <= rows; row += kTallest)
      tile<kTallest>(a + row * aStep, aStep, panel, depth, y + row * yStep + column, yStep, width);
    const float* rest = a + row * aStep;
    float* to = y + row * yStep + column;
    switch (rows - row) {
      case 7: tile<7>(rest, aStep, panel, depth, to, yStep, width); break;
      case 6: tile<6>(rest, aStep, panel, depth, to, yStep, width); break;
      case 5: tile<5>(rest, aStep, panel, depth, to, yStep, width); break;
      case 4: tile<4>(rest, aStep, panel, depth, to, yStep, width); break;
      case 3: tile<3>(rest, aStep, panel, depth, to, yStep, width); break;
      case 2: tile<2>(rest, aStep, panel, depth, to, yStep, width); break;
      case 1: tile<1>(rest, aStep, panel, depth, to, yStep, width); break;
      default: break;
    }
  }
}

}  // namespace stepscope::cpu
