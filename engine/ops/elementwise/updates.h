// What the updates of parameters share. Of several in one node: operands that all have in common, then a list for each
// parameter. With attribute copies (1) every parameter' has a copy in a low type behind its other results, in the type of
// attribute copy_type: what products of mixed precision read in the next step (pass keep_low_weights). The gradient may be
// in a low type; everything is computed in float32.
#pragma once

#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/random_type.h"

namespace stepscope::ops {

struct UpdateLists {
  static constexpr std::uint32_t kShared = 3;  // inputs before the lists
  std::uint32_t inputs = 0, outputs = 0;       // of a list: parameter, gradient, states …; parameter', states' …

  std::size_t results(const Attributes& attrs) const { return outputs + (attrs.integer("copies", 0) != 0 ? 1 : 0); }
};

// Output `out` is the copy of the parameter that input `in` is.
inline Status inferCopy(ShapeContext& c, std::size_t out, std::size_t in) {
  SS_ASSIGN(const DType dtype, attributeType(c, "copy_type", DType::kUndefined));
  if (c.attrs().integer("copies", 0) == 0 || !isLow(dtype))
    return c.error("a copy of the parameter without attributes copies 1 and copy_type float16 or bfloat16");
  c.setOutput(out, dtype, c.inputShape(in));
  return {};
}

// Every result has the type of what it follows: the first of the parameter, the others of the states.
inline Status inferUpdates(ShapeContext& c, UpdateLists lists) {
  const std::size_t results = lists.results(c.attrs());
  for (std::size_t in = UpdateLists::kShared, out = 0; in < c.inputCount(); in += lists.inputs, out += results) {
    SS_TRY(requireFloat(c, in));
    for (std::size_t o = 0; o < lists.outputs; ++o) {
      if (!c.hasOutput(out + o)) continue;
      const std::size_t followed = o == 0 ? in : in + o + 1;
      c.setOutput(out + o, c.inputDType(c.hasInput(followed) ? followed : in), c.inputShape(in));
    }
    if (results > lists.outputs && c.hasOutput(out + lists.outputs)) SS_TRY(inferCopy(c, out + lists.outputs, in));
  }
  return {};
}

// As many as the elements of the parameters, as for the single updates.
inline double flopsOfUpdates(const OpShapes& shapes, UpdateLists lists) {
  double flops = 0;
  const std::size_t results = lists.results(*shapes.attrs);
  for (std::size_t out = 0; out < shapes.outputs.size(); out += results) {
    double elements = 1;
    for (const std::int64_t extent : shapes.outputs[out]) elements *= static_cast<double>(extent);
    flops += elements;
  }
  return flops;
}

}  // namespace stepscope::ops
