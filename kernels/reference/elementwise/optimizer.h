// Hyperparameters of the optimizer updates, as every kernel of them reads its attributes.
//
// Attributes are float32, but PyTorch computes with the decimal number that a person wrote: 1 - 0.999f is off by 1e-5. So
// each is read through its shortest decimal text.
//
// Inputs     SgdUpdate: parameter, gradient, momentum?, lr, scale?, step?.  AdamUpdate, LambUpdate: parameter, gradient, m,
// v, lr, step,
//            scale?.  SgdUpdates, AdamUpdates: the last three first, then the others of each parameter. lr and scale are
//            float scalars, step an int64 scalar that counts updates from 1.
// Outputs    parameter', momentum' or parameter', m', v', for each parameter; with attribute copies, copy behind them:
//            parameter' rounded to nearest in the type of that output, float16 or bfloat16 (pass keep_low_weights). Results
//            may lie over the parameter and the states that they follow.
// Types      the gradient may be float16 or bfloat16 where the parameter is float32.
// Numerics   in double; every state is rounded once to its own type. The fast kernels take the factors of the step in double
// and
//            calculate elements in float.
#pragma once

#include "kernels/attributes.h"

namespace stepscope {

// The number that `value` is the nearest float32 of and that has the fewest digits.
double decimalOf(float value);

// PyTorch's SGD: g += weight_decay p; b = momentum b + (1 - dampening) g, at the first step b = g;
// p -= lr (nesterov ? g + momentum b : b).
struct SgdParams {
  double momentum = 0, dampening = 0, weightDecay = 0;
  bool nesterov = false;
  explicit SgdParams(const Attributes& attrs);
};

// PyTorch's Adam (g += weight_decay p), AdamW when decoupled (p *= 1 - lr weight_decay), and LAMB (p -= lr |p|/|u| u with
// u = mhat / (sqrt(vhat) + eps) + weight_decay p; arXiv:1904.00962).
struct AdamParams {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weightDecay = 0;
  bool decoupled = false;
  explicit AdamParams(const Attributes& attrs);
};

// Whether each parameter has a copy behind its other results.
inline bool writesCopies(const Attributes& attrs) { return attrs.integer("copies", 0) != 0; }

}  // namespace stepscope
