// Running: one micro step at full speed, and stepping through one both ways.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

#include "engine/train/breakpoint.h"
#include "engine/train/compare_tensors.h"
#include "engine/train/phase_scope.h"
#include "engine/train/schedule.h"
#include "engine/train/session.h"
#include "engine/train/session_edit.h"
#include "engine/train/snapshots.h"

namespace stepscope {
namespace {

std::size_t at(ValueId id) { return static_cast<std::size_t>(id.index); }

}  // namespace

Status Session::feed(const Batch& batch) {
  Executor& executor = *variant_->executor;
  for (const ValueId id : variant_->graph.inputs()) {
    const auto it = batch.arrays.find(variant_->graph.value(id).name);
    if (it != batch.arrays.end()) SS_TRY(executor.setInput(id, it->second.view()));
  }
  if (forwardOnly_) return {};
  for (const LearningRateInput& rate : optimizer_.learningRates)
    SS_TRY(executor.setInput(rate.input, Tensor::scalar(DType::kF32, rate.base * scheduleFactor(options_, state_.updates)).view()));
  if (optimizer_.update) SS_TRY(executor.setInput(optimizer_.update, Tensor::scalar(DType::kI64, static_cast<double>(state_.updates + 1)).view()));
  if (optimizer_.firstMicro) SS_TRY(executor.setInput(optimizer_.firstMicro, Tensor::scalar(DType::kBool, state_.micro == 0).view()));
  return {};
}

Executor::RunOptions Session::runOptions() const {
  Executor::RunOptions options;
  options.key = {options_.seed, static_cast<std::uint64_t>(state_.step), 0};
  options.update = !forwardOnly_ && state_.micro + 1 >= options_.accumulate;
  return options;
}

Result<snapshot::StepRecord> Session::step() {
  if (!variant_) return invalid("step: nothing was built; build first");
  if (inStep_) return finishStep();
  SS_ASSIGN(const Batch batch, data_->batch(state_.step));
  SS_TRY(useVariantFor(batch));
  Executor& executor = *variant_->executor;
  executor.clearCancel();
  SS_TRY(feed(batch));
  batch_ = batch;
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
  // A cancelled step is thrown away, so it may only be cancelled before state is written over.
  const int firstStateWrite = executor.plan().firstStateWrite;
  SS_TRY(executor.run(0, firstStateWrite, options));
  executor.clearCancel();
  SS_TRY(executor.run(firstStateWrite, count, options));
  const std::int64_t end = monotonicNs();
  if (!variant_->timed) nameLongInstructions(spans);
  snapshot::StepRecord record = makeRecord(begin, end, lastSpans_);
  position_ = count;
  SS_TRY(commit());
  return record;
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
    text += fmt::format("{}instruction {} ({}) {} ms", i ? ", " : "", longest[i].instruction, nodeOf(longest[i]).label(), (longest[i].end - longest[i].begin) / 1'000'000);
  snapshot::Alert alert;
  alert.set_severity(snapshot::Alert::INFO);
  alert.set_code("long_instruction");
  alert.set_message(fmt::format("{} instruction{} ran longer than {} ms, and cancelling waits for the one that runs: {}{}", longest.size(),
                                longest.size() == 1 ? "" : "s", options_.longMs, text, longest.size() > 5 ? " …" : ""));
  alert.set_node(nodeOf(longest.front()).id.index);
  raise(alert);
}

snapshot::StepRecord Session::makeRecord(std::int64_t begin, std::int64_t end, const std::vector<Span>& spans) const {
  const Executor& executor = *variant_->executor;
  snapshot::StepRecord record;
  record.set_step(state_.step);
  record.set_begin_ns(begin);
  record.set_ns(end - begin);
  if (loss_) {
    record.set_loss(elementAsDouble(executor.view(loss_), 0));
    record.set_has_loss(true);
  }
  record.set_learning_rate(options_.lr * scheduleFactor(options_, state_.updates));
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
  for (snapshot::InputDensity& density : density_.measure(batch_)) *record.add_densities() = std::move(density);
  for (const Span& span : spans) {
    auto& s = *record.add_spans();
    s.set_instruction(span.instruction);
    s.set_node(executor.plan().instructions[static_cast<std::size_t>(span.instruction)].node.index);
    s.set_begin_ns(span.begin);
    s.set_end_ns(span.end);
  }
  return record;
}

// The TorchScript exporter traces a model in training mode on its sample batch, so the statistics that it writes already count
// that batch once. Where the file's statistics are the defaults (mean 0, variance 1) moved by exactly the first batch, for every
// channel of every BatchNormalization (with PyTorch's sample variance or ONNX's population variance), counting it again would
// leave PyTorch's result: the first update then starts from the defaults, and that is told.
bool Session::traceCountedFirstBatch() const {
  if (state_.step != options_.startStep || resumed_ || forwardOnly_) return false;
  bool any = false;
  for (const StateUpdate& update : variant_->graph.stateUpdates) {
    const Value& next = variant_->graph.value(update.next);
    const Node& node = variant_->graph.node(next.producer);
    if (!node.op.ends_with("BatchNormalization")) continue;  // fused or not
    const double momentum = node.attrs.real("momentum", 0.9F), initial = next.outputIndex == 1 ? 0.0 : 1.0;
    const TensorView before = variant_->executor->view(update.state), after = variant_->executor->view(update.next);
    const double count = static_cast<double>(variant_->executor->view(node.input(0)).elements()) / static_cast<double>(std::max<std::int64_t>(1, before.elements()));
    const double sample = next.outputIndex == 2 && count > 1 ? count / (count - 1) : 1.0;
    for (std::int64_t c = 0; c < before.elements(); ++c) {
      const double old = elementAsDouble(before, c);
      const double ofBatch = elementAsDouble(after, c) - momentum * old;  // (1 - momentum) times the batch's statistic
      const double tolerance = 1e-5 * (std::abs(initial) + std::abs(old)) + 1e-7;
      if (std::abs(old - (momentum * initial + ofBatch)) > tolerance && std::abs(old - (momentum * initial + ofBatch * sample)) > tolerance) return false;
      any = true;
    }
  }
  return any;
}

Status Session::commit() {
  Executor& executor = *variant_->executor;
  const bool updated = runOptions().update;
  const bool counted = traceCountedFirstBatch();
  if (counted) {
    snapshot::Alert alert;
    alert.set_severity(snapshot::Alert::WARNING);
    alert.set_code("statistics_counted");
    alert.set_message("running statistics in the file already count the first batch (the exporter traced the model in training mode): "
                      "this step counts it once, from mean 0 and variance 1");
    alert.set_node(-1);
    raise(alert);
  }
  for (const StateUpdate& update : variant_->copied) {
    const Value& next = variant_->graph.value(update.next);
    const bool optimizerUpdate = next.producer && variant_->graph.node(next.producer).phase == Phase::kOptimizer;
    if (optimizerUpdate && !updated) continue;
    const TensorView from = executor.view(update.next), to = executor.view(update.state);
    if (counted && variant_->graph.node(next.producer).op.ends_with("BatchNormalization")) {
      const double momentum = variant_->graph.node(next.producer).attrs.real("momentum", 0.9F), initial = next.outputIndex == 1 ? 0.0 : 1.0;
      for (std::int64_t c = 0; c < to.elements(); ++c) storeElement(to, c, elementAsDouble(from, c) + momentum * (initial - elementAsDouble(to, c)));
      continue;
    }
    if (from.data && to.data && from.data != to.data && from.bytes() == to.bytes()) std::memcpy(to.data, from.data, to.bytes());
  }
  ++state_.step;
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
    return fail(ErrorCode::kNotFound, fmt::format("rewind: no state is kept for step {}; kept are {}", step, known.empty() ? "none" : known));
  }
  state_.restore(*it);
  while (ring_.size() > static_cast<std::size_t>(it - ring_.begin()) + 1) {
    ringBytes_ -= ring_.back().bytes();
    ring_.pop_back();
  }
  return {};
}

