// Phases attach loss … bind.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "engine/autodiff/gradient.h"
#include "engine/ops/op_def.h"
#include "engine/passes/run_passes.h"
#include "engine/plan/fits.h"
#include "engine/profile/roofline.h"
#include "engine/recompute/choose.h"
#include "engine/train/attach_loss.h"
#include "engine/train/blocked_nodes.h"
#include "engine/train/density.h"
#include "engine/train/fit_dims.h"
#include "engine/train/phase_scope.h"
#include "engine/train/proposed_data.h"
#include "engine/train/session.h"
#include "engine/train/session_parts.h"
#include "engine/train/utf8.h"
#include "kernels/random.h"

namespace stepscope {
namespace {

std::string signatureOf(const Batch& batch) {
  std::string text;
  for (const auto& [name, tensor] : batch.arrays)
    text += fmt::format("{}{} {}{}", text.empty() ? "" : "; ", name, dtypeName(tensor.dtype()), dimsText(tensor.dims()));
  return text;
}

bool fits(const Variant& variant, const Batch& batch) {
  return std::equal(batch.arrays.begin(), batch.arrays.end(), variant.arrays.begin(), variant.arrays.end(),
                    [](const auto& array, const auto& expected) {
                      return array.first == expected.first && array.second.dtype() == expected.second.first &&
                             array.second.dims() == expected.second.second;
                    });
}

void report(snapshot::PassReport& report, std::string_view name, const PassResult& result, std::size_t nodesBefore,
            std::size_t nodesAfter) {
  report.set_name(std::string(name));
  report.set_matches(static_cast<int>(result.matches));
  report.set_nodes_before(static_cast<std::int64_t>(nodesBefore));
  report.set_nodes_after(static_cast<std::int64_t>(nodesAfter));
  for (const NearMiss& miss : result.nearMisses) {
    auto& m = *report.add_near_misses();
    m.set_node(miss.node.index);
    m.set_condition(miss.condition);
  }
  for (const std::string& note : result.notes) report.add_notes(note);
}

}  // namespace

const std::vector<DimChoice>& Session::dimensions() const {
  if (!dimensions_ || dimensions_->given != options_.dims)
    dimensions_ = Dimensions{options_.dims, fitDims(imported_, options_)};
  return dimensions_->open;
}

Error Session::withDimHint(Error error) const {
  if (error.code == ErrorCode::kInvalidArgument && options_.data.empty() &&
      error.message.find("; hint: ") == std::string::npos)
    error.message += dimHint(imported_, options_);
  return error;
}

// Fills weights that are not there, by role from the seed, and clones nothing: the state takes over what was read.
Status Session::materialise() {
  std::vector<std::int32_t> empty;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(imported_.valueCapacity()); ++i) {
    const Value& value = imported_.value({i});
    if (value.alive && value.role == ValueRole::kInitializer && !value.data && !state_.tensors.contains(value.name))
      empty.push_back(i);
  }
  if (empty.empty()) return {};
  PhaseScope phase(*this, "materialise");
  for (const std::int32_t i : empty) {
    const Value& value = imported_.value({i});
    auto obtained = state_.obtain(value);
    if (!obtained) return phase.fail(obtained.error());
    const Tensor& tensor = *obtained;
    const auto rank = tensor.dims().size();
    const bool scale = rank == 1 && (value.name.ends_with("weight") || value.name.ends_with("running_var") ||
                                     value.name.ends_with("gamma"));
    const double fan =
        rank >= 2 ? static_cast<double>(tensor.elements()) / static_cast<double>(std::max<std::int64_t>(1, tensor.dims()[0]))
                  : 1;
    const double deviation = rank >= 2 ? std::min(0.02, 1 / std::sqrt(std::max(1.0, fan))) : 0;
    const RandomKey key{options_.seed, 0, 0x40000000u + static_cast<std::uint32_t>(i)};
    if (tensor.dtype() == DType::kF32 && rank >= 2) {
      // Sums of four uniforms are near enough to a normal for weights, and cheap: one block gives four words.
      float* data = static_cast<float*>(tensor.data());
      const auto width = static_cast<float>(deviation * std::sqrt(3.0));
      const std::int64_t blocks = (tensor.elements() + 3) / 4;
#pragma omp parallel for schedule(static)
      for (std::int64_t block = 0; block < blocks; ++block) {
        const auto words = randomBlock(key, static_cast<std::uint64_t>(block));
        for (std::int64_t k = 0; k < 4 && block * 4 + k < tensor.elements(); ++k) {
          const std::uint32_t word = words[static_cast<std::size_t>(k)];
          const float sum = static_cast<float>(word & 0xffu) + static_cast<float>(word >> 8 & 0xffu) +
                            static_cast<float>(word >> 16 & 0xffu) + static_cast<float>(word >> 24);
          data[block * 4 + k] = (sum / 510.0f - 1.0f) * width * 1.9899749f;
        }
      }
    } else if (isFloating(tensor.dtype())) {
      for (std::int64_t k = 0; k < tensor.elements(); ++k)
        storeElement(tensor.view(), k, scale ? 1.0 : deviation * normal01(key, static_cast<std::uint64_t>(k)));
    }
  }
  phase.count(static_cast<std::int64_t>(empty.size()));
  snapshot::Alert alert;
  alert.set_severity(snapshot::Alert::WARNING);
  alert.set_code("missing_weights");
  alert.set_node(-1);
  alert.set_message(
      fmt::format("{} initializers have no data in the file and were filled from seed {}: losses and gradients mean "
                  "nothing, times and memory do",
                  empty.size(), options_.seed));
  raise(alert);
  return {};
}

