// The one list of all passes, import and lowering included, in the order in which they run (DESIGN §3). Why a pass stands
// where it stands is said in its header.
#pragma once

#include <string_view>
#include <vector>

#include "engine/passes/pass.h"

namespace stepscope {

// The passes of one phase.
struct PassList {
  std::string_view phase;  // "inline", "infer", "pre-grad passes", "post-grad passes", "fold"
  std::vector<Pass> passes;
  // So many passes at the front run in rounds, until a round matches nothing: a lowering may make work for one before it.
  std::size_t repeated = 0;
};

const std::vector<PassList>& pipeline();
// The list of a phase of that name; it must be one of them.
const PassList& passesOf(std::string_view phase);

}  // namespace stepscope
