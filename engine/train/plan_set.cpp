#include "engine/train/plan_set.h"

#include <utility>

namespace stepscope {

void PlanSet::open(std::shared_ptr<const ImportedModel> model) {
  model_ = std::move(model);
  stages_ = model_->stages;
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
  stages_ = model_->stages;
  tellStages(stages_, context_.log);
  SS_ASSIGN(auto step, Builder(model_, context_.log).build(std::move(request), stages_));
  symbolicStages_ = stages_;
  SS_ASSIGN(const Batch first, batch());
  running_ = nullptr;
  variants_.clear();
  SS_ASSIGN(auto stepper, bind(step, first, "first batch", stages_));
  step_ = std::move(step);
  add(std::move(stepper));
  return {};
}

Status PlanSet::useFor(const Batch& batch) {
  if (made() && fits(stepper().variant().signature, batch, step_->keptRows)) return {};
  for (const auto& variant : variants_)
    if (fits(variant->stepper->variant().signature, batch, step_->keptRows)) {
      show(*variant);
      return {};
    }
  context_.log.beginBuild();
  stages_ = symbolicStages_;
  tellStages(stages_, context_.log);
  SS_ASSIGN(auto stepper,
            bind(step_, batch, "a batch with other shapes: " + signatureOf(batch, step_->keptRows).text(), stages_));
  add(std::move(stepper));
  return {};
}

Result<PlanSet::Beside> PlanSet::makeBeside(BuildRequest request, const Batch& batch, std::string why) {
  context_.log.beginBuild();
  Beside beside;
  beside.stages = model_->stages;
  tellStages(beside.stages, context_.log);
  SS_ASSIGN(beside.step, Builder(model_, context_.log).build(std::move(request), beside.stages));
  std::vector<Stage> bound = beside.stages;
  SS_ASSIGN(beside.stepper, bind(beside.step, batch, std::move(why), bound));
  return beside;
}

void PlanSet::replaceBy(Beside beside) {
  step_ = std::move(beside.step);
  symbolicStages_ = std::move(beside.stages);
  running_ = nullptr;
  variants_.clear();
  add(std::move(beside.stepper));
}

Result<std::unique_ptr<Stepper>> PlanSet::bind(std::shared_ptr<const SymbolicStep> step, const Batch& batch, std::string why,
                                               std::vector<Stage>& stages) const {
  const Signature signature = signatureOf(batch, step->keptRows);
  SS_ASSIGN(auto variant, Builder(model_, context_.log).specialise(std::move(step), signature, std::move(why), stages));
  return Stepper::bind(std::move(variant), context_);
}

// Of the newest of the log's builds.
void PlanSet::add(std::unique_ptr<Stepper> stepper) {
  variants_.push_back(std::make_unique<Running>(Running{std::move(stepper), context_.log.builds() - 1}));
  show(*variants_.back());
}

// Makes it the plan that runs, with the graphs that led to it.
void PlanSet::show(const Running& running) {
  running_ = &running;
  stepper().forgetTouchedBytes();
  stages_ = symbolicStages_;
  const std::vector<Stage>& bound = stepper().variant().stages;
  stages_.insert(stages_.end(), bound.begin(), bound.end());
  for (std::string& nowhere : pointed_.resolve(stepper(), context_))
    context_.log.warn("breakpoint_without_node", std::move(nowhere));
}

}  // namespace stepscope
