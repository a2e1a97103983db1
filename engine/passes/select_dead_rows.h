// Makes the gradient of a softmax read its result behind the Where that takes out rows in which everything is masked.
//
// A row of scores that are all -inf has no softmax: 0 / 0. What PyTorch's attention and _safe_softmax answer there, zeros
// with a gradient of zero, exporters write as
//
//   s = Softmax(x);  y = Where(IsNaN(s), 0, s)      or      y = Where(ReduceMin(x == -inf), 0, s)
//
// No gradient arrives at such a row of s, and 0 * NaN would be NaN: SoftmaxGrad reads y in the place of s. Elsewhere y is s.
// Only where that Where (and IsNaN) is all that reads s; a model that masks the result on some other condition has NaN in
// PyTorch, and here. Runs right after the gradient was taken.
#pragma once

#include "engine/passes/pass.h"
#include "engine/passes/pattern.h"

namespace stepscope {

// The value behind that Where; nothing where it is not all that reads the softmax.
ValueId selectedWithoutDeadRows(const Graph& graph, const Inference& inference, const Readers& readers, const Node& softmax);

// Matches are softmax gradients that read another value.
Status selectDeadRows(Graph& graph, PassContext& context);

}  // namespace stepscope
