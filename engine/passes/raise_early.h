// Brings every ONNX node of opset 1 to 6 to the form of opset 7, from which raise_opset goes on: attributes that became
// inputs, operands that were aligned by `broadcast` and `axis`, and what told training from inference (`is_test`).
//
//   Add, Mul, Less, And …   the second operand, aligned at `axis` of the first, gets the extents 1 that follow
//   PRelu                   a slope per channel, the same
//   Dropout                 is_test=0 draws in training, in the form of opset 12; is_test=1 is the test mode of opset 7
//   Reshape, Tile           extents and repeats as inputs
//   Cast, Concat, Pad, Upsample, LpPool, GlobalLpPool   other names or types of attributes
//
// Runs before raise_opset. Experimental operators of these opsets (Affine, Crop, ImageScaler …) are not known. Nodes keep
// their ids. Source: the version notes of the ONNX operator schemas (onnx/docs/Changelog.md).
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

// Matches are nodes that were rewritten. A node without sinceVersion is taken to be of PassContext::opset.
// Errors: a form that opset 7 cannot say, naming the node.
Status raiseEarly(Graph& graph, PassContext& context);

}  // namespace stepscope
