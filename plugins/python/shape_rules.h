// SPDX-License-Identifier: Apache-2.0
//
// Shape rules of the ops of python_host.cpp. A node of Aten or Function says itself what its results are: attributes `types`
// (ONNX numbers), `ranks` and `shapes` (all extents, one after another), as the capture saw them with inputs of
// `input_ranks` and `input_shapes`. For inputs of other extents Python says which the results have, of a run on meta
// tensors; while an extent of an input is a symbol, those of the results are not known.
#pragma once

#include <string>

#include "plugins/abi/stepscope_plugin.h"

namespace stepscope::python {

// SSP_ERROR with operator, found and expected extents, and why Python does not know the results.
ssp_status inferResults(const ssp_op* op, ssp_shape_context* c);

// Gradients of the inputs `wanted`, which have their types and shapes.
ssp_status inferGradient(const ssp_op* op, ssp_shape_context* c);

std::string quoted(const char* text);  // as JSON

}  // namespace stepscope::python
