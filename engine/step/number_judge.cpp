#include "engine/step/number_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engine/profile/tensor_summary.h"
#include "engine/snapshot/utf8.h"
#include "kernels/cpu/loops/not_finite.h"
#include "kernels/cpu/loops/sum_of_squares.h"

namespace stepscope {

void NumberJudge::begin() {
  norm_.reset();
  squares_.clear();
  found_.clear();
  ofValue_ = false;
}

void NumberJudge::excuseInfinities() {
  const std::vector<bool>& expected = known_.expectedInf;
  excused_.resize(expected.size(), false);
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (expected[i]) excused_[i] = true;
}

void NumberJudge::after(const Executor& executor, int instruction, bool fullSpeed) {
  if (context_.numbers.everywhere && fullSpeed && found_.empty()) lookAtOutputs(executor, instruction);
  if (context_.numbers.any() && found_.empty() && !context_.watched.empty()) lookAtWatched(executor, instruction);
}

void NumberJudge::lookAtWatched(const Executor& executor, int instruction) {
  for (const WatchedValues::Watched& watched : context_.watched.all()) {
    if (!watched.running || watched.running->instruction != instruction) continue;
    const snapshot::TensorStatistics& found = watched.running->statistics;
    const bool nan = context_.numbers.nan && found.nan() > 0, inf = context_.numbers.inf && found.inf() > 0;
    if (nan || inf)
      found_ = fmt::format("watched value '{}' holds {}", toUtf8(executor.graph().value(watched.value).name),
                           nan ? "NaN" : "Inf");
  }
}

// Of an instruction that ran at full speed. What is found ends the step before its update; the walk that follows judges it.
void NumberJudge::lookAtOutputs(const Executor& executor, int instruction) {
  const ExecutionPlan& plan = executor.plan();
  const Instruction& ran = plan.instructions[static_cast<std::size_t>(instruction)];
  if (ran.kind != InstructionKind::kKernel || ran.view || instruction >= plan.firstOptimizer) return;
  for (const int b : ran.outputs) {
    if (b < 0) continue;
    const ValueId id = plan.buffers[static_cast<std::size_t>(b)].value;
    const auto at = static_cast<std::size_t>(id.index);
    const auto contents = executor.read(id);
    if (!contents || !cpu::anyNotFinite(contents->view())) continue;
    const snapshot::TensorStatistics found = tensorSummary(contents->view());
    const bool nan = context_.numbers.nan && found.nan() > 0;
    const bool inf = context_.numbers.inf && found.inf() > 0 && !(at < excused_.size() && excused_[at]);
    if (!nan && !inf) continue;
    found_ = fmt::format("'{}' holds {}", toUtf8(executor.graph().value(id).name), nan ? "NaN" : "Inf");
    ofValue_ = true;
  }
}

bool NumberJudge::fewGradients(const ExecutionPlan& plan) const {
  constexpr std::int64_t kFewCopied = 64 << 10, kFewRead = 32 << 20;
  std::int64_t read = 0, copied = 0;
  for (const ValueId id : step_.optimizer.accumulated) {
    const int b = id ? plan.bufferOfValue[static_cast<std::size_t>(id.index)] : -1;
    if (b < 0) continue;
    const Buffer& buffer = plan.buffers[static_cast<std::size_t>(b)];
    (buffer.space == Space::kHost ? read : copied) += buffer.bytes;
  }
  return read <= kFewRead && copied <= kFewCopied;
}

// Gradients beyond the caches cost up to a tenth of a small batch's step to be read, and those of a device are copied
// besides: that is done where the step is to stop, where it is walked, and where they are few. Those of ranks are parts of
// what is updated with.
// Gradients that carry a loss scale may overflow: the update judges them.
bool NumberJudge::readsGradients(const ExecutionPlan& plan, bool walked) const {
  if (step_.optimizer.lossScale) return false;
  const bool unknown = walked && !step_.optimizer.gradientNorm && !context_.ranks;  // else the step computes it, or not all
  return context_.numbers.stop || unknown || fewGradients(plan);
}

void NumberJudge::beforeExchange(const Executor& executor, int instruction) {
  const ExecutionPlan& plan = executor.plan();
  if (!readsGradients(plan)) return;
  const std::vector<ValueId>& gradients = step_.optimizer.accumulated;
  for (const int b : plan.instructions[static_cast<std::size_t>(instruction)].inputs) {
    const ValueId id = b < 0 ? ValueId{} : plan.buffers[static_cast<std::size_t>(b)].value;
    if (std::ranges::find(gradients, id) == gradients.end()) continue;
    if (const auto contents = executor.read(id)) squares_[id] = cpu::sumOfSquares(contents->view(), executor.threads());
  }
}

void NumberJudge::judge(const Executor& executor, bool walked) {
  const NumberWatch& watch = context_.numbers;
  const ExecutionPlan& plan = executor.plan();
  const bool scaled = step_.optimizer.lossScale.valid();
  if (readsGradients(plan, walked))
    norm_ = gradientNormAt(executor, step_.optimizer.accumulated, plan.firstOptimizer, squares_);
  if ((!found_.empty() && !ofValue_) || !watch.any()) return;
  const auto look = [&](std::string_view what, double number) {
    const std::string found = watch.find(number);
    if (found.empty() || (!found_.empty() && !ofValue_)) return;
    found_ = fmt::format("{} is {}", what, found);
    ofValue_ = false;
  };
  if (step_.loss)
    if (const auto contents = executor.read(step_.loss)) look("loss", elementAsDouble(contents->view(), 0));
  if (norm_) look("gradient norm", *norm_);
  // What the flight recorder saw of the gradients, where reading all of them was too much.
  if (const FlightTrack* bad = scaled || norm_ ? nullptr : context_.flight.badGradient())
    look(fmt::format("gradient of '{}'", toUtf8(bad->of)),
         bad->looks.back().nan > 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity());
}

}  // namespace stepscope
