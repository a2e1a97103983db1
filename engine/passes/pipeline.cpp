#include "engine/passes/pipeline.h"

#include <algorithm>

#include "engine/passes/assign_layouts.h"
#include "engine/passes/assign_precision.h"
#include "engine/passes/check_declared.h"
#include "engine/passes/choose_winograd.h"
#include "engine/passes/constant_weights.h"
#include "engine/passes/conv1d_to_matmul.h"
#include "engine/passes/cse.h"
#include "engine/passes/drop_expands.h"
#include "engine/passes/drop_zero_bias.h"
#include "engine/passes/eliminate_concats.h"
#include "engine/passes/eliminate_no_ops.h"
#include "engine/passes/eliminate_padding.h"
#include "engine/passes/fold_constants.h"
#include "engine/passes/fold_scales.h"
#include "engine/passes/fold_transposes.h"
#include "engine/passes/fuse_attention.h"
#include "engine/passes/fuse_batch_norm.h"
#include "engine/passes/fuse_cross_entropy.h"
#include "engine/passes/fuse_dropout.h"
#include "engine/passes/fuse_epilogue.h"
#include "engine/passes/fuse_fake_quant.h"
#include "engine/passes/fuse_gather_grad.h"
#include "engine/passes/fuse_gelu.h"
#include "engine/passes/fuse_loss_gradient.h"
#include "engine/passes/fuse_masked_softmax.h"
#include "engine/passes/fuse_normalization.h"
#include "engine/passes/fuse_pointwise.h"
#include "engine/passes/fuse_relu_gradient.h"
#include "engine/passes/fuse_swish.h"
#include "engine/passes/gather_to_slice.h"
#include "engine/passes/group_updates.h"
#include "engine/passes/hoist_slices.h"
#include "engine/passes/infer_types.h"
#include "engine/passes/inline_calls.h"
#include "engine/passes/keep_low_weights.h"
#include "engine/passes/library_epilogues.h"
#include "engine/passes/lower_attention.h"
#include "engine/passes/lower_deform_conv.h"
#include "engine/passes/lower_einsum.h"
#include "engine/passes/lower_if.h"
#include "engine/passes/lower_sequences.h"
#include "engine/passes/lower_signal.h"
#include "engine/passes/lower_soft_labels.h"
#include "engine/passes/merge_slices.h"
#include "engine/passes/narrow_gradients.h"
#include "engine/passes/pair_messages.h"
#include "engine/passes/propagate_casts.h"
#include "engine/passes/raise_early.h"
#include "engine/passes/raise_microsoft.h"
#include "engine/passes/raise_opset.h"
#include "engine/passes/select_dead_rows.h"
#include "engine/passes/settle_norm_types.h"
#include "engine/passes/sparse_labels.h"
#include "engine/passes/straight_through.h"
#include "engine/passes/strided_views.h"
#include "engine/passes/traced_statistics.h"
#include "engine/passes/transpose_to_reshape.h"
#include "engine/passes/unroll_loops.h"

