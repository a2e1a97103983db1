#include "engine/train/plan_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/plan/fits.h"
#include "engine/plugin/plugin_registry.h"
#include "engine/snapshot/alert.h"
#include "engine/snapshot/utf8.h"

namespace stepscope {
namespace {

bool leavesOut(const SymbolicStep& step, const std::string& input) {
  return std::ranges::any_of(step.keptRows, [&](const KeptRows& kept) { return kept.input.starts_with(input + ".kept_"); });
}

std::string reasonsOf(const RowsChoices& rows) {
  std::string text;
  for (const auto& [input, choice] : rows) text += (text.empty() ? "" : "; ") + choice.reason;
  return text;
}

// That the plan has for itself: state is shared with the others.
std::int64_t ownBytes(const ExecutionPlan& plan) {
  std::int64_t bytes = plan.arenaBytes + plan.hostArenaBytes;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.home == Home::kInput && buffer.shares < 0) bytes += buffer.bytes;
  return bytes;
}

}  // namespace

void PlanSet::open(std::shared_ptr<const ImportedModel> model) {
  model_ = std::move(model);
  stages_ = model_->stages;
}

Result<std::shared_ptr<const ImportedModel>> PlanSet::underChangedPlugins() const {
  const ImportedModel& before = *model_;
  SS_ASSIGN(auto registry, registryAgain(before.registry));
  if (registry == before.registry) return nullptr;
  BuildLog log{Observer{}};  // the import of the file is told already
  SS_ASSIGN(auto model, importModel(before.path, before.load, log, nullptr, std::move(registry)));
  const bool same = std::ranges::equal(before.graph.order(), model->graph.order(), [&](NodeId x, NodeId y) {
    const Node &left = before.graph.node(x), &right = model->graph.node(y);
    return x == y && left.domain == right.domain && left.op == right.op && left.name == right.name;
  });
  if (same) return model;
  return invalid(
      fmt::format("model '{}': its nodes are others than when it was opened, and plugins have changed; expected "
                  "the same; hint: open it again",
                  before.path.string()));
}

Stepper& PlanSet::stepper() const {
  SS_CHECK(made());
  return *running_->stepper;
}

std::size_t PlanSet::build() const {
  const std::size_t builds = context_.log.builds();
  return made() ? running_->build : builds == 0 ? 0 : builds - 1;
}

Status PlanSet::make(BuildRequest request, const std::function<Result<Batch>()>& batch) {
  std::vector<Stage> before = std::exchange(stages_, model_->stages);
  Status made = makeFirst(std::move(request), batch);
  if (!made && made.error().code == ErrorCode::kCancelled) stages_ = std::move(before);
  return made;
}

Status PlanSet::makeFirst(BuildRequest request, const std::function<Result<Batch>()>& batch) {
  tellStages(stages_, context_.log);
  auto from = std::make_shared<Symbolic>();
  SS_ASSIGN(from->step, builder().build(std::move(request), stages_));
  from->stages = stages_;
  SS_ASSIGN(const Batch first, batch());
  const auto giveWay = [this] {
    std::ranges::partition(variants_, [this](const auto& variant) { return variant.get() != running_; });
    for (const auto& variant : variants_) variant->stepper->giveWay(true);
    running_ = nullptr;
    aside_ = std::exchange(variants_, {});
  };
  SS_ASSIGN(auto stepper, bind(from->step, first, "first batch", stages_, giveWay));
  aside_.clear();
  begin(std::move(from), std::move(stepper));
  return {};
}

// Values stand with the plan that was fed last, so the one that ran comes last.
Status PlanSet::comeBack() {
  auto aside = std::exchange(aside_, {});
  if (aside.empty()) return made() ? stepper().comeBack() : Status{};
  for (const auto& variant : aside) SS_TRY(variant->stepper->comeBack());
  variants_ = std::move(aside);
  running_ = variants_.back().get();
  return {};
}

