#include "engine/lab/side_step.h"

#include <fmt/format.h>

#include <limits>

#include "engine/build/kept_rows.h"
#include "engine/build/loss_scale.h"
#include "engine/lab/free_memory.h"

namespace stepscope {

Result<std::unique_ptr<SideStep>> SideStep::make(const SideSubject& subject) {
  if (const std::int64_t bytes = subject.start.bytes(), free = freeMemoryBytes(); 2 * bytes >= free)
    return fail(
        ErrorCode::kOutOfMemory,
        fmt::format("a step beside the run: its state, {} bytes, is needed twice more; found {} bytes free", bytes, free));
  std::unique_ptr<SideStep> side(new SideStep());
  side->cancelled_ = subject.cancelled;
  for (const auto& [name, tensor] : subject.start.tensors) SS_TRY(side->context_.state.set(name, tensor.clone()));
  side->context_.state.counters = subject.start.counters;
  side->context_.log.beginBuild();
  BuildRequest request = subject.request;
  request.keepGradients = subject.keepGradients;
  request.firstBatch = [&subject](const Graph&, std::vector<std::string>*) -> Result<Batch> { return subject.batch; };
  const Builder builder(subject.model, side->context_.log, Cancel(subject.cancelled));
  std::vector<Stage> stages, bound;
  SS_ASSIGN(auto step, builder.build(std::move(request), stages));
  for (const ValueId id : step->trained) {
    const Value& parameter = step->graph.value(id);
    const auto held = subject.start.tensors.find(parameter.name);
    const auto dims = parameter.type.shape ? knownDims(*parameter.type.shape) : std::nullopt;
    if (held != subject.start.tensors.end() && dims && held->second.dims() != *dims)
      return unsupported(
          fmt::format("a step beside the run: parameter '{}' is {} here; expected {}; hint: with "
                      "ranks.shard=parameters a rank has its part alone",
                      parameter.name, dimsText(held->second.dims()), dimsText(*dims)));
  }
  const Signature signature = signatureOf(subject.batch, step->keptRows);
  SS_ASSIGN(auto variant, builder.specialise(std::move(step), signature, "a step beside the run", bound));
  SS_ASSIGN(side->stepper_, Stepper::bind(std::move(variant), side->context_, Cancel(subject.cancelled)));
  if (const SymbolicStep& made = side->step();
      subject.findLossScale && made.optimizer.lossScale &&
      findsLossScale(made.request.options, side->context_.state.counters.lossScale)) {
    SS_TRY(side->stepper_->begin(Batch(subject.batch)));
    side->stepper_->abandon();
  }
  side->start_ = side->context_.state.copy();  // what the subject lacks was made by binding
  return side;
}

Status SideStep::run(const Batch& batch, const std::function<Status(int)>& after, const std::function<bool(int)>& before) {
  context_.state.restore(start_);
  return runFrom(batch, after, before);
}

Status SideStep::goOn(const Batch& batch) { return runFrom(batch, {}, {}); }

Status SideStep::runFrom(const Batch& batch, const std::function<Status(int)>& after,
                         const std::function<bool(int)>& before) {
  SS_TRY(stepper_->feed(batch));
  Executor::RunOptions run = stepper_->runOptions();
  run.update = true;
  run.cancel = cancelled_;
  run.after = after;
  run.before = before;
  SS_TRY(stepper_->executor().run(0, stepper_->count(), run));
  return {};
}

double SideStep::loss() const {
  const auto contents = stepper_->executor().read(step().loss);
  return contents ? elementAsDouble(contents->view(), 0) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace stepscope
