// Sixteen channels of one image side by side, [positions, 16]: as GridSample and RoiAlign walk them, so that an element of
// the image is one vector.
#pragma once

#include <cstdint>

namespace stepscope::cpu {

// to[i * 16 + lane] = planes[lane * step + i] for i < count; 0 in lanes from `lanes` on.
void lanesOfPlanes(const float* planes, std::int64_t step, std::int64_t lanes, std::int64_t count, float* to);
// The way back, of the first `lanes` lanes.
void planesOfLanes(const float* from, std::int64_t count, float* planes, std::int64_t step, std::int64_t lanes);

}  // namespace stepscope::cpu
