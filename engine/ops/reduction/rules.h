// Parts of rules that the ops of this folder share.
#pragma once

#include <string_view>

#include "engine/ops/gradient_context.h"
#include "engine/ops/op_def.h"
#include "engine/ops/shape_context.h"

namespace stepscope::reduction_rules {

// --- Reduce ops: x, axes? → y; attributes keepdims (1), noop_with_empty_axes (0). Absent or empty axes mean all of them, or
// none with noop_with_empty_axes (the elementwise part of the op still happens).

Status inferReduce(ShapeContext& c);
// The same, and carries known contents of integer vectors through `combine` (shape arithmetic such as a product of extents).
Status inferReduceContents(ShapeContext& c, Dim (*combine)(const Dim&, const Dim&));
// Of ArgMax and ArgMin: int64, without the extent of `axis` (0), or with it as 1 (keepdims).
Status inferArgReduce(ShapeContext& c);
// `v`, shaped like the output of the Reduce node, made to broadcast against its input.
ValueId unreduced(GradientContext& g, ValueId v);
// `op` over `v` along the axes of the Reduce node, extents kept.
ValueId reduceAlike(GradientContext& g, std::string_view op, ValueId v);
// d x of ReduceMax and ReduceMin: tied elements share the gradient evenly.
Status extremeGradient(GradientContext& g);

// --- costs: `kPerElement` flops per element of input 0 (of input 1 for gradients, which is at least as large as dy)
template <int kPerElement, int kInput = 0>
double flopsPerElement(const OpShapes& shapes) {
  double elements = kPerElement;
  for (const std::int64_t extent : shapes.inputs[kInput]) elements *= static_cast<double>(extent);
  return elements;
}

// --- checks
// The first `inputs` inputs are there, and with expectOperands output 0: kernels read and write them without asking.
Status expectInputs(ShapeContext& c, std::size_t inputs);
Status expectOperands(ShapeContext& c, std::size_t inputs);
// In the checks below absent inputs pass.
Status expectFloat(ShapeContext& c, std::size_t input, std::string_view what);
// Error when inputs i and j are present and differ in dtype.
Status expectSameDType(ShapeContext& c, std::size_t i, std::size_t j);
// Input `input` is a vector with `extent` elements.
Status expectVector(ShapeContext& c, std::size_t input, const Dim& extent, std::string_view what);

// --- normalisations over the axes [axis, rank)
// `input` broadcasts along leading normalised axes only: its extents without leading ones are the last extents of x.
Status expectNormalised(ShapeContext& c, std::size_t input, const Shape& x, std::size_t axis, std::string_view what);
// The dtype of saved statistics: float64 for float64 inputs, else what `stash_type` says (float32).
DType statisticsType(const ShapeContext& c);
// Emits `op` (dy, x, scale, saved…) → dx, dscale, dbias and sets the gradients of inputs 0, 1 (scale) and, when present, 2
// (bias, shaped like scale). `more`, when valid, is added to that of input 0, which is `more` alone where no gradient
// arrives at output 0.
void normalisationGradient(GradientContext& g, std::string_view op, std::vector<ValueId> inputs, Attributes attrs,
                           ValueId more = {});
// What a graph that reads mean (absent of RMS norms) and inv_std of a normalisation adds to the gradient of x; invalid when
// neither output has one.
ValueId statisticsGradient(GradientContext& g, ValueId mean, ValueId inverse, ValueId dmean, ValueId dinverse);
// Shape rule of such a gradient op with `inputs` inputs: output 0 like input 1, outputs 1 and 2 like input 2; dy has the
// dtype of input `dtypeOf`.
Status inferNormalisationGrad(ShapeContext& c, std::size_t inputs, std::size_t dtypeOf);

// Checks `axis` (default -1) against input 0 and gives output 0 its type; a scalar is one line of one element.
Status inferAlongAxis(ShapeContext& c);
// dy, y → dx, each of one type and shape, for what is normalised along `axis`.
Status inferSoftmaxGrad(ShapeContext& c);

}  // namespace stepscope::reduction_rules
