// What an input of the model holds, found from how the graph uses it.
#pragma once

#include <cstdint>
#include <string>

#include "engine/ir/graph.h"

namespace stepscope {

// What an integer or mask input holds, found from how the graph uses it.
struct InputRole {
  enum class Kind { kTokens, kLabels, kMask, kPositions, kLengths, kData } kind = Kind::kData;
  std::int64_t below = 0;  // exclusive upper end of token ids, labels and positions; 0 unknown
  std::string counted;     // of lengths: the input whose axis `axis` they count
  std::size_t axis = 0;
  std::string text;    // "token ids below 384"
  std::string reason;  // "indexes 'wte.weight' (384 rows) through Gather 'wte/Gather'"
};
InputRole inferRole(const Graph& graph, ValueId input);

}  // namespace stepscope
