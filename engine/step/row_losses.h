// What every row of a batch contributes to the loss, before it is reduced to one number.
#pragma once

#include <functional>

#include "engine/ir/graph.h"
#include "engine/snapshot/worker.pb.h"
#include "kernels/status.h"
#include "kernels/tensor.h"

namespace stepscope {

// Looks through casts and reshapes of `loss` at the node that reduces it:
//   SoftmaxCrossEntropyLoss, NegativeLogLikelihoodLoss   scores [N, C, D...] and labels [N, D...]: one row per label,
//   weighted;
//                                                        from the log-probabilities, or from the scores while those are
//                                                        there
//   ReduceMean, ReduceSum                                the mean or sum of each entry of the first axis of what is reduced
//   PointwiseSum                                         the same of the elements of its chain, which are computed again
// `read` gives a value's contents or says why there are none; `instructionOf` the place of a node in the plan.
// A loss of another form, or of more than 2^20 rows, is told in `unavailable` with instruction -1.
snapshot::RowLosses rowLosses(const Graph& graph, ValueId loss, const std::function<Result<TensorView>(ValueId)>& read,
                              const std::function<int(NodeId)>& instructionOf);

// That node: right after it ran the rows can be read. nullptr where the loss has another form.
const Node* rowLossNode(const Graph& graph, ValueId loss);

}  // namespace stepscope
