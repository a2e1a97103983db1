// Weight gradient of convolutions with one channel per group, for x and dy in plain or nChw16c layout.
//
//   dw[c, t] = sum_{n, o} dy[n, c, o] · x[n, c, o*stride - pad + t*dilation]
//
// Shapes     x: [N, C, H, W] or [N, C, W]; dy: [N, C, H', W']; dw: [C, 1, kh, kw]; any C: the last sixteen channels may be
// fewer. Numerics   f32 over one image, in lanes of a channel each; double over the images.
#pragma once

#include <cstddef>

#include "kernels/kernel.h"
#include "kernels/window.h"

namespace stepscope::cpu {

// Which inputs play x and dy.
struct DepthwiseOperands {
  std::size_t x = 1, dy = 0;
  Layout xLayout = Layout::kPlain, dyLayout = Layout::kPlain;
};

// One channel per group on both sides and one or two spatial axes.
bool isDepthwise(const ConvGeometry& geometry);

// The kernel of a depthwise geometry; the work is split over `threads`.
std::unique_ptr<Kernel> makeDepthwiseWeightGrad(const ConvGeometry& geometry, const DepthwiseOperands& operands,
                                                int threads);

}  // namespace stepscope::cpu