PassContext Session::passContext(Inference& inference) const {
  PassContext context(inference);
  context.target.threads = omp_get_max_threads();
  for (const auto& [name, origin] : options_.origins) context.options[name] = origin.value;
  const auto opset = model_.opsets.find("");
  if (opset != model_.opsets.end()) context.opset = opset->second;
  context.functions = &model_.functions;
  return context;
}

// Every pass is a span below the phase that is open, with its report.
Status Session::runPhasePasses(const PassList& list, Graph& graph, PassContext& context) {
  std::optional<PhaseScope> child;
  RunOptions run;
  run.enabled = [this](const Pass& pass) {
    const auto it = options_.passes.find(std::string(pass.name));
    return it != options_.passes.end() ? it->second : pass.enabled == PassSwitch::kOn;
  };
  run.begin = [&](const Pass& pass) { child.emplace(*this, std::string(pass.name)); };
  run.end = [&](const PassRun& ran) {
    const PassResult& result = ran.result;
    report(child->pass(), ran.pass.name, result, ran.nodesBefore, ran.nodesAfter);
    child->count(static_cast<std::int64_t>(result.matches));
    if (ran.error) child->fail(*ran.error);
    child.reset();
    for (const std::string& warning : result.warnings) {
      snapshot::Alert alert;
      alert.set_severity(snapshot::Alert::WARNING);
      alert.set_code(std::string(ran.pass.name));
      alert.set_message(warning);
      alert.set_node(-1);
      raise(alert);
    }
    if (ran.error || ran.pass.enabled == PassSwitch::kMandatory) return;
    auto& effect = optionEffects_["pass." + std::string(ran.pass.name)];
    const std::size_t before = ran.nodesBefore, after = ran.nodesAfter;
    effect += fmt::format("{}{}: {} matches, {} nodes {}", effect.empty() ? "" : "; ", list.phase, result.matches,
                          after > before ? after - before : before - after, after > before ? "more" : "fewer");
  };
  return runPasses(list, graph, context, run);
}

