// What a step tells of itself.
#include <fmt/format.h>

#include <algorithm>

#include "engine/build/loss_scale.h"
#include "engine/build/schedule.h"
#include "engine/exec/device_times.h"
#include "engine/exec/touched.h"
#include "engine/profile/device_work.h"
#include "engine/snapshot/utf8.h"
#include "engine/step/stepper.h"

namespace stepscope {

void Stepper::beginNotes() {
  judge_.begin();
  watchers_.beginNotes(*executor_, batch_);
  context_.watched.begin(context_.state.counters.step);
}

void Stepper::noteWatched() {
  std::vector<ValueId> ids;
  for (const WatchedValues::Watched& watched : context_.watched.all()) ids.push_back(watched.value);
  for (const ValueId id : ids)
    if (const auto contents = value(id)) context_.watched.note(*executor_, id, *contents, shownStep(), inStep_);
}

void Stepper::noteAfter(int instruction) {
  const auto computed = [&] {
    const bool update = runOptions().update || !plan().instructions[static_cast<std::size_t>(instruction)].updateEntry;
    return update && executor_->conditionsHold(instruction);
  };
  if (!context_.watched.empty()) context_.watched.after(*executor_, instruction, computed(), inStep_);
  if (judge_.conditions().any() && !inStep_) judge_.conditions().after(*executor_, instruction, computed());
  judge_.after(*executor_, instruction, !inStep_);
  if (inStep_ && instruction + 1 == count() && plan().firstOptimizer == count() && followsNumbers())
    judge_.judge(*executor_, true);
  const bool flies = context_.flight.listens() && !inStep_;
  if (!context_.notes.listens() && !flies) return;
  const bool ran = computed();
  if (flies) context_.flight.after(instruction, ran);
  if (context_.notes.listens()) context_.notes.after(instruction, ran);
}

void Stepper::fillRecord(snapshot::StepRecord& record, std::int64_t begin, std::int64_t end) {
  const StateCounters& counters = context_.state.counters;
  const ValueId loss = step().loss, norm = step().optimizer.gradientNorm;
  record.Clear();
  record.set_step(counters.step);
  record.set_begin_ns(begin);
  record.set_ns(end - begin);
  const ProcessorUse use = context_.processor.end();
  record.set_cpu_ns(use.cpu);
  record.set_wait_ns(use.wait);
  const auto number = [&](ValueId id) {
    const auto contents = executor_->read(id);
    return contents ? elementAsDouble(contents->view(), 0) : 0;
  };
  if (loss) {
    record.set_loss(number(loss));
    record.set_has_loss(true);
  }
  record.set_learning_rate(context_.learningRate.value_or(options().lr) *
                           scheduleFactor(options(), counters.scheduledUpdates()));
  const bool skipped = skipsUpdate();
  record.set_updated(roundEnds() && !skipped);
  record.set_skipped(skipped);
  if (step().optimizer.lossScale) record.set_loss_scale(lossScaleFactor(options(), counters.lossScale));
  // What the judge read are the gradients of this rank.
  if (record.updated() && (norm || (judge_.norm() && !context_.ranks))) {
    record.set_gradient_norm(norm ? number(norm) : *judge_.norm());
    record.set_has_gradient_norm(true);
  }
  if (!graph().inputs().empty()) {
    const Value& first = graph().value(graph().inputs().front());
    if (const auto it = batch_.arrays.find(first.name); it != batch_.arrays.end() && !it->second.dims().empty()) {
      record.set_samples(it->second.dims()[0]);
      if (isInteger(it->second.dtype()) && it->second.dims().size() == 2) record.set_tokens(it->second.elements());
    }
  }
  record.set_planned_bytes(executor_->plannedBytes());
  // Pages stay touched, so they are counted while they can still grow, and now and then after that.
  if (touched_ == 0 || counters.step % 64 < 2) {
    touched_ = executor_->touchedBytes();
    touchedPersistent_ = touchedPersistentBytes(*executor_);
  }
  record.set_peak_bytes(touchedPersistent_ + touched_ + executor_->dynamicBytes());
  record.set_batch(batch_.label);
  record.set_warm_up(!stepped_);
  record.set_every_value(context_.numbers.everywhere);
  for (snapshot::InputDensity& density : step().density.measure(batch_)) {
    // What passes sparse_labels and eliminate_padding made of it.
    density.set_computed(density.total());
    for (const KeptRows& kept : step().keptRows)
      if (kept.input.starts_with(density.input() + ".kept_"))
        if (const auto dims = knownDims(*graph().value(graph().findValue(kept.input)).type.shape)) {
          density.set_computed(elementCount(*dims));
          density.set_reason(fmt::format("{}; {} of {} {} computed", density.reason(), density.computed(), density.total(),
                                         kept.tokens ? "tokens" : "rows of scores"));
        }
    if (const auto rows = context_.rows.find(density.input()); rows != context_.rows.end())
      density.set_decision(toUtf8(rows->second.reason));
    *record.add_densities() = std::move(density);
  }
  record.mutable_spans()->Reserve(static_cast<int>(lastSpans_.size()));
  const ActivitySource* const source = activityOf(executor_->device());
  const bool placed = source != nullptr;
  if (placed && !lastSpans_.empty() && options().recordRung == "host")
    record.mutable_device()->set_rung("host");
  else if (placed && !watchers_.activity.records.empty())
    *record.mutable_device() = workOf(watchers_.activity, source->rung());
  for (const Span& span : lastSpans_) {
    auto& s = *record.add_spans();
    s.set_thread(placed ? rowOf(plan().instructions[static_cast<std::size_t>(span.instruction)]) : 0);
    s.set_instruction(span.instruction);
    s.set_node(plan().instructions[static_cast<std::size_t>(span.instruction)].node.index);
    s.set_begin_ns(span.begin);
    s.set_end_ns(span.end);
  }
}

}  // namespace stepscope
