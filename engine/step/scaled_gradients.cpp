#include "engine/step/scaled_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/build/loss_scale.h"
#include "engine/snapshot/alert.h"
#include "engine/snapshot/utf8.h"
#include "engine/step/numbers.h"
#include "kernels/cpu/loops/not_finite.h"

namespace stepscope {
namespace {

// A trained parameter that is the reason why not even the loss is finite; invalid: there is none.
ValueId spoiltParameter(const Executor& executor, const SymbolicStep& step) {
  const auto loss = step.loss ? executor.read(step.loss) : Result<Tensor>(Tensor());
  if (!step.loss || !loss || std::isfinite(elementAsDouble(loss->view(), 0))) return {};
  for (const ValueId id : step.trained)
    if (const auto contents = executor.read(id); contents && cpu::anyNotFinite(contents->view())) return id;
  return {};
}

}  // namespace

Status settleSums(const Executor& executor, const SymbolicStep& step, StepContext& context) {
  StateCounters& counters = context.state.counters;
  if (counters.micro == 0 || !step.optimizer.firstMicro || counters.sumScale == 0) return {};
  const double factor = lossScaleFactor(step.request.options, counters.lossScale);
  if (factor == counters.sumScale) return {};
  SS_TRY(context.state.bring(executor.device()));
  for (const ValueId id : step.trained) {
    const std::string name = step.graph.value(id).name + ".accumulated";
    if (!context.state.contains(name)) continue;
    const Tensor sum = context.state.read(name).clone();
    for (std::int64_t i = 0; i < sum.elements(); ++i)
      storeElement(sum.view(), i, elementAsDouble(sum.view(), i) * (factor / counters.sumScale));
    context.state.write(name, sum.view());
  }
  counters.sumScale = factor;
  return {};
}

// The first gradient that overflowed, in the order of the step; updates that did not run have left them as they were.
void tellOfSkippedUpdate(const Executor& executor, const SymbolicStep& step, StepContext& context, const LossScale& next) {
  const LossScale& now = context.state.counters.lossScale;
  const double factor = lossScaleFactor(step.request.options, now), after = lossScaleFactor(step.request.options, next);
  ValueId first;
  int made = static_cast<int>(executor.plan().instructions.size());
  for (const ValueId id : step.optimizer.accumulated) {
    const NodeId producer = id ? executor.graph().value(id).producer : NodeId{};
    const int instruction = executor.plan().instructionOf(producer);
    if (instruction < 0 || instruction >= made) continue;
    if (const auto contents = executor.read(id); contents && cpu::anyNotFinite(contents->view())) {
      first = id;
      made = instruction;
    }
  }
  snapshot::Alert alert = makeAlert(snapshot::Alert::WARNING, "update_skipped");
  alert.set_step(context.state.counters.step);
  alert.set_value(first ? first.index : -1);
  alert.set_node(first ? executor.graph().value(first).producer.index : -1);
  alert.set_instruction(first ? made : -1);
  alert.set_message(
      fmt::format("update skipped: {} not finite at loss scale {}{}",
                  first ? fmt::format("'{}', made by {} {}, is", toUtf8(executor.graph().value(first).name), made,
                                      toUtf8(executor.graph().node(executor.graph().value(first).producer).op))
                        : std::string("the gradients together are"),
                  factor, after == factor ? ", which stays" : fmt::format("; it is {} from here on", after)));
  if (const ValueId spoilt = spoiltParameter(executor, step)) {
    alert.set_value(spoilt.index);
    alert.set_message(fmt::format(
        "update skipped: parameter '{}' holds NaN or infinity, and so do gradients at every loss scale; expected numbers; "
        "hint: rewind, or load a checkpoint",
        toUtf8(executor.graph().value(spoilt).name)));
  }
  context.log.raise(std::move(alert));
}

// A scale below 1 makes gradients smaller: when all of them are zero, they were flushed. Said once until one is not.
bool tellOfVanishedGradients(const Executor& executor, const SymbolicStep& step, StepContext& context, bool before) {
  const double factor = lossScaleFactor(step.request.options, context.state.counters.lossScale);
  const ValueId norm = step.optimizer.gradientNorm;
  const auto length = norm ? executor.read(norm) : Result<Tensor>(Tensor());
  const bool vanished = factor < 1 && norm && length && elementAsDouble(length->view(), 0) == 0;
  if (!vanished || before) return vanished;
  const auto& gradients = step.optimizer.accumulated;
  const auto first = std::ranges::find_if(gradients, [](ValueId id) { return id.valid(); });
  const NodeId producer = first == gradients.end() ? NodeId{} : executor.graph().value(*first).producer;
  snapshot::Alert alert = makeAlert(snapshot::Alert::WARNING, "gradients_vanished");
  alert.set_step(context.state.counters.step);
  alert.set_value(first == gradients.end() ? -1 : first->index);
  alert.set_node(producer ? producer.index : -1);
  alert.set_instruction(producer ? executor.plan().instructionOf(producer) : -1);
  const std::string named = producer ? fmt::format(", '{}' of {} too", toUtf8(executor.graph().value(*first).name),
                                                   toUtf8(executor.graph().node(producer).label()))
                                     : std::string();
  alert.set_message(
      fmt::format("every gradient is 0 at loss scale {}{}; expected numbers other than 0; hint: "
                  "loss-scale=dynamic, or one of at least 1",
                  factor, named));
  context.log.raise(std::move(alert));
  return true;
}

}  // namespace stepscope
