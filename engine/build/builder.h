// The build: from an imported model and options to the step's graph and, for one signature of a batch, its plan.
//
// Pure: a Builder changes nothing but the log that it tells its phases to, so two plans of one model can exist side by side.
// Phases attach loss … optimizer make a SymbolicStep, whose extents are symbols; specialise, recompute and plan make a
// Variant of it. Making kernels and finding memory (phase bind) belongs to what runs the plan, engine/step.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/build/batch.h"
#include "engine/build/density.h"
#include "engine/build/import.h"
#include "engine/build/kept_rows.h"
#include "engine/build/optimizer.h"
#include "engine/build/options.h"
#include "engine/build/outer_gradients.h"
#include "engine/build/rows_choice.h"
#include "engine/build/trained_set.h"
#include "engine/ir/keys.h"
#include "engine/plan/plan.h"
#include "engine/state/state.h"

namespace stepscope {

struct BuildRequest {
  TrainOptions options;
  std::vector<std::string> keep;      // values to keep until the end of the step, by name
  std::set<ValueKey> pinned;          // the same, chosen by a person
  bool keepGradients = false;         // of trained parameters, as accumulated
  StateCounters from;                 // of the state that the step goes on with
  bool forwardOnly = false;           // without loss, gradient and optimizer
  std::optional<OuterRequest> outer;  // somebody else computes the loss, and there is no optimizer
  int threads = 1;
  std::optional<RowsChoices> rows;  // absent: chosen from the first batch
  int ranks = 1;                    // processes that train together: their gradients are averaged
  int rank = 0;                     // which of them this is: what it keeps a part of, where option ranks.shard says so
  int aloneOf = 0;                  // 0, or: of so many ranks one without the others, which gets what it has itself
  // Adds to an error of a batch's shapes what would help.
  std::function<Error(Error)> explain;
  // Opens the data for the inputs of the graph and gives its next batch; what is worth telling goes to `notes`. Only what
  // the batch says of its arrays decides anything here.
  std::function<Result<Batch>(const Graph& graph, std::vector<std::string>* notes)> firstBatch;
};

// The step before a batch binds its extents.
struct SymbolicStep {
  std::shared_ptr<const ImportedModel> model;
  BuildRequest request;
  Graph graph;
  ValueId loss;
  OptimizerReport optimizer;
  std::optional<OuterStep> outer;  // where the request asks for it; there is no loss then
  std::vector<ValueId> trained;
  std::vector<ParameterChoice> parameters;
  DensityProbe density;
  std::vector<snapshot::InputDensity> densities;  // of the first batch
  RowsChoices rows;                               // which inputs' rows that count are computed alone
  std::vector<KeptRows> keptRows;
  std::map<std::string, Dim> extents;          // of the first batch, by the symbols of the inputs' shapes
  std::map<std::string, std::string> effects;  // of the options
  std::string settings, recomputePlan;         // what was set but recompute.*, and that: runs of one choice are compared
};

// The step for batches of one signature: specialised graph and plan.
struct Variant {
  std::shared_ptr<const SymbolicStep> step;
  Signature signature;
  Graph graph;
  std::unique_ptr<Inference> inference;
  PlanOptions planOptions;
  ExecutionPlan plan;               // without workspaces and offsets: those come with the kernels
  std::vector<Stage> stages;        // specialise with its passes, and recompute where it changed something
  std::optional<Error> doesNotFit;  // why no step of it may run
  std::map<std::string, std::string> effects;
  std::vector<double> sampleFactors;  // by OuterStep::updates
};

class Builder {
 public:
  // `cancel` is looked at between phases and passes and within long ones: they end with kCancelled.
  Builder(std::shared_ptr<const ImportedModel> model, BuildLog& log, const Cancel& cancel = {})
      : model_(std::move(model)), log_(log), cancel_(cancel) {}

  // Phases attach loss … optimizer; forward only: inspect inputs and pre-grad passes. `stages` gets the graph after each
  // phase that succeeded, on an error too. Errors name every node that has no gradient or kernel, at once.
  Result<std::shared_ptr<const SymbolicStep>> build(BuildRequest request, std::vector<Stage>& stages) const;
  // Phases specialise, recompute, plan. `reason`: why there is a variant, for people. `stages` as above.
  Result<std::shared_ptr<const Variant>> specialise(std::shared_ptr<const SymbolicStep> step, const Signature& signature,
                                                    std::string reason, std::vector<Stage>& stages) const;

 private:
  struct Work;  // the graph on its way through the phases
  Status attachLoss(SymbolicStep& step, Work& work) const;
  Status attachOuter(SymbolicStep& step, Work& work) const;
  Status inspectInputs(SymbolicStep& step, Work& work) const;
  Status optimise(std::string_view phase, const SymbolicStep& step, Graph& graph, Inference& inference,
                  std::map<std::string, std::string>& effects, std::vector<Stage>& stages) const;
  Status gradient(SymbolicStep& step, Work& work) const;
  Status outerGradient(SymbolicStep& step, Work& work) const;
  Status optimizer(SymbolicStep& step, Work& work) const;
  Status recompute(Variant& variant) const;
  Status plan(Variant& variant, std::string reason) const;

  std::shared_ptr<const ImportedModel> model_;
  BuildLog& log_;
  const Cancel cancel_;
};

}  // namespace stepscope
