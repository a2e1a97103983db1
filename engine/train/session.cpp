// Opening, building, and what is shown of it.
#include "engine/train/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/build/builder.h"
#include "engine/build/snapshots.h"
#include "engine/lab/first_cause.h"
#include "engine/profile/roofline.h"
#include "engine/snapshot/utf8.h"
#include "engine/train/fit_dims.h"
#include "engine/train/proposed_data.h"
#include "engine/train/running.h"

namespace stepscope {

Session::Session(Observer observer) : context_(std::move(observer)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::open(const std::filesystem::path& path, const LoadOptions& load, Observer observer,
                                               std::vector<Problem>* problems, std::shared_ptr<const Registry> registry) {
  std::unique_ptr<Session> session(new Session(std::move(observer)));
  SS_ASSIGN(session->model_, importModel(path, load, session->context_.log, problems, std::move(registry)));
  session->stages_ = session->model_->stages;
  return session;
}

const std::vector<DimChoice>& Session::dimensions() const {
  if (!dimensions_ || dimensions_->first != options_.dims)
    dimensions_.emplace(options_.dims, fitDims(model_->graph, options_, registry().operators()));
  return dimensions_->second;
}

BuildRequest Session::buildRequest(const TrainOptions& options) {
  BuildRequest request;
  request.options = options;
  request.keep = keep_;
  request.pinned = pinned_;
  request.keepGradients = keepGradients_;
  request.threads = threadsOf(options);
  request.explain = [this](Error error) {
    return withDimHint(std::move(error), model_->graph, options_, registry().operators());
  };
  request.firstBatch = [this](const Graph& graph, std::vector<std::string>* notes) -> Result<Batch> {
    if (!data_ && openSource_) {
      SS_ASSIGN(data_, openSource_(graph));
    } else if (!data_) {
      const bool synthetic = options_.data.empty();
      SS_ASSIGN(data_, openData(graph, options_, notes, synthetic ? dimensions() : std::vector<DimChoice>{}));
      if (synthetic)
        if (const ProposedData proposed = proposeData(model_->path, model_->graph); !proposed.path.empty())
          notes->push_back(
              toUtf8(fmt::format("data: synthetic; --data {} is there to be used: {}", proposed.path, proposed.reason)));
    }
    return data_->batch(context_.state.counters.step);
  };
  return request;
}

Status Session::feedWith(OpenSource open) {
  if (running_) {
    SS_ASSIGN(data_, open(step_->graph));
  } else {
    data_.reset();
  }
  openSource_ = std::move(open);
  return {};
}

Status Session::build() {
  SS_TRY(abandonStep());
  takePending();
  SS_TRY(checkOptions(options_));
  context_.log.beginBuild();
  context_.notes = StepNotes(options_);
  SS_TRY(makePlans(buildRequest(options_)));
  context_.log.built();
  tellWhatTheFileLacks();
  tellOfIdlePredicates();
  if (ring_.empty()) ring_.remember(context_.state, options_.ringBytes);
  return {};
}

Status Session::buildForward(const std::vector<std::string>& fetch) {
  SS_TRY(abandonStep());
  takePending();
  context_.log.beginBuild();
  context_.notes = {};
  keep_ = fetch;
  BuildRequest request = buildRequest(options_);
  request.pinned.clear();
  request.forwardOnly = true;
  return makePlans(std::move(request));
}

Status Session::makePlans(BuildRequest request) {
  const std::int64_t startStep = request.forwardOnly ? 0 : options_.startStep;
  stages_ = model_->stages;
  tellStages(stages_, context_.log);
  SS_ASSIGN(auto step, Builder(model_, context_.log).build(std::move(request), stages_));
  symbolicStages_ = stages_;
  StateCounters& counters = context_.state.counters;
  if (startStep > 0 && counters.step == 0) {
    counters.step = startStep;
    counters.updatesBefore = startStep / options_.accumulate;
    context_.log.setStep(startStep);
  }
  SS_ASSIGN(const Batch batch, data_->batch(counters.step));
  // The plans of before give their memory back before the new one takes any.
  running_ = nullptr;
  variants_.clear();
  SS_ASSIGN(auto running, makeRunning(step, signatureOf(batch, step->keptRows), "first batch"));
  step_ = std::move(step);
  parameters_ = step_->parameters;
  variants_.push_back(std::move(running));
  show(*variants_.back());
  return {};
}

Result<std::unique_ptr<Session::Running>> Session::makeRunning(std::shared_ptr<const SymbolicStep> step,
                                                               const Signature& signature, std::string why) {
  SS_ASSIGN(auto variant, Builder(model_, context_.log).specialise(std::move(step), signature, std::move(why), stages_));
  auto running = std::make_unique<Running>();
  SS_ASSIGN(running->stepper, Stepper::bind(std::move(variant), context_));
  running->build = context_.log.builds() - 1;
  return running;
}

// Makes it the plan that runs, with the graphs that led to it.
void Session::show(Running& running) {
  running_ = &running;
  running.stepper->forgetTouchedBytes();
  stages_ = symbolicStages_;
  const std::vector<Stage>& bound = running.stepper->variant().stages;
  stages_.insert(stages_.end(), bound.begin(), bound.end());
  for (std::string& nowhere : pointed_.resolve(*running.stepper, context_))
    context_.log.warn("breakpoint_without_node", std::move(nowhere));
}

Status Session::useVariantFor(const Batch& batch) {
  if (running_ && fits(running_->stepper->variant().signature, batch, step_->keptRows)) return {};
  for (const auto& variant : variants_)
    if (fits(variant->stepper->variant().signature, batch, step_->keptRows)) {
      show(*variant);
      return {};
    }
  context_.log.beginBuild();
  stages_ = symbolicStages_;
  tellStages(stages_, context_.log);
  const Signature signature = signatureOf(batch, step_->keptRows);
  SS_ASSIGN(auto running, makeRunning(step_, signature, "a batch with other shapes: " + signature.text()));
  variants_.push_back(std::move(running));
  show(*variants_.back());
  return {};
}

Status Session::pin(ValueId id, bool pinned) {
  if (!running_ || !id || static_cast<std::size_t>(id.index) >= runningGraph().valueCapacity())
    return fail(ErrorCode::kNotFound, fmt::format("value {}: no such value", id.index));
  const ValueKey key = stepper().keys().keyOf(id);
  if (!key)
    return invalid(fmt::format("value '{}': a constant of the build; expected a value of the model or the step",
                               runningGraph().value(id).name));
  const std::set<ValueKey> before = pinned_;
  if (pinned)
    pinned_.insert(key);
  else
    pinned_.erase(key);
  if (!inStep()) return build();
  snapshot::OptionProof proof;
  Status done = goOnUnder(buildRequest(options_), proof);
  if (!done) pinned_ = before;
  return done;
}

Stepper& Session::stepper() const {
  SS_CHECK(running_ != nullptr);
  return *running_->stepper;
}

std::size_t Session::runningBuild() const { return running_ ? running_->build : builds() == 0 ? 0 : builds() - 1; }
std::string Session::runningSignature() const { return running_ ? stepper().plan().signature : std::string(); }
const Graph& Session::runningGraph() const { return running_ ? stepper().graph() : model_->graph; }
ValueId Session::findValue(std::string_view name) const { return runningGraph().findValue(name); }
ValueId Session::lossValue() const { return step_ ? step_->loss : ValueId{}; }

std::vector<snapshot::Option> Session::optionList() const {
  std::vector<snapshot::Option> list;
  for (const OptionInfo& info : registry().options()) {
    snapshot::Option option;
    const std::string name(info.name);
    option.set_name(name);
    option.set_default_value(std::string(info.defaultValue));
    option.set_doc(std::string(info.doc));
    for (const std::string_view choice : info.choices) option.add_choices(std::string(choice));
    option.set_group(std::string(info.group));
    option.set_kind(std::string(info.kind));
    const auto origin = options().origins.find(name);
    option.set_value(origin == options().origins.end() ? std::string(info.defaultValue) : origin->second.value);
    option.set_set_by(origin == options().origins.end() ? "default" : origin->second.setBy);
    if (running_)
      if (const auto effect = stepper().effects().find(name); effect != stepper().effects().end())
        option.set_effect(effect->second);
    list.push_back(std::move(option));
  }
  return list;
}

Result<snapshot::Graph> Session::graphSnapshot(const std::string& phase) const {
  if (stages_.empty()) return fail(ErrorCode::kNotFound, "graph: nothing was built yet");
  for (const Stage& stage : stages_)
    if (stage.phase == phase || (phase.empty() && &stage == &stages_.back()))
      return toSnapshot(*stage.graph, stage.phase, parameters_, lossValue(), registry().operators().ops);
  std::string names;
  for (const Stage& stage : stages_) names += (names.empty() ? "" : ", ") + stage.phase;
  return fail(ErrorCode::kNotFound, fmt::format("graph: no phase '{}'; kept are {}", phase, names));
}

Result<snapshot::Plan> Session::planSnapshot() const {
  if (!running_) return fail(ErrorCode::kNotFound, "plan: nothing was built yet");
  snapshot::Plan plan = toSnapshot(stepper().executor());
  if (stepper().peak()) addRoofline(stepper().plan(), *stepper().peak(), plan);
  return plan;
}

std::vector<snapshot::Determinism> Session::determinism() const {
  return running_ ? determinismOf(stepper().executor()) : std::vector<snapshot::Determinism>{};
}

Result<snapshot::RecomputeReport> Session::recomputeReport(const std::optional<RecomputeQuestion>& question) {
  if (!running_) return invalid("recompute: nothing was built; build first");
  const Variant& variant = stepper().variant();
  if (step_->request.forwardOnly)
    return invalid("recompute: the model was built without a backward phase; nothing is kept for one");
  if (!running_->analysis) {
    const auto before = [this](std::int64_t done, std::int64_t total) -> Status {
      if (context_.cancelled.exchange(false)) return fail(ErrorCode::kCancelled, "recompute: cancelled");
      const Observer& observer = context_.log.observer();
      if (observer.progress && total > 0) observer.progress("judging what may be computed again", done, total);
      return {};
    };
    const auto specialised = std::find_if(variant.stages.begin(), variant.stages.end(),
                                          [](const Stage& stage) { return stage.phase == "specialise"; });
    SS_CHECK(specialised != variant.stages.end());
    running_->analysis = std::make_unique<RecomputeAnalysis>(*specialised->graph, *variant.inference, variant.planOptions,
                                                             options_.recomputePlan, options_.recomputeBudget, before);
  }
  SS_TRY(running_->analysis->prepare());
  const NodeTimes times = nodeTimes(stepper());
  snapshot::RecomputeReport report = running_->analysis->report(times);
  report.set_signature(stepper().plan().signature);
  if (question) {
    SS_ASSIGN(*report.mutable_what_if(), running_->analysis->whatIf(question->plan, question->budget, times));
  }
  recomputeHistory_.addRuns(stepper(), report);
  return report;
}

}  // namespace stepscope
