// Rewrites DeformConv (deformable convolution, arXiv:1811.11168) as GridSample and Conv, so that gradients of x, weight,
// offsets, bias and mask, kernels and types come with them: every tap of the kernel reads x at its place moved by its offset
// (linear, zeros outside), and a convolution of extent 1 adds the taps up.
//
//   x [N, C, H, W], weight [M, C/group, kh, kw], offset [N, 2·offset_group·kh·kw, oh, ow] (row, column of each tap),
//   bias? [M], mask? [N, offset_group·kh·kw, oh, ow] → y [N, M, oh, ow]
//
// Sampled values take kh·kw times the memory of x (of extents oh × ow), as the columns of other implementations do. Runs
// after an `infer`, which tells extents, and before the next one. A node is blocked while an extent other than the batch is
// unknown.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

// Matches are nodes that were rewritten.
Status lowerDeformConv(Graph& graph, PassContext& context);

}  // namespace stepscope