Status Session::optimise(std::string_view phaseName, Graph& graph, Inference& inference) {
  PhaseScope phase(*this, std::string(phaseName));
  PassContext context = passContext(inference);
  SS_TRY(runPhasePasses(passesOf(phaseName), graph, context));
  phase.count(static_cast<std::int64_t>(graph.order().size()));
  return {};
}

Status Session::build() {
  if (builds_.empty()) builds_.push_back(0);
  SS_TRY(abandonStep());
  takePending();
  SS_TRY(checkOptions(options_));
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  omp_set_dynamic(0);
  omp_set_num_threads(options_.threads > 0 ? options_.threads : static_cast<int>(cores));
  optionEffects_.clear();
  if (everBuilt_) builds_.push_back(spans_.size());
  stages_.resize(loadedStages_);
  ++build_;
  builtPlan_.clear();
  builtSettings_.clear();
  for (const auto& [name, origin] : options_.origins) {
    if (name == "recompute.plan")
      builtPlan_ = origin.value;
    else if (name != "recompute.budget")
      builtSettings_ += name + "=" + origin.value + "\n";
  }
  forwardOnly_ = false;
  SS_TRY(buildGraph());
  if (options_.startStep > 0 && state_.step == 0) {
    state_.step = options_.startStep;
    state_.updatesBefore = options_.startStep / options_.accumulate;
  }
  SS_ASSIGN(Batch batch, data_->batch(state_.step));
  dropVariants();
  notes_ = StepNotes(options_);
  SS_TRY(useVariantFor(batch));
  everBuilt_ = true;
  position_ = 0;  // the new plan has run nothing yet, and may be shorter than the one before
  tellWhatTheFileLacks();
  if (ring_.empty()) remember();
  return {};
}

