// Phases attach loss … optimizer.
#include "engine/build/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/autodiff/gradient.h"
#include "engine/build/attach_loss.h"
#include "engine/build/batch_norm_statistics.h"
#include "engine/build/blocked_nodes.h"
#include "engine/build/builder_work.h"
#include "engine/build/gradient_buckets.h"
#include "engine/build/loss_scale.h"
#include "engine/build/master_weights.h"
#include "engine/build/phase_passes.h"
#include "engine/build/step_inputs.h"
#include "engine/ir/key_index.h"
#include "engine/passes/eliminate_padding.h"
#include "engine/passes/sparse_labels.h"

namespace stepscope {

namespace {

void addOutput(std::vector<ValueId>& outputs, const Graph& graph, ValueId id) {
  if (id && graph.value(id).role == ValueRole::kNodeOutput && std::find(outputs.begin(), outputs.end(), id) == outputs.end())
    outputs.push_back(id);
}

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

// What else stands in the way is told with the operators that nobody knows.
std::string withMissingRules(std::string unknown, const Graph& graph, const Result<LossChoice>& choice,
                             const TrainOptions& options, const OpRegistry& ops) {
  const auto chosen = choice ? chooseTrained(graph, choice->loss, options, ops) : Result<std::vector<ParameterChoice>>();
  GradientRequest request{choice ? choice->loss : ValueId{}, {}};
  if (chosen)
    for (const ParameterChoice& parameter : *chosen)
      if (parameter.trained) request.trained.push_back(parameter.value);
  auto missing =
      request.trained.empty() ? std::vector<MissingRule>() : checkGradientRules(graph, request.loss, request.trained, ops);
  std::erase_if(missing, [&](const MissingRule& rule) { return ops.find(graph.node(rule.node)) == nullptr; });
  return missing.empty() ? unknown : unknown + "\n" + missingRules(graph, missing);
}

// Whether it is a part of a step that was written as a model (`build --save-graphs`): its nodes carry phases.
bool isPartOfStep(const Graph& graph) {
  return std::ranges::any_of(graph.order(), [&](NodeId id) { return graph.node(id).phase != Phase::kForward; });
}

}  // namespace

Result<std::shared_ptr<const SymbolicStep>> Builder::build(BuildRequest request, std::vector<Stage>& stages) const {
  // A part of a step has inputs of these names by right; it is run, and nothing trains it.
  if (!request.forwardOnly || !isPartOfStep(model_->graph)) SS_TRY(checkStepInputs(model_->graph));
  auto step = std::make_shared<SymbolicStep>();
  step->model = model_;
  step->request = std::move(request);
  for (const auto& [name, origin] : step->request.options.origins) {
    if (name == "recompute.plan")
      step->recomputePlan = origin.value;
    else if (name != "recompute.budget")
      step->settings += name + "=" + origin.value + "\n";
  }
  Work work(*model_, stages);
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

Status Builder::attachLoss(SymbolicStep& step, Work& work) const {
  const BuildRequest& request = step.request;
  Graph& graph = work.graph;
  if (request.forwardOnly) {
    for (const std::string& name : request.keep) {
      const ValueId id = graph.findValue(name);
      if (!id) return fail(ErrorCode::kNotFound, fmt::format("value '{}': not in the model; expected a value's name", name));
      if (std::find(graph.outputs().begin(), graph.outputs().end(), id) == graph.outputs().end())
        graph.mutableOutputs().push_back(id);
    }
    return {};
  }
  {
    BuildLog::Scope phase(log_, "attach loss");
    graph.setPass("attach loss");
    const OpRegistry& ops = work.inference.ops();
    auto choice = stepscope::attachLoss(graph, work.inference, request.options, model_->registry);
    const std::vector<ValueId> roots = choice ? std::vector<ValueId>{choice->loss} : graph.outputs();
    if (std::string unknown = unknownOperators(graph, roots, ops); !unknown.empty())
      return phase.fail(
          {ErrorCode::kUnsupported, withMissingRules(std::move(unknown), graph, choice, request.options, ops)});
    if (!choice) return phase.fail(choice.error());
    step.loss = choice->loss;
    auto& report = phase.pass();
    report.set_name("attach loss");
    report.add_notes(fmt::format("loss '{}': {}", graph.value(step.loss).name, choice->reason));
    // Only the loss and what the user wants to see keeps the step alive; other outputs of the model are not computed for it.
    std::vector<ValueId> outputs{step.loss};
    for (const std::string& name : request.keep) addOutput(outputs, graph, graph.findValue(name));
    if (!request.pinned.empty()) {
      const KeyIndex keys(graph);
      for (const ValueKey& key : request.pinned) addOutput(outputs, graph, keys.find(key));
    }
    graph.mutableOutputs() = outputs;
    auto chosen = chooseTrained(graph, step.loss, request.options, ops);
    if (!chosen) return phase.fail(chosen.error());
    step.parameters = std::move(*chosen);
    for (std::string& pattern : patternsWithoutMatch(graph, step.parameters, request.options))
      log_.warn("option_without_effect", std::move(pattern));
    for (const ParameterChoice& parameter : step.parameters)
      if (parameter.trained) step.trained.push_back(parameter.value);
    if (step.trained.empty())
      return phase.fail({ErrorCode::kInvalidArgument,
                         fmt::format("loss '{}': no initializer that is trained reaches it; expected at least one; "
                                     "`stepscope inspect` lists why each is not trained",
                                     graph.value(step.loss).name)});
    auto masters = settleMasterWeights(graph, work.inference, request.options, step.trained);
    if (!masters) return phase.fail(masters.error());
    if (masters->widened > 0)
      report.add_notes(fmt::format("{} parameters of the file kept in float32, cast for their readers", masters->widened));
    if (masters->low > 0)
      report.add_notes(fmt::format("{} parameters kept in float16 or bfloat16: {}", masters->low,
                                   request.options.masterWeights == "off"
                                       ? "updates round stochastically"
                                       : "as the file has them; master-weights=fp32 keeps float32 of them"));
    if (request.options.masterWeights != "auto" && masters->widened + masters->low == 0)
      log_.warn("option_without_effect", fmt::format("option 'master-weights': {}; {}", request.options.masterWeights,
                                                     request.options.masterWeights == "off"
                                                         ? "precision is fp32, and no parameter is float16 or bfloat16"
                                                         : "every parameter is float32 already"));
    if (request.options.batchNorm == "batch") {
      std::size_t opened = 0;
      if (Status status = openBatchNorm(graph, work.inference, opened); !status) return phase.fail(status.error());
      if (opened == 0)
        log_.warn("option_without_effect", "option 'batch-norm': batch; the model has no frozen BatchNormalization");
      else
        report.add_notes(fmt::format("{} frozen BatchNormalization opened: statistics of the batch", opened));
    }
    addStatisticsUpdates(graph);
    graph.removeDeadNodes();
    phase.count(step.trained.size());
  }
  keepStage(work.stages, "attach loss", graph, log_);
  return {};
}

Status Builder::inspectInputs(SymbolicStep& step, Work& work) const {
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
  PassContext context = passContext(model_->file, request.options, request.threads, inference);
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
    GradientRequest request{step.loss, step.trained, 1.0 / static_cast<double>(step.request.options.accumulate), {}};
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
    if (ranks.size > 1) ranks.uses = parameterUses(model_->graph, graph, step.trained);
    if (options.distributed == "off" && options.rankShard != "off")
      log_.warn("option_without_effect",
                fmt::format("option 'ranks.shard': {}; this process trains alone", options.rankShard));
    auto report = addOptimizer(graph, work.inference, options, step.trained, work.gradients, work.lossScale,
                               *updates ? &**updates : nullptr, ranks);
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