// --- stepping -------------------------------------------------------------------------------------------------------------

Status Session::beginStep() {
  if (!variant_) return invalid("step: nothing was built; build first");
  SS_TRY(abandonStep());
  ringWanted_ = true;
  SS_ASSIGN(batch_, data_->batch(state_.step));
  SS_TRY(useVariantFor(batch_));
  variant_->executor->clearCancel();
  if (ring_.empty() || ring_.back().step != state_.step) remember();
  SS_TRY(feed(batch_));
  inStep_ = true;
  undo_.clear();
  position_ = 0;
  stepBegin_ = monotonicNs();
  lastSpans_.clear();
  stoppedBy_ = "step";
  expectedInf_.assign(variant_->graph.valueCapacity(), false);
  return {};
}

// State that is written over for the first time in this step is kept for the whole step; the undo log shares that copy.
Status Session::saveBeforeWrite(int instruction, bool undoable) {
  const Executor& executor = *variant_->executor;
  const std::size_t known = before_.size();
  for (const int b : executor.plan().instructions[static_cast<std::size_t>(instruction)].outputs) {
    if (b < 0) continue;
    const Buffer& root = executor.plan().buffers[static_cast<std::size_t>(executor.plan().root(b))];
    if (root.home != Home::kState) continue;
    const bool saved = std::any_of(before_.begin(), before_.end(), [&](const auto& entry) { return entry.first == root.value; });
    if (!saved) before_.emplace_back(root.value, state_.tensors.at(variant_->graph.value(root.value).name).clone());
  }
  if (!undoable) return {};
  const bool runs = executor.conditionsHold(instruction) && (runOptions().update || !executor.plan().instructions[static_cast<std::size_t>(instruction)].updateEntry);
  if (!runs) {
    undo_.record(instruction, {}, {});
  } else if (executor.writtenMemory(instruction, written_)) {
    std::vector<UndoLog::Kept> kept;
    for (std::size_t k = known; k < before_.size(); ++k)
      kept.push_back({state_.tensors.at(variant_->graph.value(before_[k].first).name).data(), before_[k].second});
    undo_.record(instruction, written_, kept);
  } else {
    undo_.clear();
  }
  return {};
}

