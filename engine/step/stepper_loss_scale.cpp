// Scaled gradients: where the factor begins, and updates that are skipped. The rule is that of engine/build/loss_scale.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/build/loss_scale.h"
#include "engine/snapshot/utf8.h"
#include "engine/step/numbers.h"
#include "engine/step/stepper.h"

namespace stepscope {
namespace {

// A trained parameter that is the reason why not even the loss is finite; invalid: there is none.
ValueId spoiltParameter(const Executor& executor, const SymbolicStep& step) {
  const auto loss = step.loss ? executor.read(step.loss) : Result<Tensor>(Tensor());
  if (!step.loss || !loss || std::isfinite(elementAsDouble(loss->view(), 0))) return {};
  for (const ValueId id : step.trained)
    if (const auto contents = executor.read(id); contents && holdsNotFinite(contents->view())) return id;
  return {};
}

}  // namespace

// Runs forward and backward pass with smaller and smaller factors, and puts back what they write.
Status Stepper::findLossScale(const Batch& batch) {
  LossScale& scale = context_.state.counters.lossScale;
  if (!step().optimizer.lossScale || !findsLossScale(options(), scale)) return {};
  constexpr int kTries = 64;
  const double first = lossScaleFactor(options(), scale);
  Executor::RunOptions run = runOptions();
  run.cancel = &context_.cancelled;
  bool fits = false;
  for (int i = 0; i < kTries && !fits; ++i) {
    if (i > 0) scale = lossScaleAfter(options(), scale, false);
    keepEarlyState();
    const Status fed = feed(batch);
    const auto ran = fed ? executor_->run(0, plan().firstOptimizer, run) : Result<int>(tl::make_unexpected(fed.error()));
    fits = ran && std::none_of(step().optimizer.accumulated.begin(), step().optimizer.accumulated.end(), [&](ValueId id) {
             const auto contents = id ? executor_->read(id) : Result<Tensor>(Tensor());
             return id && contents && holdsNotFinite(contents->view());
           });
    context_.state.rollback();
    ++context_.places;
    if (!ran) {
      scale = {};
      return tl::make_unexpected(step().request.explain(ran.error()));
    }
  }
  // Other batches have larger gradients.
  constexpr int kHeadroom = 3;
  for (int i = 0; fits && scale.factor > 0 && i < kHeadroom; ++i) scale = lossScaleAfter(options(), scale, false);
  // Gradients that overflow whatever the factor is say so with the updates that are skipped.
  scale = {fits ? lossScaleFactor(options(), scale) : first, 0};
  if (context_.ranks) SS_TRY(context_.ranks->smallest("first loss scale", context_.state.counters.step, scale.factor));
  if (scale.factor != first)
    context_.log.warn(
        "loss_scale_found",
        fmt::format("gradients of the first batch overflow at loss scale {}; it begins at {}", first, scale.factor));
  return {};
}

// A round of micro steps ended whose gradients were not finite.
bool Stepper::skipsUpdate() const {
  const ValueId finite = step().optimizer.finite;
  if (!finite || !runOptions().update) return false;
  const auto contents = executor_->read(finite);
  return contents && elementAsDouble(contents->view(), 0) == 0;
}

// The first gradient that overflowed, in the order of the step; updates that did not run have left them as they were.
void Stepper::tellOfSkippedUpdate(const LossScale& next) {
  const LossScale& now = context_.state.counters.lossScale;
  const double factor = lossScaleFactor(options(), now), after = lossScaleFactor(options(), next);
  ValueId first;
  int made = count();
  for (const ValueId id : step().optimizer.accumulated) {
    const NodeId producer = id ? graph().value(id).producer : NodeId{};
    const int instruction = plan().instructionOf(producer);
    if (instruction < 0 || instruction >= made) continue;
    if (const auto contents = executor_->read(id); contents && holdsNotFinite(contents->view())) {
      first = id;
      made = instruction;
    }
  }
  snapshot::Alert alert;
  alert.set_severity(snapshot::Alert::WARNING);
  alert.set_code("update_skipped");
  alert.set_step(context_.state.counters.step);
  alert.set_value(first ? first.index : -1);
  alert.set_node(first ? graph().value(first).producer.index : -1);
  alert.set_instruction(first ? made : -1);
  alert.set_message(fmt::format("update skipped: {} not finite at loss scale {}{}",
                                first ? fmt::format("'{}', made by {} {}, is", toUtf8(graph().value(first).name), made,
                                                    toUtf8(graph().node(graph().value(first).producer).op))
                                      : std::string("the gradients together are"),
                                factor, after == factor ? ", which stays" : fmt::format("; it is {} from here on", after)));
  if (const ValueId spoilt = spoiltParameter(*executor_, step())) {
    alert.set_value(spoilt.index);
    alert.set_message(fmt::format(
        "update skipped: parameter '{}' holds NaN or infinity, and so do gradients at every loss scale; expected numbers; "
        "hint: rewind, or load a checkpoint",
        toUtf8(graph().value(spoilt).name)));
  }
  context_.log.raiseAt(std::move(alert));
}

// A scale below 1 makes gradients smaller: when all of them are zero, they were flushed. Said once until one is not.
void Stepper::tellOfVanishedGradients() {
  const double factor = lossScaleFactor(options(), context_.state.counters.lossScale);
  const ValueId norm = step().optimizer.gradientNorm;
  const auto length = norm ? executor_->read(norm) : Result<Tensor>(Tensor());
  const bool before = vanished_;
  vanished_ = factor < 1 && norm && length && elementAsDouble(length->view(), 0) == 0;
  if (!vanished_ || before) return;
  const auto& gradients = step().optimizer.accumulated;
  const auto first = std::ranges::find_if(gradients, [](ValueId id) { return id.valid(); });
  const NodeId producer = first == gradients.end() ? NodeId{} : graph().value(*first).producer;
  snapshot::Alert alert;
  alert.set_severity(snapshot::Alert::WARNING);
  alert.set_code("gradients_vanished");
  alert.set_step(context_.state.counters.step);
  alert.set_value(first == gradients.end() ? -1 : first->index);
  alert.set_node(producer ? producer.index : -1);
  alert.set_instruction(producer ? plan().instructionOf(producer) : -1);
  const std::string named =
      producer ? fmt::format(", '{}' of {} too", toUtf8(graph().value(*first).name), toUtf8(graph().node(producer).label()))
               : std::string();
  alert.set_message(
      fmt::format("every gradient is 0 at loss scale {}{}; expected numbers other than 0; hint: "
                  "loss-scale=dynamic, or one of at least 1",
                  factor, named));
  context_.log.raiseAt(std::move(alert));
}

}  // namespace stepscope