Status PlanSet::useFor(const Batch& batch) {
  RowsChoices rows = choiceFor(batch);
  std::shared_ptr<const Symbolic> from = madeFor(rows);
  RowsChoices rowsBefore = std::exchange(context_.rows, rows);
  if (from) {
    const auto serves = [&](const Running& plan) {
      return plan.from == from && fits(plan.stepper->variant().signature, batch, from->step->keptRows);
    };
    if (serves(*running_)) {
      running_->used = ++uses_;
      return {};
    }
    for (const auto& variant : variants_)
      if (serves(*variant)) {
        show(*variant);
        return {};
      }
  }
  context_.log.beginBuild();
  std::vector<Stage> before = std::exchange(stages_, from ? from->stages : model_->stages);
  Status made = makeVariant(batch, rows, std::move(from));
  if (!made && made.error().code == ErrorCode::kCancelled) {
    stages_ = std::move(before);
    context_.rows = std::move(rowsBefore);
  }
  return made;
}

// `from`: null where the batch asks for another step than those that were made.
Status PlanSet::makeVariant(const Batch& batch, RowsChoices rows, std::shared_ptr<const Symbolic> from) {
  tellStages(stages_, context_.log);
  std::string why = "a batch with other shapes: ";
  if (!from) {
    why = fmt::format("this batch: {}: ", reasonsOf(rows));
    auto symbolic = std::make_shared<Symbolic>();
    BuildRequest request = stepper().step().request;
    request.rows = std::move(rows);
    SS_ASSIGN(symbolic->step, builder().build(std::move(request), stages_));
    symbolic->stages = stages_;
    from = std::move(symbolic);
    remember(from);
  }
  const std::string signature = signatureOf(batch, from->step->keptRows).text();
  why += signature;
  if (givenBack_.contains(signature)) why += "; its plan of before was given back, see option variants.bytes";
  SS_ASSIGN(auto stepper, bind(from->step, batch, std::move(why), stages_));
  add(std::move(stepper), std::move(from));
  return {};
}

// Decides with the batch that ran before in mind.
RowsChoices PlanSet::choiceFor(const Batch& batch) const {
  const SymbolicStep& now = stepper().step();
  if (!choosesRows(now.request.options)) return {};
  RowsChoices rows = chooseRows(now.density.measure(batch), now.request.options, context_.rows);
  for (auto& [input, choice] : rows)
    if (all_.contains(input)) choice.reason += "; but the pass does not apply to this model, so all are computed";
  return rows;
}

std::shared_ptr<const PlanSet::Symbolic> PlanSet::madeFor(const RowsChoices& rows) const {
  const auto effective = [this](RowsChoices of) {
    for (auto& [input, choice] : of) choice.alone = choice.alone && !all_.contains(input);
    return of;
  };
  for (const auto& symbolic : steps_)
    if (rows.empty() || sameRows(effective(symbolic->step->rows), effective(rows))) return symbolic;
  return nullptr;
}

Result<PlanSet::Beside> PlanSet::makeBeside(BuildRequest request, const Batch& batch, std::string why) {
  context_.log.beginBuild();
  Beside beside;
  beside.stages = model_->stages;
  tellStages(beside.stages, context_.log);
  SS_ASSIGN(beside.step, builder().build(std::move(request), beside.stages));
  std::vector<Stage> bound = beside.stages;
  SS_ASSIGN(beside.stepper, bind(beside.step, batch, std::move(why), bound));
  return beside;
}

Status PlanSet::bindAgain() {
  const auto again = [this](Running& running) -> Status {
    const std::shared_ptr<const Variant> variant = running.stepper->sharedVariant();
    running.stepper.reset();  // its memory, before as much is taken again
    SS_ASSIGN(running.stepper, Stepper::bind(variant, context_));
    return {};
  };
  for (auto& variant : variants_)
    if (Status status = again(*variant); !status) {
      running_ = nullptr;
      variants_.clear();
      return status;
    }
  if (running_) show(*running_);
  return {};
}

