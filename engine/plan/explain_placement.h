// Why a buffer lies where it lies in the arena: whose memory it takes, and what else it could have taken.
#pragma once

#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace stepscope {

// By buffer; empty for those without arena memory of their own.
//
// "takes the memory of 'x', dead since instruction 12, and of 2 more; 3 gaps are free from 14 to 20 and large enough, it
// lies in the smallest: 128 bytes are left of it". Gaps are judged with everything else where it is, up to the end of the
// arena. Larger plans than kMostComparedBlocks (place_blocks.h) say whose memory it is, and not which gaps there are. Needs
// the offsets of a packed plan. O(n log n), and O(n²) for the gaps.
std::vector<std::string> explainPlacement(const ExecutionPlan& plan);

}  // namespace stepscope
