// The type in which parameters are kept between steps (option master-weights).
//
//  - auto: that of the file. A file in float16 or bfloat16 trains as PyTorch trains such a module: parameters, gradients and
//    optimizer state in the low type, each update computed in float32 and rounded to nearest.
//  - fp32: float32 for all; where the file has a low type, readers get a cast to it. Updates that are too small for the low
//    type add up.
//  - off: the low type of option precision; what reads a parameter in float32 gets a cast. Optimizer state is float32, and
//    updates are rounded to one of the two neighbours at random (op StochasticRound), so that small ones are not lost on
//    average. Half the memory of weights, and no casts of weights in the step.
#pragma once

#include <vector>

#include "engine/build/options.h"
#include "engine/passes/infer.h"

namespace stepscope {

struct MasterWeights {
  std::size_t widened = 0, narrowed = 0, low = 0;  // parameters that changed their type, and those in a low type now
};

// Changes the types and contents of `trained`, initializers of the graph, which keep their ids and names.
Result<MasterWeights> settleMasterWeights(Graph& graph, Inference& inference, const TrainOptions& options,
                                          const std::vector<ValueId>& trained);

// Whether updates of parameters of this type are rounded at random.
bool roundsStochastically(const TrainOptions& options, DType parameter);

}  // namespace stepscope