Status Session::restoreStepStart() {
  for (const auto& [id, tensor] : before_) {
    const Tensor target = state_.tensors.at(variant_->graph.value(id).name);
    if (target.bytes() > 0) std::memcpy(target.data(), tensor.data(), target.bytes());
  }
  before_.clear();
  undo_.clear();
  return {};
}

Status Session::abandonStep() {
  if (!inStep_) return {};
  SS_TRY(restoreStepStart());
  edits_.clear();
  inStep_ = false;
  position_ = 0;
  return {};
}

// Applies the edits that the user made when the next instruction was `instruction`.
Status Session::applyEdits(int instruction) {
  for (const SessionEdit& edit : edits_)
    if (edit.position == instruction) SS_TRY(writeValue(edit.value, edit.contents.view()));
  return {};
}

Result<snapshot::Position> Session::runRange(int end, bool breaks, bool undoable) {
  Executor& executor = *variant_->executor;
  executor.clearCancel();
  Executor::RunOptions options = runOptions();
  std::vector<Span> spans;
  spans.reserve(static_cast<std::size_t>(std::max(0, end - position_)));
  options.spans = &spans;
  std::string reason;
  int breakpointId = 0;
  const int start = position_;
  // Numbers are followed without stopping too: what is expected to be infinite later depends on what was before.
  const bool follow = breaks || std::any_of(breakpoints_.begin(), breakpoints_.end(), [](const auto& b) { return b.enabled() && b.new_inf(); });
  options.before = [&](int i) {
    if (!reason.empty()) return false;
    if (breaks && i != start) {
      reason = breakBefore(*variant_, breakpoints_, i, &breakpointId);
      if (!reason.empty()) return false;
    }
    // A run without breakpoints ends at `end`, so only the last instructions can be undone from there.
    return saveBeforeWrite(i, undoable && (breaks || i >= end - UndoLog::kInstructions)).has_value();
  };
  options.after = [&](int i) -> Status {
    if (!follow) return {};
    int id = 0;
    std::string found = breakAfter(*variant_, breakpoints_, i, expectedInf_, &id);
    if (!breaks) return {};
    reason = std::move(found);
    breakpointId = id;
    return {};
  };
  auto next = executor.run(position_, end, options);
  if (!next) {
    // The instruction that failed or was cancelled has not been counted; what ran before it stands.
    position_ = start + static_cast<int>(spans.size());
    if (undo_.reaches(position_, position_ + 1)) undo_.undoTo(position_);
    if (next.error().code != ErrorCode::kCancelled) return tl::make_unexpected(next.error());
    reason = "cancelled";
    executor.clearCancel();
    next = position_;
  }
  position_ = *next;
  lastSpans_.resize(std::min(lastSpans_.size(), static_cast<std::size_t>(start)));
  lastSpans_.insert(lastSpans_.end(), spans.begin(), spans.end());
  const int count = static_cast<int>(executor.plan().instructions.size());
  stoppedBy_ = !reason.empty() ? reason : position_ == count ? "end of step" : "step";
  stoppedAt_ = breakpointId;
  snapshot::Position answer = position();
  for (const Span& span : spans) {
    auto& s = *answer.add_spans();
    s.set_instruction(span.instruction);
    s.set_node(executor.plan().instructions[static_cast<std::size_t>(span.instruction)].node.index);
    s.set_begin_ns(span.begin);
    s.set_end_ns(span.end);
  }
  return answer;
}

