// Dropout of a sum, and a sum behind it: stepscope.BiasDropout. Implemented by kernels/reference/elementwise/random.cpp,
// kernels/cpu/loops/dropout.cpp and kernels/cuda/dropout.cu.
//
//   y[i] = (keep(i) ? (x[i] + bias[i]) / (1 - ratio) : 0) + residual[i];   keep(i) = uniform01(key, i) >= ratio
//
// Inputs     x, bias?, residual?, ratio?, training_mode?; the last two as Dropout has them. bias is as x, or a row of its
//            last axis; residual is as x.
// Outputs    y as x; mask? bool as x: keep. y may alias x or residual.
// Numerics   float32: each of the three is rounded as a node of its own would round it, so y has the bits of the nodes; a
// GPU
//            may round the product and the sum behind it at once.
// Errors     InvalidArgument where bias or residual have other extents.
#pragma once

#include "kernels/shape.h"
#include "kernels/status.h"

namespace stepscope {

// Whether bias and residual, where they are there, fit x.
inline Status checkBiasDropout(const Dims& x, const Dims* bias, const Dims* residual) {
  const bool row = bias && !x.empty() && bias->size() == 1 && bias->front() == x.back();
  if (bias && *bias != x && !row)
    return invalid("BiasDropout: bias " + dimsText(*bias) + " for x " + dimsText(x) +
                   "; expected its extents, or the last one");
  if (residual && *residual != x)
    return invalid("BiasDropout: residual " + dimsText(*residual) + " for x " + dimsText(x) + "; expected its extents");
  return {};
}

}  // namespace stepscope
