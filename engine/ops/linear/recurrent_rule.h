// What LSTM, GRU and RNN share: shape rules and gradients through their internal <Op>Grad.
#pragma once

#include "engine/ops/gradient_context.h"
#include "engine/ops/op_def.h"
#include "engine/ops/shape_context.h"

namespace stepscope::ops {

// Outputs Y, Y_h and, of LSTM, Y_c from X, W, R. `gates` as rows of W per hidden unit. Behind ONNX's outputs, LSTM and GRU
// have two more, which gradients ask for: the results of the gate activations [directions, X0, X1, gates * hidden] in ONNX's
// order, and [directions, X0, X1, hidden] the cell states (LSTM) or the state's part of the hidden gate (GRU: R h + b before
// the reset, or R (r h) + b); X0, X1 are the leading extents of X; zeros beyond a sequence's length.
Status inferRecurrent(ShapeContext& c, std::int64_t gates);

// <op>Grad: inputs dY, dY_h, dY_c, then those of the op (X, W, R, B, sequence_lens, initial_h, initial_c, P; absent ones
// allowed), then what the way forward kept: Y and, of LSTM and GRU, the two of inferRecurrent (absent: computed again);
// outputs dX, dW, dR, dB, dinitial_h, dinitial_c, and where there is a P, dP.
Status inferRecurrentGradient(ShapeContext& c, std::int64_t gates);
Status recurrentGradient(GradientContext& g, std::string_view gradOp, std::int64_t gates);

// Two matrix products per step, direction and sequence.
double recurrentFlops(const OpShapes& s);
// Two for each of these: the gradients of both factors.
double recurrentGradFlops(const OpShapes& s);

}  // namespace stepscope::ops