// A short way back is undone. A long one is forward from the start of the step: parameters as they were, the same batch, the same
// random keys, the user's edits.
Result<snapshot::Position> Session::replayTo(int instruction) {
  if (undo_.reaches(instruction, position_)) {
    undo_.undoTo(instruction);
    position_ = instruction;
    lastSpans_.resize(std::min(lastSpans_.size(), static_cast<std::size_t>(instruction)));
    std::erase_if(edits_, [&](const SessionEdit& edit) { return edit.position > instruction; });
    stoppedBy_ = "step";
    stoppedAt_ = 0;
    return position();
  }
  SS_TRY(restoreStepStart());
  SS_TRY(feed(batch_));
  replayed_ += instruction;
  std::fill(expectedInf_.begin(), expectedInf_.end(), false);
  std::erase_if(edits_, [&](const SessionEdit& edit) { return edit.position > instruction; });
  position_ = 0;
  std::vector<int> stops;
  for (const SessionEdit& edit : edits_) stops.push_back(edit.position);
  std::sort(stops.begin(), stops.end());
  stops.erase(std::unique(stops.begin(), stops.end()), stops.end());
  for (const int stop : stops) {
    if (stop > position_) SS_TRY(runRange(stop, false));
    SS_TRY(applyEdits(stop));
  }
  if (instruction > position_) SS_TRY(runRange(instruction, false));
  stoppedBy_ = "step";
  return position();
}

Result<snapshot::Position> Session::runTo(int instruction) {
  if (!inStep_) SS_TRY(beginStep());
  const int count = static_cast<int>(variant_->executor->plan().instructions.size());
  const int target = std::clamp(instruction, 0, count);
  if (target < position_) return replayTo(target);
  return runRange(target, false);
}

Result<snapshot::Position> Session::stepInstructions(int count) {
  if (!inStep_) SS_TRY(beginStep());
  return runTo(position_ + count);
}

Result<snapshot::Position> Session::runToBreak(bool backwards) {
  if (!inStep_) SS_TRY(beginStep());
  const int count = static_cast<int>(variant_->executor->plan().instructions.size());
  if (!backwards) return runRange(count, true);
  // The last break before the present place: replayed once to find it, once more to stand there.
  const int limit = position_;
  int found = 0;
  std::string reason;
  int id = 0;
  SS_TRY(replayTo(0));
  replayed_ += limit;
  while (position_ < limit) {
    SS_ASSIGN(const snapshot::Position stop, runRange(limit, true));
    if (position_ < limit && stop.stopped_by() != "step" && stop.stopped_by() != "end of step") {
      found = position_;
      reason = stop.stopped_by();
      id = stop.breakpoint();
    } else if (position_ >= limit) {
      break;
    }
  }
  SS_TRY(replayTo(found));
  stoppedBy_ = reason.empty() ? "start of step" : reason;
  stoppedAt_ = id;
  return position();
}