Status Session::buildGraph() {
  Graph graph = imported_;
  Inference inference = *importedInference_;
  inference.rebind(graph);
  std::vector<std::string> notes;
  {
    PhaseScope phase(*this, "attach loss");
    graph.setPass("attach loss");
    auto choice = attachLoss(graph, inference, options_);
    if (std::string unknown = unknownOperators(graph, choice ? std::vector<ValueId>{choice->loss} : graph.outputs());
        !unknown.empty()) {
      // What else stands in the way is told with it.
      const auto chosen = choice ? chooseTrained(graph, choice->loss, options_) : Result<std::vector<ParameterChoice>>();
      GradientRequest request{choice ? choice->loss : ValueId{}, {}};
      if (chosen)
        for (const ParameterChoice& parameter : *chosen)
          if (parameter.trained) request.trained.push_back(parameter.value);
      auto missing = request.trained.empty() ? std::vector<MissingRule>() : checkGradientRules(graph, request);
      std::erase_if(missing, [&](const MissingRule& rule) {
        return findOp(graph.node(rule.node).domain, graph.node(rule.node).op) == nullptr;
      });
      if (!missing.empty()) unknown += "\n" + missingRules(graph, missing);
      return phase.fail({ErrorCode::kUnsupported, std::move(unknown)});
    }
    if (!choice) return phase.fail(choice.error());
    loss_ = choice->loss;
    auto& report = phase.pass();
    report.set_name("attach loss");
    report.add_notes(fmt::format("loss '{}': {}", graph.value(loss_).name, choice->reason));
    // Only the loss and what the user wants to see keeps the step alive; other outputs of the model are not computed for it.
    std::vector<ValueId> outputs{loss_};
    for (const std::string& name : keep_) {
      const ValueId id = graph.findValue(name);
      if (id && id != loss_ && graph.value(id).role == ValueRole::kNodeOutput) outputs.push_back(id);
    }
    for (const std::string& name : pinned_) {
      const ValueId id = graph.findValue(name);
      if (id && graph.value(id).role == ValueRole::kNodeOutput &&
          std::find(outputs.begin(), outputs.end(), id) == outputs.end())
        outputs.push_back(id);
    }
    graph.mutableOutputs() = outputs;
    auto chosen = chooseTrained(graph, loss_, options_);
    if (!chosen) return phase.fail(chosen.error());
    parameters_ = std::move(*chosen);
    for (const std::string& pattern : patternsWithoutMatch(graph, parameters_, options_)) {
      snapshot::Alert alert;
      alert.set_severity(snapshot::Alert::WARNING);
      alert.set_code("option_without_effect");
      alert.set_message(pattern);
      alert.set_node(-1);
      raise(alert);
    }
    trained_.clear();
    for (const ParameterChoice& parameter : parameters_)
      if (parameter.trained) trained_.push_back(parameter.value);
    if (trained_.empty())
      return phase.fail({ErrorCode::kInvalidArgument,
                         fmt::format("loss '{}': no initializer that is trained reaches it; expected at least one; "
                                     "`stepscope inspect` lists why each is not trained",
                                     graph.value(loss_).name)});
    // Statistics that a training BatchNormalization writes.
    for (const NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      if (!node.domain.empty() || node.op != "BatchNormalization" || node.attrs.integer("training_mode", 0) == 0) continue;
      for (const std::size_t slot : {1u, 2u})
        if (node.output(slot) && node.input(slot + 2) && graph.value(node.input(slot + 2)).role == ValueRole::kInitializer)
          graph.stateUpdates.push_back({node.input(slot + 2), node.output(slot)});
    }
    graph.removeDeadNodes();
    phase.count(static_cast<std::int64_t>(trained_.size()));
  }
  keepStage("attach loss", graph);
  {
    PhaseScope phase(*this, "inspect inputs");
    if (!data_) {
      auto data = openData(graph, options_, &notes, options_.data.empty() ? dimensions() : std::vector<DimChoice>{});
      if (!data) return phase.fail(data.error());
      data_ = std::move(*data);
      if (options_.data.empty())
        if (const ProposedData proposed = proposeData(path_, imported_); !proposed.path.empty())
          notes.push_back(
              toUtf8(fmt::format("data: synthetic; --data {} is there to be used: {}", proposed.path, proposed.reason)));
    }
    auto batch = data_->batch(state_.step);
    if (!batch) return phase.fail(batch.error());
    auto& report = phase.pass();
    report.set_name("inspect inputs");
    for (const std::string& note : notes) report.add_notes(note);
    density_ = DensityProbe(graph, *batch, options_);
    for (const snapshot::InputDensity& density : density_.measure(*batch)) report.add_notes(densityText(density));
    phase.count(static_cast<std::int64_t>(batch->arrays.size()));
  }
  SS_TRY(optimise("pre-grad passes", graph, inference));
  keepStage("pre-grad passes", graph);
  {
    PhaseScope phase(*this, "gradient");
    graph.setPass("gradient");
    // PyTorch divides every micro batch's loss by the number of micro steps; the seed of the gradient does the same.
    const GradientRequest request{loss_, trained_, 1.0 / static_cast<double>(options_.accumulate)};
    const auto missing = checkGradientRules(graph, request);
    const std::string kernels = missingKernels(graph);
    if (!missing.empty())
      return phase.fail({ErrorCode::kUnsupported, missingRules(graph, missing) + (kernels.empty() ? "" : "\n" + kernels)});
    if (!kernels.empty()) return phase.fail({ErrorCode::kUnsupported, kernels});
    auto report = buildGradient(graph, inference, request);
    if (!report) return phase.fail(report.error());
    gradients_ = report->gradients;
    auto& pass = phase.pass();
    pass.set_name("gradient");
    for (const CutEdge& cut : report->cuts) {
      auto& miss = *pass.add_near_misses();
      miss.set_node(cut.node.index);
      miss.set_condition(fmt::format("input {}: {}", cut.input, cut.reason));
    }
    phase.count(static_cast<std::int64_t>(graph.order().size()));
    for (std::size_t i = 0; i < trained_.size(); ++i)
      if (gradients_[i]) graph.mutableOutputs().push_back(gradients_[i]);
  }
  keepStage("gradient", graph);
  SS_TRY(optimise("post-grad passes", graph, inference));
  keepStage("post-grad passes", graph);
  {
    PhaseScope phase(*this, "optimizer");
    graph.setPass("optimizer");
    // Passes may have merged gradients (tied parameters that are used alike); the outputs know the present ones.
    std::size_t next = graph.outputs().size() - static_cast<std::size_t>(std::count_if(gradients_.begin(), gradients_.end(),
                                                                                       [](ValueId g) { return g.valid(); }));
    for (ValueId& gradient : gradients_)
      if (gradient) gradient = graph.outputs()[next++];
    auto report = addOptimizer(graph, inference, options_, trained_, gradients_);
    if (!report) return phase.fail(report.error());
    optimizer_ = std::move(*report);
    std::vector<ValueId> outputs(
        graph.outputs().begin(),
        graph.outputs().end() - std::count_if(gradients_.begin(), gradients_.end(), [](ValueId g) { return g.valid(); }));
    if (optimizer_.gradientNorm) outputs.push_back(optimizer_.gradientNorm);
    // Outputs keep their ids through the passes of every variant, and their memory until the end of the step.
    for (const ValueId gradient : optimizer_.accumulated)
      if (gradient && keepGradients_ && std::find(outputs.begin(), outputs.end(), gradient) == outputs.end())
        outputs.push_back(gradient);
    graph.mutableOutputs() = outputs;
    phase.count(static_cast<std::int64_t>(trained_.size()));
  }
  keepStage("optimizer", graph);
  symbolic_ = std::move(graph);
  return {};
}