void PlanSet::replaceBy(Beside beside) {
  running_ = nullptr;
  variants_.clear();
  begin(std::make_shared<Symbolic>(Symbolic{std::move(beside.step), std::move(beside.stages)}), std::move(beside.stepper));
}

Builder PlanSet::builder() const { return {model_, context_.log, Cancel(&context_.cancelled)}; }

Result<std::unique_ptr<Stepper>> PlanSet::bind(std::shared_ptr<const SymbolicStep> step, const Batch& batch, std::string why,
                                               std::vector<Stage>& stages, const std::function<void()>& takesMemory) const {
  const Signature signature = signatureOf(batch, step->keptRows);
  SS_ASSIGN(auto variant, builder().specialise(std::move(step), signature, std::move(why), stages));
  return Stepper::bind(std::move(variant), context_, Cancel(&context_.cancelled), takesMemory);
}

// The first plan of a build.
void PlanSet::begin(std::shared_ptr<const Symbolic> from, std::unique_ptr<Stepper> stepper) {
  context_.rows = from->step->rows;
  all_.clear();
  givenBack_.clear();
  steps_.clear();
  remember(from);
  add(std::move(stepper), std::move(from));
}

void PlanSet::remember(const std::shared_ptr<const Symbolic>& from) {
  steps_.push_back(from);
  for (const auto& [input, choice] : from->step->rows)
    if (choice.alone && !leavesOut(*from->step, input)) all_.insert(input);
}

// Of the newest of the log's builds.
void PlanSet::add(std::unique_ptr<Stepper> stepper, std::shared_ptr<const Symbolic> from) {
  variants_.push_back(std::make_unique<Running>(Running{std::move(stepper), context_.log.builds() - 1, std::move(from), 0}));
  show(*variants_.back());
  giveBack();
}

// Makes it the plan that runs, with the graphs that led to it.
void PlanSet::show(Running& running) {
  running_ = &running;
  running.used = ++uses_;
  stepper().forgetTouchedBytes();
  stages_ = running.from->stages;
  const std::vector<Stage>& bound = stepper().variant().stages;
  stages_.insert(stages_.end(), bound.begin(), bound.end());
  for (std::string& nowhere : pointed_.resolve(stepper(), context_))
    context_.log.warn("breakpoint_without_node", std::move(nowhere));
}

void PlanSet::giveBack() {
  const std::int64_t set = stepper().step().request.options.variantBytes;
  const std::int64_t most = set > 0 ? set : machineMemoryBytes() / 4;
  std::int64_t bytes = 0;
  for (const auto& variant : variants_) bytes += ownBytes(variant->stepper->plan());
  while (most > 0 && bytes > most && variants_.size() > 1) {
    const auto oldest = std::ranges::min_element(
        variants_, {}, [&](const auto& variant) { return variant.get() == running_ ? INT64_MAX : variant->used; });
    const ExecutionPlan& plan = (*oldest)->stepper->plan();
    const std::int64_t own = ownBytes(plan);
    snapshot::Alert alert = makeAlert(
        snapshot::Alert::INFO, "plan_given_back",
        toUtf8(fmt::format("plan for '{}': its {} bytes are given back, {} batches after it ran; {} plans take {} bytes, "
                           "expected at most {} (option variants.bytes)",
                           plan.signature, own, uses_ - (*oldest)->used, variants_.size(), bytes, most)));
    alert.set_step(context_.state.counters.step);
    context_.log.raise(std::move(alert));
    givenBack_.insert((*oldest)->stepper->variant().signature.text());
    bytes -= own;
    variants_.erase(oldest);
  }
}

const std::vector<ParameterChoice>& PlanSet::parameters() const {
  static const std::vector<ParameterChoice> none;
  return step() ? step()->parameters : none;
}

const Value& PlanSet::valueOf(const ParameterChoice& parameter) const {
  const bool ofTheFile = static_cast<std::size_t>(parameter.value.index) < model_->graph.valueCapacity();
  return (ofTheFile ? model_->graph : step()->graph).value(parameter.value);
}

}  // namespace stepscope