Result<snapshot::Position> Session::stepPhase(bool backwards) {
  if (!inStep_) SS_TRY(beginStep());
  const ExecutionPlan& plan = variant_->executor->plan();
  const int count = static_cast<int>(plan.instructions.size());
  int target = backwards ? 0 : count;
  for (const int boundary : {0, plan.firstBackward, plan.firstOptimizer, count}) {
    if (backwards && boundary < position_) target = std::max(target, boundary);
    if (!backwards && boundary > position_) target = std::min(target, boundary);
  }
  return runTo(target);
}

Result<snapshot::StepRecord> Session::finishStep() {
  if (!inStep_) return step();
  SS_TRY(runRange(static_cast<int>(variant_->executor->plan().instructions.size()), false, false));
  const snapshot::StepRecord record = makeRecord(stepBegin_, monotonicNs(), lastSpans_);
  SS_TRY(commit());
  return record;
}

snapshot::Position Session::position() const {
  snapshot::Position p;
  p.set_in_step(inStep_);
  p.set_step(state_.step);
  p.set_instruction(inStep_ ? position_ : 0);
  p.set_stopped_by(stoppedBy_);
  p.set_breakpoint(stoppedAt_);
  if (inStep_ && loss_ && variant_ && variant_->executor->unavailable(loss_, position_).empty()) {
    p.set_loss(elementAsDouble(variant_->executor->view(loss_), 0));
    p.set_has_loss(true);
  }
  for (const ValueId id : watched_) {
    auto data = fetch(id, {}, {}, true, 0);
    if (data) *p.add_watched() = std::move(*data);
  }
  return p;
}

Status Session::setBreakpoints(std::vector<snapshot::Breakpoint> breakpoints) {
  int next = 1;
  for (const snapshot::Breakpoint& b : breakpoints) next = std::max(next, b.id() + 1);
  for (snapshot::Breakpoint& b : breakpoints) {
    if (b.id() == 0) b.set_id(next++);
    if (b.condition_case() == snapshot::Breakpoint::kPredicate) SS_TRY(parsePredicate(b.predicate()));
    if (b.condition_case() == snapshot::Breakpoint::CONDITION_NOT_SET) return invalid(fmt::format("breakpoint {}: no condition; expected one", b.id()));
  }
  breakpoints_ = std::move(breakpoints);
  return {};
}

Result<snapshot::CompareReply> Session::compareBits() {
  if (!variant_) return invalid("compare: nothing was built; build first");
  const StateSnapshot start = [&] {
    (void)abandonStep();
    return state_.copy();
  }();
  SS_ASSIGN(const Batch batch, data_->batch(state_.step));
  SS_TRY(useVariantFor(batch));
  batch_ = batch;
  Executor& executor = *variant_->executor;
  executor.clearCancel();
  const ExecutionPlan& plan = executor.plan();
  // Every value is compared as soon as it is made: buffers are reused later.
  std::vector<Tensor> first(variant_->graph.valueCapacity());
  snapshot::CompareReply reply;
  reply.set_equal(true);
  for (const int round : {0, 1}) {
    SS_TRY(feed(batch));
    Executor::RunOptions options = runOptions();
    options.after = [&](int i) -> Status {
      if (!executor.conditionsHold(i)) return {};  // a branch that did not run made nothing
      for (const int b : plan.instructions[static_cast<std::size_t>(i)].outputs) {
        if (b < 0) continue;
        const ValueId id = plan.buffers[static_cast<std::size_t>(b)].value;
        const TensorView view = executor.view(id);
        if (!view.data) continue;
        if (round == 0) {
          first[at(id)] = Tensor(view.dtype, view.dims, nullptr, view.data).clone();
          continue;
        }
        snapshot::ComparisonResult result = compareTensors(variant_->graph.value(id).name, first[at(id)].view(), view);
        if (!result.equal_bits()) reply.set_equal(false);
        *reply.add_values() = std::move(result);
      }
      return {};
    };
    const auto ran = executor.run(0, static_cast<int>(plan.instructions.size()), options);
    state_.restore(start);
    if (!ran) return tl::make_unexpected(ran.error());
  }
  return reply;
}

}  // namespace stepscope