void Session::dropVariants() {
  variant_ = nullptr;
  variants_.clear();
  touched_ = 0;  // another plan is measured anew
}

Status Session::useVariantFor(const Batch& batch) {
  if (variant_ && fits(*variant_, batch)) return {};
  for (const auto& variant : variants_)
    if (fits(*variant, batch)) {
      runVariant(*variant);
      return {};
    }
  if (!variants_.empty()) {
    builds_.push_back(spans_.size());
    std::erase_if(stages_, [](const Stage& stage) { return stage.phase == "recompute"; });
  }
  SS_ASSIGN(auto variant,
            specialise(batch, variants_.empty() ? "first batch" : "a batch with other shapes: " + signatureOf(batch)));
  variant->build = builds_.size() - 1;
  variant->effects = optionEffects_;
  if (stages_.back().phase == "recompute") variant->recomputed = stages_.back().graph;
  variants_.push_back(std::move(variant));
  variant_ = variants_.back().get();
  touched_ = 0;
  return {};
}

// An earlier plan, with the graphs that led to it.
void Session::runVariant(Variant& variant) {
  variant_ = &variant;
  touched_ = 0;
  optionEffects_ = variant.effects;
  std::erase_if(stages_, [](const Stage& stage) { return stage.phase == "specialise" || stage.phase == "recompute"; });
  stages_.push_back({"specialise", variant.specialised});
  if (variant.recomputed) stages_.push_back({"recompute", variant.recomputed});
}

Status Session::chooseRecompute(Graph& graph, Inference& inference, const PlanOptions& planOptions) {
  PhaseScope phase(*this, "recompute");
  graph.setPass("recompute");
  const std::size_t before = graph.order().size();
  auto outcome = recompute(graph, inference, {options_.recomputeBudget, options_.recomputePlan, planOptions});
  if (!outcome) return phase.fail(outcome.error());
  report(phase.pass(), "recompute", outcome->result, before, graph.order().size());
  phase.count(static_cast<std::int64_t>(outcome->result.matches));
  if (outcome->peakBefore > 0)
    optionEffects_[options_.recomputeBudget > 0 ? "recompute.budget" : "recompute.plan"] =
        fmt::format("{} nodes run again; live activations {} → {} bytes", outcome->result.matches, outcome->peakBefore,
                    outcome->peakAfter);
  if (outcome->overBudget) {
    snapshot::Alert alert;
    alert.set_severity(snapshot::Alert::WARNING);
    alert.set_code("recompute_budget");
    alert.set_message(
        fmt::format("option 'recompute.budget': {} bytes of live activations are left; expected at most {}; hint: a smaller "
                    "batch, or a larger budget",
                    outcome->peakAfter, options_.recomputeBudget));
    alert.set_node(-1);
    raise(alert);
  }
  if (outcome->result.matches > 0) keepStage("recompute", graph);
  return {};
}

