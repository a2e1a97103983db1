// Phase `optimizer`: accumulation, global-norm clipping and parameter updates as nodes of the graph.
//
// Inputs it adds (scalars, fed by the session with every micro step): "stepscope.learning_rate[.<group>]" float32,
// "stepscope.update[.<number>]" int64 = number of this update, from 1, as the optimizer state counts it (one for all that
// has had equally many); "stepscope.first_micro" bool = first micro step of a round;
// where the loss is scaled (loss_scale.h), "stepscope.loss_unscale" float32 = 1 / the scale. Gradients then carry the scale
// up to the update, which divides by it in the factor that clipping has too, and runs only where all of them are finite.
// State it adds: "<parameter>.momentum", ".exp_avg", ".exp_avg_sq", ".accumulated"; zeros at the start.
//
// Ranks (engine/comm): the gradients of a round are averaged by AllReduce nodes, a bucket of option ranks.bucket bytes each,
// in front of norm, clipping and updates; what follows is computed by every rank from the same bits.
//
// Parts (option ranks.shard): each rank updates its part of every parameter (kernels/rank_part.h), for which it keeps
// optimizer state alone. ReduceScatter gives it the mean of its part of the gradients; RankPart takes its part of the
// parameter; AllReduce adds up the squares for clipping; AllGather nodes at the end bring the parts together over the
// parameter. With `optimizer` the gradients of a round are accumulated whole, and travel at its end. With `gradients` they
// travel in every micro step, as soon as those of a bucket are there (engine/plan/plan.cpp puts them so), and only the part
// is accumulated. With `parameters` that is so too, and parameters themselves are parts, which are gathered where a phase
// reads them (parameter_parts.h): no RankPart, and nothing to gather at the end. Optimizers that look at a whole parameter
// are refused: lamb, and graphs of one.
//
// Passes over memory: an update reads parameter, gradient and moments once and writes the results over them; the factor of
// clipping is one of its inputs, so nothing scales the gradients. Accumulating joins a gradient to the sum of its round and
// adds up the squares for clipping in one pass; the first micro step of a round replaces the sum, so nothing clears it.
// Every parameter has nodes of its own (they can be stepped, watched and edited) and is shared out over all threads; the
// pass group_updates joins small ones. Source: PyTorch's SGD, Adam, AdamW, clip_grad_norm_ (max_norm / (norm + 1e-6), at
// most 1); LAMB arXiv:1904.00962.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/build/gradient_buckets.h"
#include "engine/build/optimizer_graph.h"
#include "engine/build/options.h"
#include "engine/build/order_collectives.h"
#include "engine/ir/graph.h"
#include "engine/passes/infer.h"
#include "engine/state/state.h"

namespace stepscope {

struct LearningRateInput {
  ValueId input;
  double base = 0;       // before the schedule
  bool ofGroup = false;  // a rate of its own, by option `group`
};

struct UpdateInput {
  ValueId input;
  std::vector<std::string> states;  // that it counts the updates of; empty: those of the run
};

struct OptimizerReport {
  std::vector<LearningRateInput> learningRates;
  std::vector<UpdateInput> updates;
  StateNameSet states;               // of the optimizer: what is in `updates`
  ValueId firstMicro;                // input, only when accumulating
  ValueId gradientNorm;              // only when clipping, or when the loss is scaled
  ValueId lossScale, lossUnscale;    // inputs, only when the loss is scaled: the factor, and 1 divided by it
  ValueId finite;                    // bool, with them: whether all gradients are, so that the update is done
  std::vector<ValueId> accumulated;  // per trained value: its gradient on this rank, before clipping
  // The same averaged over the ranks, where there are several. Whole, unless ranks keep parts and nobody asked for it.
  std::vector<ValueId> averaged;
  std::map<std::string, Dims> parts;  // state of which this rank has its part: the extents of the whole
};

// The processes that train together, as one of them sees them.
struct OptimizerRanks {
  int rank = 0, size = 1;
  bool keepGradients = false;      // whole ones, where ranks have parts of them
  std::vector<ParameterUse> uses;  // of each of `trained` in the imported graph; of one process empty
  ModelCollectives collectives = {};
};

// `lossScale`: the input that the gradients are multiplied by; absent: none. `gradients[i]` belongs to `trained[i]`; an
// invalid one leaves the parameter as it is.
// `from`: counters of the state that the step goes on with.
// `updates`: takes the place of the optimizer that the options name; nullptr: none. Error kUnsupported: an optimizer that
// cannot work on parts.
Result<OptimizerReport> addOptimizer(Graph& graph, Inference& inference, const TrainOptions& options,
                                     const std::vector<ValueId>& trained, const std::vector<ValueId>& gradients,
                                     ValueId lossScale = {}, const OptimizerGraph* updates = nullptr,
                                     const OptimizerRanks& ranks = {}, const StateCounters& from = {});

}  // namespace stepscope
