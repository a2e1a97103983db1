// Running one micro step at full speed, what a step commits, and the ring of states to rewind to.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/train/breakpoint.h"
#include "engine/train/phase_scope.h"
#include "engine/train/schedule.h"
#include "engine/train/session.h"
#include "engine/train/session_edit.h"
#include "engine/train/snapshots.h"

namespace stepscope {

Status Session::feed(const Batch& batch) {
  if (variant_->doesNotFit) return tl::make_unexpected(*variant_->doesNotFit);
  Executor& executor = *variant_->executor;
  for (const ValueId id : variant_->graph.inputs()) {
    const auto it = batch.arrays.find(variant_->graph.value(id).name);
    if (it != batch.arrays.end()) SS_TRY(executor.setInput(id, it->second.view()));
  }
  if (forwardOnly_) return {};
  for (const LearningRateInput& rate : optimizer_.learningRates)
    SS_TRY(executor.setInput(
        rate.input, Tensor::scalar(DType::kF32, rate.base * scheduleFactor(options_, state_.scheduledUpdates())).view()));
  if (optimizer_.update)
    SS_TRY(
        executor.setInput(optimizer_.update, Tensor::scalar(DType::kI64, static_cast<double>(state_.updates + 1)).view()));
  if (optimizer_.firstMicro)
    SS_TRY(executor.setInput(optimizer_.firstMicro, Tensor::scalar(DType::kBool, state_.micro == 0).view()));
  return {};
}

Executor::RunOptions Session::runOptions() const {
  Executor::RunOptions options;
  options.key = {options_.seed, static_cast<std::uint64_t>(state_.step), 0};
  options.update = !forwardOnly_ && state_.micro + 1 >= options_.accumulate;
  return options;
}

void Session::beginNotes() {
  if (!variant_->notes && notes_.due(state_.step))
    variant_->notes = planNotes(*variant_->executor, trained_, optimizer_.accumulated, loss_);
  notes_.begin(*variant_->executor, variant_->notes ? &*variant_->notes : nullptr, batch_, loss_, state_.step);
}

void Session::noteAfter(int instruction) {
  if (!notes_.listens()) return;
  const Executor& executor = *variant_->executor;
  const bool update =
      runOptions().update || !executor.plan().instructions[static_cast<std::size_t>(instruction)].updateEntry;
  notes_.after(instruction, update && executor.conditionsHold(instruction));
}

Result<snapshot::StepRecord> Session::step() {
  snapshot::StepRecord record;
  SS_TRY(step(record));
  return record;
}

Status Session::step(snapshot::StepRecord& record) {
  if (!variant_ || !data_) return invalid("step: nothing was built; build first");
  if (inStep_) {
    SS_ASSIGN(record, finishStep());
    return {};
  }
  SS_TRY(applyOptions());
  SS_ASSIGN(Batch batch, data_->batch(state_.step));
  SS_TRY(useVariantFor(batch));
  Executor& executor = *variant_->executor;
  SS_TRY(feed(batch));
  batch_ = std::move(batch);
  const int count = static_cast<int>(executor.plan().instructions.size());
  Executor::RunOptions options = runOptions();
  lastSpans_.clear();
  std::vector<Span> first;
  std::vector<Span>& spans = options_.record == "instructions" ? lastSpans_ : first;
  if (options_.record == "instructions" || !variant_->timed) {
    spans.reserve(static_cast<std::size_t>(count));
    options.spans = &spans;
  }
  const std::int64_t begin = monotonicNs();
  beginNotes();
  if (notes_.listens())
    options.after = [this](int i) -> Status {
      noteAfter(i);
      return {};
    };
  // A cancelled step is thrown away, so it may only be cancelled before state is written over.
  options.cancel = &cancelled_;
  options.cancelBelow = executor.plan().firstStateWrite;
  if (const auto ran = executor.run(0, count, options); !ran) return tl::make_unexpected(withDimHint(ran.error()));
  const std::int64_t end = monotonicNs();
  if (!variant_->timed) nameLongInstructions(spans);
  fillRecord(record, begin, end);
  notes_.finish(record);
  position_ = count;
  return commit();
}

// A cancel waits for the instruction that runs, so the user is told of those that keep it waiting: once per variant.
void Session::nameLongInstructions(const std::vector<Span>& spans) {
  variant_->timed = true;
  std::vector<Span> longest;
  for (const Span& span : spans)
    if (span.end - span.begin > options_.longMs * 1'000'000) longest.push_back(span);
  if (longest.empty()) return;
  std::sort(longest.begin(), longest.end(), [](const Span& a, const Span& b) { return a.end - a.begin > b.end - b.begin; });
  std::string text;
  const auto nodeOf = [&](const Span& span) -> const Node& {
    return variant_->graph.node(variant_->executor->plan().instructions[static_cast<std::size_t>(span.instruction)].node);
  };
  for (std::size_t i = 0; i < longest.size() && i < 5; ++i)
    text += fmt::format("{}instruction {} ({}) {} ms", i ? ", " : "", longest[i].instruction, nodeOf(longest[i]).label(),
                        (longest[i].end - longest[i].begin) / 1'000'000);
  snapshot::Alert alert;
  alert.set_severity(snapshot::Alert::INFO);
  alert.set_code("long_instruction");
  alert.set_message(fmt::format("{} instruction{} ran longer than {} ms, and cancelling waits for the one that runs: {}{}",
                                longest.size(), longest.size() == 1 ? "" : "s", options_.longMs, text,
                                longest.size() > 5 ? " …" : ""));
  alert.set_node(nodeOf(longest.front()).id.index);
  raise(alert);
}

void Session::fillRecord(snapshot::StepRecord& record, std::int64_t begin, std::int64_t end) const {
  const Executor& executor = *variant_->executor;
  record.Clear();
  record.set_step(state_.step);
  record.set_begin_ns(begin);
  record.set_ns(end - begin);
  if (loss_) {
    record.set_loss(elementAsDouble(executor.view(loss_), 0));
    record.set_has_loss(true);
  }
  record.set_learning_rate(options_.lr * scheduleFactor(options_, state_.scheduledUpdates()));
  record.set_updated(runOptions().update);
  if (optimizer_.gradientNorm && record.updated()) {
    record.set_gradient_norm(elementAsDouble(executor.view(optimizer_.gradientNorm), 0));
    record.set_has_gradient_norm(true);
  }
  if (!variant_->graph.inputs().empty()) {
    const Value& first = variant_->graph.value(variant_->graph.inputs().front());
    if (const auto it = batch_.arrays.find(first.name); it != batch_.arrays.end() && !it->second.dims().empty()) {
      record.set_samples(it->second.dims()[0]);
      if (isInteger(it->second.dtype()) && it->second.dims().size() == 2) record.set_tokens(it->second.elements());
    }
  }
  record.set_planned_bytes(executor.plannedBytes());
  // Pages stay touched, so they are counted while they can still grow, and now and then after that.
  if (touched_ == 0 || state_.step % 64 < 2) touched_ = executor.touchedBytes();
  record.set_peak_bytes(executor.plan().persistentBytes + touched_ + executor.dynamicBytes());
  record.set_batch(batch_.label);
  record.set_warm_up(!variant_->stepped);
  for (snapshot::InputDensity& density : density_.measure(batch_)) *record.add_densities() = std::move(density);
  record.mutable_spans()->Reserve(static_cast<int>(lastSpans_.size()));
  for (const Span& span : lastSpans_) {
    auto& s = *record.add_spans();
    s.set_instruction(span.instruction);
    s.set_node(executor.plan().instructions[static_cast<std::size_t>(span.instruction)].node.index);
    s.set_begin_ns(span.begin);
    s.set_end_ns(span.end);
  }
}

// The TorchScript exporter traces a model in training mode on its sample batch, so the statistics that it writes already
// count that batch once. Where the file's statistics are the defaults (mean 0, variance 1) moved by exactly the first batch,
// for every channel of every BatchNormalization (with PyTorch's sample variance or ONNX's population variance), counting it
// again would leave PyTorch's result: the first update then starts from the defaults, and that is told.
bool Session::traceCountedFirstBatch() const {
  if (state_.step != options_.startStep || resumed_ || forwardOnly_) return false;
  bool any = false;
  for (const StateUpdate& update : variant_->graph.stateUpdates) {
    const Value& next = variant_->graph.value(update.next);
    const Node& node = variant_->graph.node(next.producer);
    if (!node.op.ends_with("BatchNormalization")) continue;  // fused or not
    const double momentum = node.attrs.real("momentum", 0.9F), initial = next.outputIndex == 1 ? 0.0 : 1.0;
    const TensorView before = variant_->executor->view(update.state), after = variant_->executor->view(update.next);
    const double count = static_cast<double>(variant_->executor->view(node.input(0)).elements()) /
                         static_cast<double>(std::max<std::int64_t>(1, before.elements()));
    const double sample = next.outputIndex == 2 && count > 1 ? count / (count - 1) : 1.0;
    for (std::int64_t c = 0; c < before.elements(); ++c) {
      const double old = elementAsDouble(before, c);
      const double ofBatch = elementAsDouble(after, c) - momentum * old;  // (1 - momentum) times the batch's statistic
      const double tolerance = 1e-5 * (std::abs(initial) + std::abs(old)) + 1e-7;
      if (std::abs(old - (momentum * initial + ofBatch)) > tolerance &&
          std::abs(old - (momentum * initial + ofBatch * sample)) > tolerance)
        return false;
      any = true;
    }
  }
  return any;
}

// What the step's instructions made beside the state becomes the state. `counted`: see traceCountedFirstBatch().
void Session::writeNextState(bool updated, bool counted) {
  const Executor& executor = *variant_->executor;
  for (const auto& [update, source, target, byOptimizer] : variant_->copied) {
    if (byOptimizer && !updated) continue;
    if (!source.empty() && !counted) {
      std::memcpy(target.data(), source.data(), source.size());
      continue;
    }
    const Value& next = variant_->graph.value(update.next);
    const TensorView from = executor.view(update.next), to = executor.view(update.state);
    if (counted && variant_->graph.node(next.producer).op.ends_with("BatchNormalization")) {
      const double momentum = variant_->graph.node(next.producer).attrs.real("momentum", 0.9F),
                   initial = next.outputIndex == 1 ? 0.0 : 1.0;
      for (std::int64_t c = 0; c < to.elements(); ++c)
        storeElement(to, c, elementAsDouble(from, c) + momentum * (initial - elementAsDouble(to, c)));
      continue;
    }
    if (from.data && to.data && from.data != to.data && from.bytes() == to.bytes())
      std::memcpy(to.data, from.data, to.bytes());
  }
}

Status Session::commit() {
  const bool updated = runOptions().update;
  const bool counted = traceCountedFirstBatch();
  if (counted) {
    snapshot::Alert alert;
    alert.set_severity(snapshot::Alert::WARNING);
    alert.set_code("statistics_counted");
    alert.set_message(
        "running statistics in the file already count the first batch (the exporter traced the model in training mode): "
        "this step counts it once, from mean 0 and variance 1");
    alert.set_node(-1);
    raise(alert);
  }
  writeNextState(updated, counted);
  rememberTimes();
  ++state_.step;
  variant_->stepped = true;
  if (updated) {
    ++state_.updates;
    state_.micro = 0;
  } else {
    ++state_.micro;
  }
  inStep_ = false;
  before_.clear();
  undo_.clear();
  edits_.clear();
  if (!forwardOnly_ && options_.ringBytes > 0 && ringWanted_) remember();
  return {};
}

void Session::remember() {
  StateSnapshot copy = state_.copy();
  const std::int64_t bytes = copy.bytes();
  if (bytes > options_.ringBytes) return;
  ring_.push_back(std::move(copy));
  ringBytes_ += bytes;
  while (ringBytes_ > options_.ringBytes && ring_.size() > 1) {
    // The oldest but one goes: the first state of the run stays within reach as long as it fits.
    const auto victim = ring_.size() > 2 ? ring_.begin() + 1 : ring_.begin();
    ringBytes_ -= victim->bytes();
    ring_.erase(victim);
  }
}

std::vector<std::int64_t> Session::ring() const {
  std::vector<std::int64_t> steps;
  for (const StateSnapshot& snapshot : ring_) steps.push_back(snapshot.step);
  return steps;
}

Status Session::rewind(std::int64_t step) {
  SS_TRY(abandonStep());
  const auto it = std::find_if(ring_.begin(), ring_.end(), [&](const StateSnapshot& s) { return s.step == step; });
  if (it == ring_.end()) {
    std::string known;
    for (const StateSnapshot& s : ring_) known += fmt::format("{}{}", known.empty() ? "" : ", ", s.step);
    return fail(ErrorCode::kNotFound,
                fmt::format("rewind: no state is kept for step {}; kept are {}", step, known.empty() ? "none" : known));
  }
  state_.restore(*it);
  while (ring_.size() > static_cast<std::size_t>(it - ring_.begin()) + 1) {
    ringBytes_ -= ring_.back().bytes();
    ring_.pop_back();
  }
  return {};
}

}  // namespace stepscope