Result<std::unique_ptr<Variant>> Session::specialise(const Batch& batch, std::string reason) {
  auto variant = std::make_unique<Variant>();
  variant->signature = signatureOf(batch);
  for (const auto& [name, tensor] : batch.arrays) variant->arrays[name] = {tensor.dtype(), tensor.dims()};
  variant->reason = std::move(reason);
  variant->graph = symbolic_;
  Graph& graph = variant->graph;
  {
    PhaseScope phase(*this, "specialise");
    graph.setPass("specialise");
    for (const ValueId id : graph.inputs()) {
      Value& value = graph.mutableValue(id);
      const auto it = batch.arrays.find(value.name);
      if (it != batch.arrays.end()) value.type.shape = shapeOf(it->second.dims());
    }
    constexpr std::int64_t kFoldElements = 1 << 20;
    variant->inference = std::make_unique<Inference>(graph, InferOptions{.foldElements = kFoldElements});
    if (Status status = variant->inference->run(); !status) return phase.fail(withDimHint(status.error()));
    SS_TRY(optimise("fold", graph, *variant->inference));
    phase.count(static_cast<std::int64_t>(graph.order().size()));
  }
  keepStage("specialise", graph);
  variant->specialised = stages_.back().graph;
  PlanOptions planOptions;
  planOptions.inPlace = options_.inPlace;
  planOptions.reuse = options_.reuse;
  planOptions.trained = trained_;
  planOptions.threads = omp_get_max_threads();
  for (const std::string& name : keep_) planOptions.pinned.push_back(graph.findValue(name));
  for (const std::string& name : pinned_) planOptions.pinned.push_back(graph.findValue(name));
  std::erase_if(planOptions.pinned, [](ValueId id) { return !id.valid(); });
  variant->planOptions = planOptions;
  if (!forwardOnly_) SS_TRY(chooseRecompute(graph, *variant->inference, planOptions));
  ExecutionPlan plan;
  {
    PhaseScope phase(*this, "plan");
    auto made = makePlan(graph, *variant->inference, planOptions);
    if (!made) return phase.fail(made.error());
    plan = std::move(*made);
    plan.signature = variant->signature;
    plan.reason = variant->reason;
    measureLiveBytes(plan);
    if (Status fits = checkFits(plan, options_.memoryLimit); !fits) {
      // State is allocated by the build. The arena is only touched by a step, so what does not fit can still be looked at.
      if (options_.memoryLimit > 0 || plan.persistentBytes > machineMemoryBytes()) return phase.fail(fits.error());
      variant->doesNotFit = fits.error();
      snapshot::Alert alert;
      alert.set_severity(snapshot::Alert::WARNING);
      alert.set_code("does_not_fit");
      alert.set_message(fits.error().message);
      alert.set_node(-1);
      raise(alert);
    }
    variant->livePeak = plan.lowerBoundBytes;
    phase.count(static_cast<std::int64_t>(plan.instructions.size()));
    std::int64_t inPlace = 0;
    for (const Buffer& buffer : plan.buffers)
      if (buffer.shares >= 0 && buffer.decision.starts_with("in place")) inPlace += buffer.bytes;
    optionEffects_["memory.inplace"] = fmt::format("{} bytes of values take over the memory of an input", inPlace);
  }
  {
    PhaseScope phase(*this, "bind");
    if (Status status = materialise(); !status) return phase.fail(status.error());
    // The state's tensors are obtained in value order, so that their memory does not depend on the plan.
    for (std::size_t i = 0; i < graph.valueCapacity(); ++i) {
      const Value& value = graph.value({static_cast<std::int32_t>(i)});
      if (!value.alive || (value.role != ValueRole::kInitializer && value.role != ValueRole::kState)) continue;
      if (auto tensor = state_.obtain(value); !tensor) return phase.fail(tensor.error());
    }
    Graph& stable = variant->graph;
    variant->executor = std::make_unique<Executor>(
        stable, std::move(plan), [this, &stable](ValueId id) { return state_.tensors.at(stable.value(id).name); },
        options_.referenceKernels ? Backend::kReference : Backend::kCpu);
    if (Status status = variant->executor->bind(options_.reuse, options_.memoryLimit); !status)
      return phase.fail(status.error());
    for (const StateUpdate& update : graph.stateUpdates) {
      const TensorView from = variant->executor->view(update.next), to = variant->executor->view(update.state);
      if (from.data && from.data == to.data) continue;
      Variant::Copied copied{update, {}, {}, false};
      const Value& next = graph.value(update.next);
      copied.byOptimizer = next.producer && graph.node(next.producer).phase == Phase::kOptimizer;
      if (from.data && to.data && from.bytes() == to.bytes() && variant->executor->staysInPlace(update.next)) {
        copied.from = {static_cast<std::byte*>(from.data), from.bytes()};
        copied.to = {static_cast<std::byte*>(to.data), to.bytes()};
      }
      variant->copied.push_back(std::move(copied));
    }
    if (options_.roofline) {
      PhaseScope child(*this, "measure peak");
      variant->peak = &cpu::machinePeak(omp_get_max_threads());
      optionEffects_["roofline"] = peakText(*variant->peak);
    }
    phase.count(static_cast<std::int64_t>(variant->executor->boundKernels().size()));
    optionEffects_["memory.reuse"] =
        fmt::format("arena of {} bytes, lower bound {} bytes", variant->executor->plan().arenaBytes,
                    variant->executor->plan().lowerBoundBytes);
  }
  return variant;
}

