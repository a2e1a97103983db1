// What the updates of several parameters in one node share: operands that all have in common, then a list for each
// parameter.
#pragma once

#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

struct UpdateLists {
  static constexpr std::uint32_t kShared = 3;  // inputs before the lists
  std::uint32_t inputs = 0, outputs = 0;       // of a list: parameter, gradient, states …; parameter', states' …
};

// Every result has the type of what it follows: the first of the parameter, the others of the states.
inline Status inferUpdates(ShapeContext& c, UpdateLists lists) {
  for (std::size_t in = UpdateLists::kShared, out = 0; in < c.inputCount(); in += lists.inputs, out += lists.outputs) {
    SS_TRY(requireFloat(c, in));
    for (std::size_t o = 0; o < lists.outputs; ++o) {
      if (!c.hasOutput(out + o)) continue;
      const std::size_t followed = o == 0 ? in : in + o + 1;
      c.setOutput(out + o, c.inputDType(c.hasInput(followed) ? followed : in), c.inputShape(in));
    }
  }
  return {};
}

// As many as the elements of the parameters, as for the single updates.
inline double flopsOfUpdates(const OpShapes& shapes, UpdateLists lists) {
  double flops = 0;
  for (std::size_t out = 0; out < shapes.outputs.size(); out += lists.outputs) {
    double elements = 1;
    for (const std::int64_t extent : shapes.outputs[out]) elements *= static_cast<double>(extent);
    flops += elements;
  }
  return flops;
}

}  // namespace stepscope::ops
