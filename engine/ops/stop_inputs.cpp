#include "engine/ops/stop_inputs.h"

#include <algorithm>
#include <array>

namespace stepscope {
namespace {

constexpr std::string_view kClassWeights = "class weights are settings of the loss; PyTorch has no gradient for them";

constexpr std::array kStopInputs{
    StopInput{"CastLike", 1, "target_type", "only its type is read", false},
    StopInput{"CustomGradient", 1, "g", "it stands for a gradient", false},
    StopInput{"CustomGradient", 3, "d", "it is a gradient", false},
    StopInput{"Dropout", 1, "ratio", "a setting of the random draw"},
    StopInput{"DropoutPart", 3, "ratio", "a setting of the random draw"},
    StopInput{"FakeQuant", 1, "scale", "straight-through estimation gives a gradient to x alone"},
    StopInput{"FakeQuant", 2, "zero_point", "straight-through estimation gives a gradient to x alone"},
    StopInput{"MatMulBnb4", 2, "absmax", "the scale of frozen weights"},
    StopInput{"NegativeLogLikelihoodLoss", 2, "weight", kClassWeights},
    StopInput{"NegativeLogLikelihoodLossInternal", 2, "weight", kClassWeights},
    StopInput{"OneHot", 0, "indices", "indices: the result jumps where they change"},
    StopInput{"OneHot", 1, "depth", "an extent"},
    StopInput{"Resize", 1, "roi", "a region of the sampling grid; PyTorch has no gradient for it"},
    StopInput{"Resize", 2, "scales", "decides the extents of the result"},
    StopInput{"RoiAlign", 1, "rois", "positions of the boxes; torchvision has no gradient for them"},
    StopInput{"SoftmaxCrossEntropyLoss", 2, "weights", kClassWeights},
    StopInput{"SoftmaxCrossEntropyLossInternal", 2, "weights", kClassWeights},
    StopInput{"StraightThrough", 0, "value", "its gradient goes to x", false},
    StopInput{"StraightThrough", 2, "scale", "straight-through estimation gives a gradient to x alone"},
    StopInput{"StraightThrough", 3, "zero_point", "straight-through estimation gives a gradient to x alone"},
};

}  // namespace

std::span<const StopInput> stopInputs() { return kStopInputs; }

const StopInput* findStopInput(const OpDef& op, std::size_t input) {
  const auto it =
      std::ranges::find_if(kStopInputs, [&](const StopInput& stop) { return stop.op == op.name && stop.input == input; });
  return it == kStopInputs.end() ? nullptr : &*it;
}

}  // namespace stepscope