Status Session::buildForward(const std::vector<std::string>& fetch) {
  takePending();
  omp_set_dynamic(0);
  omp_set_num_threads(options_.threads > 0 ? options_.threads
                                           : static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  SS_TRY(abandonStep());
  forwardOnly_ = true;
  notes_ = {};
  optionEffects_.clear();
  Graph graph = imported_;
  Inference inference = *importedInference_;
  inference.rebind(graph);
  for (const std::string& name : fetch) {
    const ValueId id = graph.findValue(name);
    if (!id) return fail(ErrorCode::kNotFound, fmt::format("value '{}': not in the model; expected a value's name", name));
    if (std::find(graph.outputs().begin(), graph.outputs().end(), id) == graph.outputs().end())
      graph.mutableOutputs().push_back(id);
  }
  keep_ = fetch;
  loss_ = {};
  trained_.clear();
  gradients_.clear();
  optimizer_ = {};
  {
    PhaseScope phase(*this, "inspect inputs");
    if (!data_) {
      auto data = openData(graph, options_, nullptr, options_.data.empty() ? dimensions() : std::vector<DimChoice>{});
      if (!data) return phase.fail(data.error());
      data_ = std::move(*data);
    }
  }
  SS_TRY(optimise("pre-grad passes", graph, inference));
  keepStage("pre-grad passes", graph);
  if (const std::string kernels = missingKernels(graph); !kernels.empty()) return unsupported(kernels);
  symbolic_ = std::move(graph);
  SS_ASSIGN(const Batch batch, data_->batch(state_.step));
  dropVariants();
  return useVariantFor(batch);
}

}  // namespace stepscope
