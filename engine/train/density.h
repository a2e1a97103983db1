// Phase `inspect inputs`: how much of the batch at hand is padding or ignored labels.
#pragma once

#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/train/data.h"
#include "engine/train/options.h"

namespace stepscope {

// One sentence per input that has a density: "labels 'labels': 410 of 512 valid (80.1 %), ignored label -100". The padding value
// of token ids comes from --pad, else from a mask input of the same shape.
std::vector<std::string> inspectDensity(const Graph& graph, const Batch& batch, const TrainOptions& options);

}  // namespace stepscope
