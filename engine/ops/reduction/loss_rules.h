// Parts of the rules of the losses over class labels: inputs scores [N, C, ...], labels [N, ...], weights? [C] and, in the
// com.microsoft forms, ignore_index?; attributes reduction (mean), ignore_index, output_type.
#pragma once

#include "engine/ops/reduction/rules.h"

namespace stepscope::loss_rules {

// Checks the inputs and gives output 0 its type: a scalar, or shaped like the labels with reduction none.
Status inferLoss(ShapeContext& c);
// The dtype of the results: that of the scores unless `output_type` says otherwise.
DType resultType(const ShapeContext& c);

// dy, `second`, labels, weights?, ignore_index? of a gradient op.
std::vector<ValueId> gradientInputs(GradientContext& g, ValueId second);
// reduction, ignore_index, and output_type = the dtype of the scores where it differs from that of the results.
Attributes gradientAttributes(GradientContext& g);
// Output 0 is shaped like input 1.
Status inferLossGrad(ShapeContext& c);

}  // namespace stepscope::loss_rules
