// Phases inspect inputs … optimizer; builder_loss.cpp attaches the loss.
#include "engine/build/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/autodiff/gradient.h"
#include "engine/build/blocked_nodes.h"
#include "engine/build/builder_work.h"
#include "engine/build/gradient_buckets.h"
#include "engine/build/loss_scale.h"
#include "engine/build/phase_passes.h"
#include "engine/build/step_inputs.h"
#include "engine/passes/eliminate_padding.h"
#include "engine/passes/sparse_labels.h"

namespace stepscope {

namespace {

// What the symbols in the shapes of the inputs stand for in this batch.
std::map<std::string, Dim> extentsOf(const Batch& batch, const Graph& graph) {
  std::map<std::string, Dim> extents;
  for (const ValueId id : graph.inputs()) {
    const Value& input = graph.value(id);
    const auto array = batch.arrays.find(input.name);
    if (array == batch.arrays.end() || !input.type.shape || input.type.shape->size() != array->second.dims().size())
      continue;
    for (std::size_t axis = 0; axis < input.type.shape->size(); ++axis)
      if (const auto symbol = (*input.type.shape)[axis].asSymbol()) extents.emplace(*symbol, array->second.dims()[axis]);
  }
  return extents;
}

// Whether it is a part of a step that was written as a model (`build --save-graphs`): its nodes carry phases.
bool isPartOfStep(const Graph& graph) {
  return std::ranges::any_of(graph.order(), [&](NodeId id) { return graph.node(id).phase != Phase::kForward; });
}

}  // namespace

Result<std::shared_ptr<const SymbolicStep>> Builder::build(BuildRequest request, std::vector<Stage>& stages) const {
  // A part of a step has inputs of these names by right; it is run, and nothing trains it.
  if (!request.forwardOnly || !isPartOfStep(model_->graph)) SS_TRY(checkStepInputs(model_->graph));
  if (request.aloneOf == 0) SS_TRY(checkRanks(model_->graph, request.ranks));
  auto step = std::make_shared<SymbolicStep>();
  step->model = model_;
  step->request = std::move(request);
  for (const auto& [name, origin] : step->request.options.origins) {
    if (name == "recompute.plan")
      step->recomputePlan = origin.value;
    else if (name != "recompute.budget" && name != "cache.dir")
      step->settings += name + "=" + origin.value + "\n";
  }
  Work work(*model_, stages);
  if (tellRanks(work.graph, step->request.rank, std::max(step->request.ranks, step->request.aloneOf)))
    SS_TRY(work.inference.run());
  const auto passes = [&](std::string_view phase) -> Status {
    SS_TRY(optimise(phase, *step, work.graph, work.inference, step->effects, stages));
    keepStage(stages, std::string(phase), work.graph, log_);
    return {};
  };
  SS_TRY(step->request.outer ? attachOuter(*step, work) : attachLoss(*step, work));
  SS_TRY(inspectInputs(*step, work));
  SS_TRY(passes("pre-grad passes"));
  step->keptRows = keptRowsOf(work.graph, step->density);
  if (step->request.forwardOnly) {
    if (isPartOfStep(work.graph)) SS_TRY(passes("post-grad passes"));
    if (std::string kernels = missingKernels(work.graph, work.inference.operators()); !kernels.empty())
      return unsupported(std::move(kernels));
  } else if (step->request.outer) {
    SS_TRY(outerGradient(*step, work));
    SS_TRY(passes("post-grad passes"));
    tellOuter(work.graph, *step->outer);
  } else {
    SS_TRY(gradient(*step, work));
    SS_TRY(passes("post-grad passes"));
    SS_TRY(optimizer(*step, work));
  }
  step->graph = std::move(work.graph);
  return step;
}

Status Builder::inspectInputs(SymbolicStep& step, Work& work) const {
  SS_TRY(cancel_.check("inspect inputs"));
  BuildLog::Scope phase(log_, "inspect inputs");
  std::vector<std::string> notes;
  auto batch = step.request.firstBatch(work.graph, &notes);
  if (!batch) return phase.fail(batch.error());
  step.extents = extentsOf(*batch, work.graph);
  if (step.request.forwardOnly || step.request.outer) return {};
  auto& report = phase.pass();
  report.set_name("inspect inputs");
  for (std::string& note : notes) report.add_notes(std::move(note));
  step.density = DensityProbe(work.graph, *batch, step.request.options);
  step.densities = step.density.measure(*batch);
  step.rows = step.request.rows ? *step.request.rows : chooseRows(step.densities, step.request.options);
  for (const snapshot::InputDensity& density : step.densities) {
    report.add_notes(densityText(density));
    // What the passes would choose, so that their gain can be told.
    for (const std::string_view suffix : {kKeptRowsSuffix, kKeptTokensSuffix})
      step.extents.try_emplace(density.input() + std::string(suffix), bucketOf(density.valid(), density.total()));
  }
  phase.count(batch->arrays.size());
  return {};
}

Status Builder::optimise(std::string_view name, const SymbolicStep& step, Graph& graph, Inference& inference,
                         std::map<std::string, std::string>& effects, std::vector<Stage>& stages) const {
  BuildLog::Scope phase(log_, std::string(name));
  const BuildRequest& request = step.request;
  PassContext context = passContext(model_->file, request.options, request.threads, inference, log_);
  context.cancel = cancel_;
  context.extents = step.extents;
  for (const snapshot::InputDensity& density : step.densities)
    for (const DensityProbe::Entry& entry : step.density.entries())
      if (entry.input == density.input()) {
        const auto rows = step.rows.find(density.input());
        context.batch.push_back({entry.input, density.valid(), density.total(), entry.kind, entry.mask,
                                 entry.invalid.value_or(0),
                                 rows == step.rows.end() || rows->second.alone ? std::string() : rows->second.reason});
      }
  SS_TRY(runPhasePasses(model_->registry->passesOf(name), request.options, graph, context, log_, effects, stages));
  phase.count(graph.order().size());
  return {};
}

Status Builder::gradient(SymbolicStep& step, Work& work) const {
  Graph& graph = work.graph;
  {
    BuildLog::Scope phase(log_, "gradient");
    graph.setPass("gradient");
    // PyTorch divides every micro batch's loss by the number of micro steps; the seed of the gradient does the same.
    GradientRequest request{step.loss, step.trained, 1.0 / static_cast<double>(step.request.options.accumulate),
                            {},        {},           cancel_};
    const auto missing = checkGradientRules(graph, request.loss, request.trained, work.inference.ops());
    const std::string kernels = missingKernels(graph, work.inference.operators());
    if (!missing.empty())
      return phase.fail({ErrorCode::kUnsupported, missingRules(graph, missing) + (kernels.empty() ? "" : "\n" + kernels)});
    if (!kernels.empty()) return phase.fail({ErrorCode::kUnsupported, kernels});
    if (scalesLoss(step.request.options)) {
      work.lossScale = graph.addValue("stepscope.loss_scale", {ValueKind::kTensor, DType::kF32, Shape{}}, ValueRole::kInput);
      graph.mutableInputs().push_back(work.lossScale);
      request.scale = work.lossScale;
    }
    auto report = buildGradient(graph, work.inference, request);
    if (!report) return phase.fail(report.error());
    work.gradients = report->gradients;
    auto& pass = phase.pass();
    pass.set_name("gradient");
    for (const CutEdge& cut : report->cuts) {
      auto& miss = *pass.add_near_misses();
      miss.set_node(cut.node.index);
      miss.set_condition(fmt::format("input {}: {}", cut.input, cut.reason));
      if (!cut.trained.empty()) log_.warn("gradient_cut", lostGradient(graph, cut));
    }
    phase.count(graph.order().size());
    for (const ValueId gradient : work.gradients)
      if (gradient) graph.mutableOutputs().push_back(gradient);
    const bool standIns = std::ranges::any_of(graph.order(), [&](NodeId id) { return graph.node(id).op == "GradientOf"; });
    if (standIns) graph.removeDeadNodes();  // they and what was computed from them
  }
  keepStage(work.stages, "gradient", graph, log_);
  return {};
}

Status Builder::optimizer(SymbolicStep& step, Work& work) const {
  SS_TRY(cancel_.check("optimizer"));
  Graph& graph = work.graph;
  {
    BuildLog::Scope phase(log_, "optimizer");
    graph.setPass("optimizer");
    // Passes may have merged gradients (tied parameters that are used alike); the outputs know the present ones.
    const std::size_t first = graph.outputs().size() - work.gradientCount();
    std::size_t next = first;
    for (ValueId& gradient : work.gradients)
      if (gradient) gradient = graph.outputs()[next++];
    const TrainOptions& options = step.request.options;
    if (options.accumulate > 1)
      for (const StateUpdate& update : graph.stateUpdates)
        if (std::find(step.trained.begin(), step.trained.end(), update.state) != step.trained.end())
          log_.warn("parameter_written",
                    fmt::format("parameter '{}': the forward pass writes it too (an Embedding with max_norm), and with "
                                "accumulate={} that counts only in micro steps with an update; PyTorch keeps it in each",
                                graph.value(update.state).name, options.accumulate));
    auto updates = optimizerGraphOf(options, model_->registry, log_);
    if (!updates) return phase.fail(updates.error());
    OptimizerRanks ranks{step.request.rank, step.request.ranks, step.request.keepGradients, {}};
    if (ranks.size > 1) {
      ranks.uses = parameterUses(model_->graph, graph, step.trained);
      ranks.collectives = modelCollectives(model_->graph, graph, work.inference.ops());
    }
    if (options.distributed == "off" && options.rankShard != "off")
      log_.warn("option_without_effect",
                fmt::format("option 'ranks.shard': {}; this process trains alone", options.rankShard));
    auto report = addOptimizer(graph, work.inference, options, step.trained, work.gradients, work.lossScale,
                               *updates ? &**updates : nullptr, ranks, step.request.from);
    if (!report) return phase.fail(report.error());
    step.optimizer = std::move(*report);
    std::vector<ValueId> outputs(graph.outputs().begin(), graph.outputs().begin() + static_cast<std::ptrdiff_t>(first));
    for (const ValueId told : {step.optimizer.gradientNorm, step.optimizer.finite})
      if (told) outputs.push_back(told);
    // Outputs keep their ids through the passes of every variant, and their memory until the end of the step.
    for (const ValueId gradient : step.optimizer.averaged)
      if (gradient && step.request.keepGradients && std::find(outputs.begin(), outputs.end(), gradient) == outputs.end())
        outputs.push_back(gradient);
    graph.mutableOutputs() = outputs;
    phase.count(step.trained.size());
  }
  keepStage(work.stages, "optimizer", graph, log_);
  return {};
}

}  // namespace stepscope
