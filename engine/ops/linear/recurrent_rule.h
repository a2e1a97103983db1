// What LSTM, GRU and RNN share: shape rules and gradients through their internal <Op>Grad.
#pragma once

#include "engine/ops/gradient_context.h"
#include "engine/ops/op_def.h"
#include "engine/ops/shape_context.h"

namespace stepscope::ops {

// Outputs Y, Y_h and (where present) Y_c from X, W, R. `gates` as rows of W per hidden unit.
Status inferRecurrent(ShapeContext& c, std::int64_t gates);

// <op>Grad: inputs dY, dY_h, dY_c, then those of the op (X, W, R, B, sequence_lens, initial_h, initial_c, P; absent ones allowed);
// outputs dX, dW, dR, dB, dinitial_h, dinitial_c, dP.
Status inferRecurrentGradient(ShapeContext& c, std::int64_t gates);
Status recurrentGradient(GradientContext& g, std::string_view gradOp, bool hasCell);

// Two matrix products per step, direction and sequence.
double recurrentFlops(const OpShapes& s);

}  // namespace stepscope::ops
