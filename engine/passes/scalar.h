// Constants of one element, as passes that fold factors read them.
#pragma once

#include <optional>

#include "engine/passes/infer.h"

namespace stepscope {

// The contents of a float constant of one element; nothing for others.
std::optional<double> constantScalar(const Inference& inference, ValueId id);

// y = factor · of, with the extents of `of`: Mul or Div with a constant of one element.
struct Scale {
  ValueId of;
  double factor = 1;
};
std::optional<Scale> readScale(const Graph& graph, const Inference& inference, const Node& node);

}  // namespace stepscope
