// Convolutions of 3 x 3 windows by Winograd's minimal filtering F(4x4, 3x3): 36 products per 16 results instead of 144,
// where transforming maps and weights costs less than that saves. A match sets attribute `winograd` of a Conv or one of its
// gradients, which its kernel follows; near misses name the condition. Last in `specialise`: it asks for numbers and for
// maps in nChw16c.
//
// Milliseconds of oneDNN's two primitives on two AVX-512 cores, best of six, maps and weights in its layouts
// (direct/Winograd):
//   tiles  channels       forward      input gradient  weight gradient
//   784    64 → 64        3.46/1.75    3.60/1.74       3.66/1.97
//   784    32 → 32        0.86/0.59    0.86/0.60       0.89/0.83
//   196    128 → 128      3.46/1.93    3.49/1.97       3.63/1.73
//   196    512 → 512      53.3/20.8    56.7/20.7       59.4/21.9
//   128    256 → 256      6.42/3.88    6.52/3.92       7.07/4.02
//   64     256 → 256      3.22/2.53    3.45/2.63       3.43/2.54
//   64     64 → 64        0.28/0.24    0.27/0.24       0.30/0.24
//   64     128 → 32       0.28/0.30    0.29/0.26       0.39/0.27
//   32     256 → 256      1.61/1.66    1.64/1.68       1.78/1.52
//   16     512 → 512      3.07/5.01    3.07/4.97       4.20/6.30
//   1024   16 → 16        0.33/0.39    0.29/0.40       0.31/0.48
// Results differ from the direct sums' by at most 4e-6 of the largest, a hundred times their rounding. That turns a Relu
// whose input is nearly 0 now and then: the gradients of a fresh ResNet-18 (8 images) then differ from those of float64 by
// 1e-2, in the median over its parameters, where direct sums, ours and PyTorch's, differ by 2e-6. So the pass is off until
// it is asked for.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status chooseWinograd(Graph& graph, PassContext& context);

}  // namespace stepscope
