// Scaled gradients: where the factor begins, and which updates are skipped. The rule is that of engine/build/loss_scale.h.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/build/loss_scale.h"
#include "engine/step/numbers.h"
#include "engine/step/stepper.h"
#include "kernels/cpu/loops/not_finite.h"

namespace stepscope {

// Runs forward and backward pass with smaller and smaller factors, and puts back what they write.
Status Stepper::findLossScale(const Batch& batch) {
  LossScale& scale = context_.state.counters.lossScale;
  if (!step().optimizer.lossScale || !findsLossScale(options(), scale)) return {};
  constexpr int kTries = 64;
  const double first = lossScaleFactor(options(), scale);
  Executor::RunOptions run = runOptions();
  run.cancel = &context_.cancelled;
  bool fits = false;
  // What a round has summed up comes to the scale that is found, once.
  double& sumScale = context_.state.counters.sumScale;
  const double summedAt = std::exchange(sumScale, 0);
  for (int i = 0; i < kTries && !fits; ++i) {
    if (i > 0) scale = lossScaleAfter(options(), scale, false);
    keepState(plan().firstOptimizer);
    const Status fed = feed(batch);
    const auto ran = fed ? executor_->run(0, plan().firstOptimizer, run) : Result<int>(tl::make_unexpected(fed.error()));
    fits = ran && std::none_of(step().optimizer.accumulated.begin(), step().optimizer.accumulated.end(), [&](ValueId id) {
             const auto contents = id ? executor_->read(id) : Result<Tensor>(Tensor());
             return id && contents && cpu::anyNotFinite(contents->view());
           });
    context_.state.rollback();
    ++context_.places;
    if (!ran) {
      scale = {};
      sumScale = summedAt;
      return tl::make_unexpected(step().request.explain(ran.error()));
    }
  }
  sumScale = summedAt;
  // Other batches have larger gradients.
  constexpr int kHeadroom = 3;
  for (int i = 0; fits && scale.factor > 0 && i < kHeadroom; ++i) scale = lossScaleAfter(options(), scale, false);
  // Gradients that overflow whatever the factor is say so with the updates that are skipped.
  scale = {fits ? lossScaleFactor(options(), scale) : first, 0};
  if (context_.ranks) SS_TRY(context_.ranks->smallest("first loss scale", context_.state.counters.step, scale.factor));
  if (scale.factor != first)
    context_.log.warn(
        "loss_scale_found",
        fmt::format("gradients of the first batch overflow at loss scale {}; it begins at {}", first, scale.factor),
        context_.state.counters.step);
  return {};
}

// A round of micro steps ended whose gradients were not finite.
bool Stepper::skipsUpdate() const {
  const ValueId finite = step().optimizer.finite;
  if (!finite || !roundEnds()) return false;
  const auto contents = executor_->read(finite);
  return contents && elementAsDouble(contents->view(), 0) == 0;
}

}  // namespace stepscope
