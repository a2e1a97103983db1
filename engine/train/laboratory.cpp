#include "engine/train/laboratory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "engine/build/known_roofs.h"
#include "engine/exec/complete_plan.h"
#include "engine/lab/bisect.h"
#include "engine/lab/buffer_bytes.h"
#include "engine/lab/capacity.h"
#include "engine/lab/first_cause.h"
#include "engine/lab/gradcheck.h"
#include "engine/lab/ledger_steps.h"
#include "engine/lab/precision_study.h"
#include "engine/lab/rank_capacity.h"
#include "engine/lab/trials.h"
#include "engine/plan/fits.h"
#include "engine/profile/machine_file.h"
#include "engine/snapshot/utf8.h"
#include "engine/train/fit_dims.h"

namespace stepscope {
namespace {

constexpr std::int64_t kMostExtent = 4096;
constexpr std::int64_t kTrialBatches = 4;

bool namesBatch(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.find("batch") != std::string::npos;
}

// The symbol of the batch: named so, or the first one that stands on the first axis of an input. Empty: there is none.
std::string batchDimension(const Graph& graph, const std::vector<DimChoice>& dimensions) {
  for (const DimChoice& choice : dimensions)
    if (namesBatch(choice.name)) return choice.name;
  for (const ValueId id : graph.inputs())
    if (const auto& shape = graph.value(id).type.shape; shape && !shape->empty())
      if (const auto symbol = shape->front().asSymbol()) return *symbol;
  return {};
}

Result<std::string> dimensionNamed(const std::string& name, const std::string& batch,
                                   const std::vector<DimChoice>& dimensions) {
  std::string names;
  for (const DimChoice& choice : dimensions) {
    if (choice.name == name) return name;
    names += (names.empty() ? "" : ", ") + choice.name;
  }
  if (name == "batch" && !batch.empty()) return batch;
  return fail(ErrorCode::kNotFound,
              fmt::format("dimension '{}': no input has it; {}", name,
                          names.empty() ? "the extents of all inputs are numbers" : "expected one of " + names));
}

// What the symbols in the inputs' shapes stand for in a batch of the data.
std::map<std::string, std::int64_t> symbolsIn(const Graph& graph, const Batch& batch) {
  std::map<std::string, std::int64_t> extents;
  for (const ValueId id : graph.inputs()) {
    const Value& input = graph.value(id);
    const auto array = batch.arrays.find(input.name);
    if (array == batch.arrays.end() || !input.type.shape) continue;
    const Dims& dims = array->second.dims();
    for (std::size_t axis = 0; axis < std::min(dims.size(), input.type.shape->size()); ++axis)
      if (const auto symbol = (*input.type.shape)[axis].asSymbol()) extents.emplace(*symbol, dims[axis]);
  }
  return extents;
}

// Batches without contents for an extent of the dimension: the other extents are those of the data, where there is some.
std::function<Result<Batch>(const Graph&, std::int64_t)> batchesOf(const ImportedModel& model, const TrainOptions& present,
                                                                   const std::string& dimension, std::int64_t entry) {
  std::optional<std::map<std::string, std::int64_t>> ofData;  // extents of its first batch
  return [ofData, &model, options = present, dimension, entry](const Graph& graph,
                                                               std::int64_t extent) mutable -> Result<Batch> {
    if (!options.data.empty()) {
      SS_ASSIGN(const auto data, openData(graph, options, model.registry->operators(), nullptr));
      SS_ASSIGN(const Batch first, data->batch(entry));
      if (dimension.empty()) return first;
      ofData = symbolsIn(model.graph, first);
      options.data.clear();
    }
    TrainOptions extended = options;
    if (ofData) extended.dims.insert(ofData->begin(), ofData->end());
    if (!dimension.empty()) extended.dims[dimension] = extent;
    const Operators& operators = model.registry->operators();
    return emptyBatch(graph, extended, operators, fitDims(model.graph, extended, operators));
  };
}

}  // namespace

Status Laboratory::needsTraining(std::string_view what, std::string_view why) const {
  if (!plans_.made() || !feed_.opened()) return invalid(fmt::format("{}: nothing was built; build first", what));
  if (plans_.step()->request.forwardOnly)
    return invalid(fmt::format("{}: the model was built without a backward phase; {}", what, why));
  return {};
}

Result<Batch> Laboratory::comingBatch() const {
  if (plans_.stepper().inStep()) return Batch(plans_.stepper().batch());
  return feed_.batch(context_.state.counters.entry);
}

StateSnapshot Laboratory::startOfStep() const {
  StateSnapshot start = context_.state.copy();
  for (std::size_t i = 0; i < context_.state.keptCount(); ++i)  // what the begun step wrote over
    start.tensors[context_.state.kept(i).first] = context_.state.kept(i).second;
  return start;
}

SideSubject Laboratory::begunStep() const {
  return {plans_.model(), request_(), plans_.stepper().batch(), context_.state.copy(), &context_.cancelled};
}

Result<snapshot::RecomputeReport> Laboratory::recompute(const std::optional<RecomputeQuestion>& question) {
  SS_TRY(needsTraining("recompute", "nothing is kept for one"));
  const Stepper& stepper = plans_.stepper();
  const Variant& variant = stepper.variant();
  if (!analysis_ || analysed_.lock().get() != &variant) {
    const auto before = [this](std::int64_t done, std::int64_t total) -> Status {
      if (context_.cancelled.exchange(false)) return fail(ErrorCode::kCancelled, "recompute: cancelled");
      const Observer& observer = context_.log.observer();
      if (observer.progress && total > 0) observer.progress("judging what may be computed again", done, total);
      return {};
    };
    const auto specialised = std::find_if(variant.stages.begin(), variant.stages.end(),
                                          [](const Stage& stage) { return stage.phase == "specialise"; });
    SS_CHECK(specialised != variant.stages.end());
    const TrainOptions& options = stepper.step().request.options;
    SS_ASSIGN(Device * device, findDevice(options.device));
    const auto complete = [device, reuse = options.reuse, known = std::make_shared<KnownWorkspaces>(),
                           backend = options.referenceKernels ? Backend::kReference : Backend::kCpu,
                           registry = plans_.model()->registry](ExecutionPlan& plan, const Graph& graph) {
      return completePlan(plan, graph, backend, registry->operators(), *device, reuse, {}, known.get());
    };
    analysis_ = std::make_unique<RecomputeAnalysis>(*specialised->graph, *variant.inference, variant.planOptions,
                                                    options.recomputePlan, options.recomputeBudget, before, complete);
    analysed_ = stepper.sharedVariant();
  }
  SS_TRY(analysis_->prepare());
  const NodeTimes times = history_.nodeTimes(stepper);
  snapshot::RecomputeReport report = analysis_->report(times);
  report.set_signature(stepper.plan().signature);
  if (question) {
    SS_ASSIGN(*report.mutable_what_if(), analysis_->whatIf(question->plan, question->budget, times));
  }
  history_.addRuns(stepper, report);
  return report;
}

Result<snapshot::PrecisionReport> Laboratory::precision(const snapshot::GetPrecision& question) {
  SS_TRY(needsTraining("precision", "a study compares gradients"));
  PrecisionSubject subject;
  subject.model = plans_.model();
  subject.request = request_();
  SS_ASSIGN(subject.batch, comingBatch());
  subject.start = startOfStep();
  subject.cancelled = &context_.cancelled;
  subject.progress = context_.log.observer().progress;
  return studyPrecision(std::move(subject), question);
}

CapacitySubject Laboratory::capacitySubject() {
  CapacitySubject subject;
  subject.model = plans_.model();
  subject.request = request_();
  subject.batchDimension = batchDimension(model().graph, feed_.dimensions(model(), subject.request.options));
  subject.cancelled = &context_.cancelled;
  subject.progress = context_.log.observer().progress;
  return subject;
}

Result<std::vector<RankPoint>> Laboratory::rankCapacity(const NetworkFile& network, const std::vector<std::int64_t>& ranks,
                                                        const std::string& machine, const std::string& machineName) {
  std::unique_ptr<MachineFile> described;
  if (!machine.empty()) {
    SS_ASSIGN(described, parseMachine(machine, machineName));
  }
  CapacitySubject subject = capacitySubject();
  subject.batchOf = batchesOf(model(), subject.request.options, "", context_.state.counters.entry);
  subject.peak = described ? &described->peak : &roofsOf(subject.request.options, subject.request.threads, &context_.log);
  return planRanks(subject, network, ranks);
}

Result<snapshot::CapacityReport> Laboratory::capacity(const snapshot::GetCapacity& asked) {
  snapshot::GetCapacity question = asked;
  if (question.least() == 0) question.set_least(1);
  if (question.most() == 0) question.set_most(std::max(question.least(), kMostExtent));
  if (question.least() < 1 || question.most() < question.least())
    return invalid(fmt::format("dimension '{}': extents {} to {}; expected at least one from 1 on", question.dimension(),
                               question.least(), question.most()));
  std::unique_ptr<MachineFile> machine;
  if (!question.machine().empty()) {
    SS_ASSIGN(machine, parseMachine(question.machine(), question.machine_name()));
  }
  if (question.memory_bytes() <= 0)
    question.set_memory_bytes(machine && machine->memoryBytes > 0 ? machine->memoryBytes
                                                                  : deviceMemoryBytes(request_().options.device));
  CapacitySubject subject = capacitySubject();
  if (!question.dimension().empty()) {
    SS_ASSIGN(subject.dimension, dimensionNamed(question.dimension(), subject.batchDimension,
                                                feed_.dimensions(model(), subject.request.options)));
  }
  subject.batchOf = batchesOf(model(), subject.request.options, subject.dimension, context_.state.counters.entry);
  subject.peak = machine ? &machine->peak : &roofsOf(subject.request.options, subject.request.threads, &context_.log);
  SS_ASSIGN(snapshot::CapacityReport report, planCapacity(std::move(subject), question));
  if (machine) report.set_machine(toUtf8(machine->name.empty() ? question.machine_name() : machine->name));
  return report;
}

Result<snapshot::TrialsReport> Laboratory::trials(const snapshot::GetTrials& question,
                                                  std::function<void(const snapshot::Trial&)> tried) {
  SS_TRY(needsTraining("trials", "whole steps are compared"));
  const std::int64_t step = context_.state.counters.entry;
  TrialSubject subject;
  subject.model = plans_.model();
  subject.request = request_();
  const auto take = [step](DataSource& data, std::vector<Batch> batches) -> Result<std::vector<Batch>> {
    for (std::int64_t k = static_cast<std::int64_t>(batches.size()); k < kTrialBatches; ++k) {
      SS_ASSIGN(Batch batch, data.batch(step + k));
      if (batches.empty() || fits(signatureOf(batches.front()), batch)) batches.push_back(std::move(batch));
    }
    return batches;
  };
  SS_ASSIGN(Batch first, comingBatch());
  SS_ASSIGN(subject.batches, take(feed_.source(), {std::move(first)}));
  if (subject.request.options.data.empty()) {
    subject.batchDimension = batchDimension(model().graph, feed_.dimensions(model(), subject.request.options));
    const auto symbol = symbolsIn(model().graph, subject.batches.front());
    if (const auto it = symbol.find(subject.batchDimension); it != symbol.end())
      subject.batch = it->second;
    else
      subject.batchDimension.clear();
  }
  subject.batchesUnder = [this, &take](const Graph& graph, const TrainOptions& options) -> Result<std::vector<Batch>> {
    const Operators& operators = model().registry->operators();
    SS_ASSIGN(const auto data, openData(graph, options, operators, nullptr, fitDims(model().graph, options, operators)));
    return take(*data, {});
  };
  subject.start = startOfStep();
  subject.cores = threadsOf(TrainOptions{});
  subject.roofs = true;
  subject.cancelled = &context_.cancelled;
  subject.progress = context_.log.observer().progress;
  subject.tried = std::move(tried);
  return runTrials(std::move(subject), question);
}

Result<BisectReport> Laboratory::bisect(const BisectQuestion& question) {
  SS_TRY(needsTraining("bisect", "whole steps are compared"));
  SS_ASSIGN(Batch batch, comingBatch());
  return stepscope::bisect(
      {plans_.model(), request_(), std::move(batch), startOfStep(), &context_.cancelled, context_.log.observer().progress},
      question);
}

Result<snapshot::GradcheckReport> Laboratory::gradcheck(const snapshot::GetGradcheck& question) {
  SS_TRY(needsTraining("gradcheck", "gradients are compared"));
  NodeId imported;
  if (question.nodes_size() > 0) {
    const Graph& running = plans_.graph();
    const std::int32_t asked = question.nodes(0);
    if (asked >= 0 && static_cast<std::size_t>(asked) < running.nodeCapacity())
      imported = importedNodeOf(running, NodeId{asked});
    if (!imported)
      return fail(
          ErrorCode::kNotFound,
          fmt::format("node {}: belongs to no node of the model; expected one of the step's graph that does", asked));
  }
  SideSubject subject{plans_.model(), request_(), {}, startOfStep(), &context_.cancelled};
  SS_ASSIGN(subject.batch, comingBatch());
  const auto& tell = context_.log.observer().progress;
  return stepscope::gradcheck(subject, question.only(), imported, tell);
}

Result<std::vector<std::int64_t>> Laboratory::bufferBytes() {
  SS_TRY(needsTraining("memory", "whole steps are measured"));
  SideSubject subject{plans_.model(), request_(), {}, startOfStep(), &context_.cancelled};
  subject.keepGradients = subject.request.keepGradients;
  subject.request.rows = plans_.step()->rows;
  SS_ASSIGN(subject.batch, comingBatch());
  SS_ASSIGN(const auto side, SideStep::make(subject));
  return stepscope::bufferBytes(*side, subject.batch);
}

Result<Ledger> Laboratory::ledger(const snapshot::GetLedger& question) {
  SS_TRY(needsTraining("ledger", "whole steps are measured"));
  if (question.steps() < 0 || question.steps() > kMostLedgerSteps)
    return invalid(fmt::format("ledger: found {} steps; expected 1 to {}, or 0", question.steps(), kMostLedgerSteps));
  SideSubject subject;
  subject.model = plans_.model();
  subject.request = request_();
  SS_ASSIGN(subject.batch, comingBatch());
  subject.start = startOfStep();
  subject.cancelled = &context_.cancelled;
  return measureLedger(std::move(subject), question.steps(), context_.log.observer().progress);
}

Result<GoldenReport> Laboratory::compareWithGolden(const Golden& golden, std::int64_t batches) {
  SS_TRY(needsTraining("verify", "its gradients are compared"));
  SideSubject subject;
  subject.model = plans_.model();
  subject.request = request_();
  SS_ASSIGN(subject.batch, feed_.batch(0));
  std::vector<Batch> more;
  if (!golden.later.empty()) batches = std::max<std::int64_t>(batches, 2);
  for (std::int64_t i = 1; i < std::min<std::int64_t>(batches, static_cast<std::int64_t>(golden.losses.size())); ++i) {
    SS_ASSIGN(Batch batch, feed_.batch(i));
    if (signatureOf(batch) != signatureOf(subject.batch)) break;  // a plan is for one
    more.push_back(std::move(batch));
  }
  subject.start = context_.state.copy();
  subject.cancelled = &context_.cancelled;
  return stepscope::compareWithGolden(std::move(subject), more, golden);
}

}  // namespace stepscope