namespace stepscope {
namespace {

constexpr PassSwitch kOff = PassSwitch::kOff, kMandatory = PassSwitch::kMandatory;

constexpr Pass kInfer{"infer_types", "types, symbolic shapes and known contents of all values", inferTypes, kMandatory};

PassList inlining() {
  return {
      "inline",
      {
          {"inline_calls", "puts the bodies of model-local functions where they are called", inlineCalls, kMandatory},
          {"raise_microsoft", "writes operators of com.microsoft as the public ops they mean", raiseMicrosoft, kMandatory},
          {"raise_early", "brings nodes of opsets 1 to 6 to the form of 7", raiseEarly, kMandatory},
          {"raise_opset", "brings every node to the internal opset", raiseOpset, kMandatory},
          {"lower_if", "puts both branches of If into the graph, under predicates", lowerIf, kMandatory},
          {kConstantWeightsPass, "makes parameters of weights that stand in Constant nodes", constantWeights, kMandatory},
          {"pair_messages", "joins each Recv to its Send", pairMessages, kMandatory},
      }};
}

PassList inferring() {
  return {
      "infer",
      {
          kInfer,
          {"unroll_loops", "writes out Loop and Scan of a known number of iterations", unrollLoops, kMandatory},
          {"lower_signal", "computes Fourier transforms and windows with products", lowerSignal, kMandatory},
          {"lower_attention", "writes Attention and RotaryEmbedding as the public ops they mean", lowerAttention,
           kMandatory},
          {"lower_deform_conv", "computes deformable convolutions by sampling and a product", lowerDeformConv, kMandatory},
          {"lower_soft_labels", "computes cross entropy with probabilities as labels", lowerSoftLabels, kMandatory},
          {"straight_through", "gives quantisation in training its gradient", straightThrough, kMandatory},
          {"drop_zero_bias", "takes constant zeros from convolutions", dropZeroBias, kMandatory},
          {"settle_norm_types", "casts where a normalisation mixes types", settleNormTypes, kMandatory},
          {"lower_if", "puts the branches of If into the graph that stood in a loop or waited for ranks", lowerRemainingIf,
           kMandatory},
          {"pair_messages", "joins each Recv to its Send, where a loop or a branch had them", pairRemainingMessages,
           kMandatory},
          {"lower_sequences", "writes sequences of known length as plain values", lowerSequences, kMandatory},
          kInfer,
          {"check_declared", "compares the file's declarations with what the graph computes", checkDeclared, kMandatory},
      },
      10};
}

PassList beforeGradient() {
  return {
      "pre-grad passes",
      {
          {"traced_statistics",
           "finds running statistics of the file that may count the first batch already; it is counted once",
           findTracedStatistics},
          {"fold_constants", "computes what depends on constants only", foldConstants},
          {"eliminate_no_ops", "removes nodes that hand their input on unchanged", eliminateNoOps},
          {"cse", "merges nodes that compute the same", eliminateCommonSubexpressions},
          {"drop_expands", "broadcasts within elementwise nodes what an Expand writes in front of them", dropExpands},
          {"gather_to_slice", "copies neighbouring places as a Slice", gatherToSlice},
          {"eliminate_concats", "reads the parts that a Concat joined where they are taken apart again", eliminateConcats},
          {"merge_slices", "takes a value apart with one Split where slices cover an axis of it", mergeSlices},
          {"fuse_cross_entropy", "computes the loss from the scores instead of from logarithms of probabilities",
           fuseCrossEntropy},
          {"fuse_fake_quant",
           "quantises and dequantises in one node; a quotient next to a half may go to the other neighbour", fuseFakeQuant,
           kOff},
          {"conv1d_to_matmul", "computes convolutions of one place with matrix products", conv1dToMatMul, kOff},
          {"fuse_gelu", "recognises Gelu in the nodes that exporters write for it", fuseGelu},
          {"fuse_swish", "recognises x sigmoid(a x), SiLU and its like, in the nodes that exporters write for it",
           fuseSwish},
          {"fuse_normalization",
           "recognises LayerNormalization and RMSNormalization in the nodes that exporters write for them",
           fuseNormalization},
          {"hoist_slices", "takes the part of a value that is read before the nodes that make it", hoistSlices},
          {"sparse_labels", "computes the scores of those rows alone whose labels the loss does not ignore", sparseLabels,
           kOff},
          {"eliminate_padding", "computes the tokens alone that are no padding; they come back in front of attention",
           eliminatePadding, kOff},
          {"fuse_attention",
           "computes attention in one node that never stores its scores; they are computed again for the gradient",
           fuseAttention, kOff},
          {"assign_precision", "computes every op in the type of its precision class, with casts between them",
           assignPrecision, kMandatory},
      }};
}

PassList afterGradient() {
  return {"post-grad passes",
          {
              {"select_dead_rows", "keeps rows without a softmax out of its gradient", selectDeadRows, kMandatory},
              {"fold_constants", "computes what depends on constants only", foldConstants},
              {"eliminate_no_ops", "removes nodes that hand their input on unchanged", eliminateNoOps},
              {"cse", "merges nodes that compute the same", eliminateCommonSubexpressions},
              {"fuse_relu_gradient", "turns the gradient of Relu into one node", fuseReluGradient},
              {"fuse_batch_norm", "joins BatchNormalization, the addend and Relu, and their gradients", fuseBatchNorm},
          }};
}

// Of phase `specialise`, once the batch has bound the dims.
PassList specialising() {
  return {
      "fold",
      {
          {"fold_constants", "computes what the batch's shapes made constant", foldConstants},
          {"eliminate_no_ops", "removes nodes that hand their input on unchanged", eliminateNoOps},
          {"cse", "merges nodes that compute the same", eliminateCommonSubexpressions},
          {"drop_expands", "broadcasts within elementwise nodes what an Expand writes in front of them", dropExpands},
          {"lower_einsum", "computes Einsum with matrix products", lowerEinsum},
          {"transpose_to_reshape", "sees axes of one element at another place instead of moving them", transposeToReshape},
          {"propagate_casts", "moves casts away from between matrix products and the transposes that they can fold",
           propagateCasts},
          {"fold_transposes", "reads and writes matrix products where their operands and results lie", foldTransposes},
          {"fold_scales", "multiplies constants into the factor of matrix products", foldScales},
          {"fuse_epilogue", "adds biases and residuals, and applies Relu, within the matrix product", fuseEpilogue},
          {"fuse_dropout", "adds bias and residual within the Dropout between them", fuseDropout},
          {"fuse_masked_softmax", "reads scores and mask of attention in one pass", fuseMaskedSoftmax},
          {"fuse_gather_grad", "adds the gradient of an embedding to another one of its table, row by row", fuseGatherGrad},
          {"fuse_loss_gradient", "adds another gradient of the scores while that of the cross entropy is written",
           fuseLossGradient},
          {"narrow_gradients", "gives updates the gradients of mixed precision as the products made them, without a cast",
           narrowGradients},
          {"keep_low_weights", "keeps weights that products read in a low type in it too, written by their updates",
           keepLowWeights},
          {"library_epilogues", "lets products on a GPU apply Gelu and its slope, and add up the gradient of a bias",
           libraryEpilogues},
          {"fuse_pointwise", "runs chains of elementwise nodes, and the sum that one ends in, in one pass over memory",
           fusePointwise},
          {"strided_views",
           "lets products, attention, elementwise chains and Concat read slices, splits and transposes where they lie",
           stridedViews},
          {"group_updates", "updates small parameters together, in one pass of all threads", groupUpdates},
          {"assign_layouts", "lets convolutions and what lies between them work on nChw16c memory", assignLayouts},
          {"choose_winograd",
           "computes convolutions of 3 x 3 windows with a quarter of the products; results differ by some 4e-6 of the "
           "largest",
           chooseWinograd, kOff},
      }};
}

}  // namespace

const std::vector<PassList>& pipeline() {
  static const std::vector<PassList> lists{inlining(), inferring(), beforeGradient(), afterGradient(), specialising()};
  return lists;
}

const PassList& passesOf(std::string_view phase) {
  const auto& lists = pipeline();
  const auto it = std::find_if(lists.begin(), lists.end(), [&](const PassList& list) { return list.phase == phase; });
  SS_CHECK(it != lists.end());
  return *it;
}

}  // namespace stepscope
