#include "engine/passes/assign_layouts.h"
#include "engine/passes/choose_winograd.h"
#include "engine/passes/cse.h"
#include "engine/passes/eliminate_no_ops.h"
#include "engine/passes/fold_constants.h"
#include "engine/passes/fold_scales.h"
#include "engine/passes/fold_transposes.h"
#include "engine/passes/fuse_batch_norm.h"
#include "engine/passes/fuse_epilogue.h"
#include "engine/passes/fuse_gather_grad.h"
#include "engine/passes/fuse_gelu.h"
#include "engine/passes/fuse_masked_softmax.h"
#include "engine/passes/fuse_normalization.h"
#include "engine/passes/fuse_pointwise.h"
#include "engine/passes/fuse_relu_gradient.h"
#include "engine/passes/fuse_swish.h"
#include "engine/passes/group_updates.h"
#include "engine/passes/hoist_slices.h"
#include "engine/passes/lower_einsum.h"
#include "engine/passes/pass.h"

namespace stepscope {

const std::vector<Pass>& preGradientPasses() {
  static const std::vector<Pass> passes{
      {"fold_constants", "computes what depends on constants only", foldConstants},
      {"eliminate_no_ops", "removes nodes that hand their input on unchanged", eliminateNoOps},
      {"cse", "merges nodes that compute the same", eliminateCommonSubexpressions},
      {"hoist_slices", "takes the rows that are kept before the matrix product that makes them", hoistSlices},
      {"fuse_gelu", "recognises Gelu in the nodes that exporters write for it", fuseGelu},
      {"fuse_swish", "recognises x sigmoid(a x), SiLU and its like, in the nodes that exporters write for it", fuseSwish},
      {"fuse_normalization", "recognises LayerNormalization and RMSNormalization in the nodes that exporters write for them",
       fuseNormalization},
  };
  return passes;
}

const std::vector<Pass>& postGradientPasses() {
  static const std::vector<Pass> passes{
      {"fold_constants", "computes what depends on constants only", foldConstants},
      {"eliminate_no_ops", "removes nodes that hand their input on unchanged", eliminateNoOps},
      {"cse", "merges nodes that compute the same", eliminateCommonSubexpressions},
      {"fuse_relu_gradient", "turns the gradient of Relu into one node", fuseReluGradient},
      {"fuse_batch_norm", "joins BatchNormalization, the addend and Relu, and their gradients", fuseBatchNorm},
  };
  return passes;
}

const std::vector<Pass>& specialisePasses() {
  static const std::vector<Pass> passes{
      {"fold_constants", "computes what the batch's shapes made constant", foldConstants},
      {"eliminate_no_ops", "removes nodes that hand their input on unchanged", eliminateNoOps},
      {"cse", "merges nodes that compute the same", eliminateCommonSubexpressions},
      {"lower_einsum", "computes Einsum with matrix products", lowerEinsum},
      {"fold_transposes", "reads and writes matrix products where their operands and results lie", foldTransposes},
      {"fold_scales", "multiplies constants into the factor of matrix products", foldScales},
      {"fuse_epilogue", "adds biases and residuals, and applies Relu, within the matrix product", fuseEpilogue},
      {"fuse_masked_softmax", "reads scores and mask of attention in one pass", fuseMaskedSoftmax},
      {"fuse_gather_grad", "adds the gradient of an embedding to another one of its table, row by row", fuseGatherGrad},
      {"fuse_pointwise", "runs chains of elementwise nodes in one pass over memory", fusePointwise},
      {"group_updates", "updates small parameters together, in one pass of all threads", groupUpdates},
      {"assign_layouts", "lets convolutions and what lies between them work on nChw16c memory", assignLayouts},
      {"choose_winograd",
       "computes convolutions of 3 x 3 windows with a quarter of the products; results differ by some 4e-6 of the largest",
       chooseWinograd, false},
  };
  return passes;
}

}  // namespace stepscope
