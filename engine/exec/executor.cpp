#include "engine/exec/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/exec/clock.h"
#include "engine/exec/device_times.h"
#include "engine/exec/make_kernel.h"
#include "engine/ir/said_by.h"
#include "engine/ops/operators.h"
#include "kernels/index.h"
#include "kernels/subnormals.h"
#include "kernels/threads.h"

namespace stepscope {
namespace {

std::string shapesOf(std::span<const TensorView> operands) {
  std::string text;
  for (const TensorView& operand : operands)
    text +=
        (text.empty() ? "" : ", ") +
        (!operand.present() ? std::string("none") : fmt::format("{} {}", dtypeName(operand.dtype), dimsText(operand.dims)));
  return text;
}

// What a device that is not the CPU says of a kernel or copy does not know what it was called with.
Error withShapes(Error error, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  error.message += fmt::format("; called with {}, for {}", shapesOf(inputs), shapesOf(outputs));
  return error;
}

// A kernel of the host for operands of the device: they are brought and taken back.
Status runOnHost(Device& device, Kernel& kernel, std::span<const TensorView> from, std::span<const TensorView> to,
                 const RandomKey& key) {
  std::vector<Tensor> tensors;
  std::vector<TensorView> inputs, outputs;
  for (const TensorView& view : from) {
    if (!view.present()) {
      inputs.emplace_back();
      continue;
    }
    SS_ASSIGN(Tensor tensor, readTensor(device, view));
    tensors.push_back(std::move(tensor));
    inputs.push_back(tensors.back().view());
  }
  for (const TensorView& view : to) {
    tensors.emplace_back(view.dtype, view.dims);
    outputs.push_back(tensors.back().view());
  }
  SS_TRY(runKernel(kernel, {inputs, outputs, {}, key, 0, {}}));
  for (std::size_t i = 0; i < to.size(); ++i) SS_TRY(writeTensor(device, to[i], outputs[i]));
  return {};
}

}  // namespace

void CollectiveRunner::begin(const Node&, const KernelCall&) { SS_CHECK(false); }
bool CollectiveRunner::hasBegun(const Node&) const { return false; }
Status CollectiveRunner::wait(const Node&) { return {}; }
Status CollectiveRunner::none(const Node& node) {
  return unsupported(fmt::format("{}: nobody runs collectives of a device here; expected the ranks of a run", node.label()));
}

Error Executor::cancelledBefore(int instruction) {
  return {ErrorCode::kCancelled, fmt::format("step: cancelled before instruction {}", instruction)};
}

Status Executor::reserveSaved(int index) {
  const Instruction& instruction = plan_.instructions[at(index)];
  for (std::size_t o = 0; o < instruction.outputs.size(); ++o) {
    if (instruction.outputs[o] < 0 || plan_.buffers[at(plan_.root(instruction.outputs[o]))].home != Home::kState) continue;
    const TensorView& state = instructions_[at(index)].outputs()[o];
    const auto bytes = static_cast<std::int64_t>(state.bytes());
    Saved& saved = saved_[state.data];
    if (saved.contents.bytes() != bytes) {
      SS_ASSIGN(saved.contents, device_.allocate(bytes));
    }
    saved.state = state;
  }
  return {};
}

Status Executor::saveState(int index) {
  activityId = static_cast<std::uint64_t>(index) + 1;
  SS_TRY(reserveSaved(index));
  const Instruction& instruction = plan_.instructions[at(index)];
  for (std::size_t o = 0; o < instruction.outputs.size(); ++o) {
    if (instruction.outputs[o] < 0 || plan_.buffers[at(plan_.root(instruction.outputs[o]))].home != Home::kState) continue;
    const TensorView& state = instructions_[at(index)].outputs()[o];
    SS_TRY(device_.copy(saved_.at(state.data).contents.data(), state.data, static_cast<std::int64_t>(state.bytes()),
                        instruction.stream));
    written_.push_back(state.data);
  }
  return {};
}

Status Executor::restoreState() {
  SS_TRY(device_.synchronise());
  for (const void* address : written_) {
    const Saved& saved = saved_.at(address);
    SS_TRY(device_.copy(saved.state.data, saved.contents.data(), saved.contents.bytes(), 0));
  }
  return device_.synchronise();
}

Status Executor::waitBefore(int index) {
  const Instruction& instruction = plan_.instructions[at(index)];
  activityId = static_cast<std::uint64_t>(index) + 1;
  for (const Wait& wait : instruction.waits) {
    const DeviceEvent& event = *instructions_[at(wait.instruction)].event;
    SS_TRY(wait.host ? device_.synchronise(event) : device_.wait(instruction.stream, event));
  }
  return {};
}

Status Executor::recordAfter(int index) {
  Bound& bound = instructions_[at(index)];
  return bound.event ? device_.record(*bound.event, bound.stream) : Status();
}

// Some of the instructions of a run. After a large kernel nothing of what lies about in memory is in the caches any more,
// nor the places of its pages, nor this code. So what is looked at between two kernels is copied to the stack beforehand,
// without the instructions that do nothing, times are put down there too, and the loop at full speed has nothing in it but
// that.
struct Executor::Laps {
  static constexpr int kMost = 1024,
                       kFew = 32;  // fewer instructions may take too short a time to tell the counter's rate from
  int cancellable = 0, count = 0, done = 0;
  std::array<Lap, kMost> laps;
};

Result<int> Executor::run(int begin, int end, const RunOptions& options) {
  const ThreadScope scope(threads_);
  const SubnormalScope subnormals(options.flushSubnormals, threads_);
  logical_.clear();
  ranUpdate_ = options.update;
  if (begin == 0) written_.clear();
  if (begin == 0 || begin != goesOnAt_)
    nextEarly_ = static_cast<std::size_t>(std::ranges::lower_bound(plan_.early, begin, {}, &EarlyCollective::instruction) -
                                          plan_.early.begin());
  ActivitySource* const source = options.spans && options.rung != ActivityRung::kHost ? activityOf(device_) : nullptr;
  const std::size_t before = options.spans ? options.spans->size() : 0;
  if (source) source->startActivity(options.rung);
  const bool hasGraphs = graphsOf(device_) != nullptr;
  if (hasGraphs) findPieces();
  if (begin == 0) issue_ = {};
  const std::string against = hasGraphs ? reasonAgainstGraphs(begin, end, options) : std::string();
  const bool graphs = hasGraphs && against.empty();
  Result<int> reached = options.before || options.after ? runListened(begin, end, options)
                        : graphs                        ? runGraphs(begin, end, options)
                                                        : runAll(begin, end, options);
  activityId = 0;
  goesOnAt_ = reached && options.collectives && !options.before ? *reached : -1;
  if (options.collectives && (!reached || !options.leavesRunning)) options.collectives->settle();
  if (reached && !device_.facts().immediate)
    if (Status status = device_.synchronise(); !status) reached = tl::make_unexpected(std::move(status.error()));
  if (options.collectives && plan_.deviceRanks)
    if (Status ended = options.collectives->ended(); !ended) reached = tl::make_unexpected(std::move(ended.error()));
  if (source) {
    Activity activity = source->takeActivity();
    placeOnHostClock(activity, std::span(*options.spans).subspan(before));
    if (options.activity) append(*options.activity, std::move(activity));
  }
  if (reached && hasGraphs && !graphs) noteIssued(begin, *reached, options, against);
  if (!reached && !written_.empty())
    if (const Status restored = restoreState(); !restored)
      reached.error().message += "; and the state could not be put back: " + restored.error().message;
  return reached;
}

Result<int> Executor::runAll(int begin, int end, const RunOptions& options) {
  const bool timed = options.spans != nullptr;
  const std::uint8_t left = options.update ? 0 : kUpdateOnly;
  const bool beside = beginsEarly(options);
  const std::uint8_t special = kConditional | kOrdered | (options.restoreState ? kSaves : 0) | (beside ? kBegins : 0);
  Laps some;
  for (int first = begin; first < end; first += Laps::kMost) {
    const int behind = std::min(end, first + Laps::kMost);
    some.cancellable = some.count = some.done = 0;
    for (int i = first; i < behind; ++i) {
      const std::uint8_t todo = todo_[at(i)];
      const bool skipped = !(todo & kKernel) || (todo & left);
      if (skipped && !(todo & special & (kOrdered | kBegins))) continue;
      some.laps[at(some.count++)] = {0, 0, i, static_cast<std::uint8_t>((todo & special) | (skipped ? kSkipped : 0))};
      if (options.cancel && i < options.cancelBelow) some.cancellable = some.count;
    }
    TickClock clock(timed && some.count > Laps::kFew);
    Status status = !timed                ? runFast(some, options, [] { return std::int64_t{0}; })
                    : clock.usesCounter() ? runFast(some, options, [] { return TickClock::counter(); })
                                          : runFast(some, options, [] { return monotonicNs(); });
    const int reached = some.done < some.count ? some.laps[at(some.done)].instruction : behind;
    if (timed) {
      clock.settle();
      std::int64_t last = clock.beginNs();
      for (int i = first, k = 0; i < reached; ++i) {  // what did nothing took no time
        const bool ran = k < some.done && some.laps[at(k)].instruction == i;
        const std::int64_t from = ran ? clock.ns(some.laps[at(k)].begin) : last;
        if (ran) last = clock.ns(some.laps[at(k++)].end);
        options.spans->push_back({i, from, last});
      }
    }
    if (!status) return tl::make_unexpected(std::move(status.error()));
    if (reached < behind) return reached;
  }
  return end;
}

template <class Now>
Status Executor::runFast(Laps& some, const RunOptions& options, Now now) {
  std::atomic<bool>* const cancel = options.cancel;
  Lap* lap = some.laps.data();
  const Lap* const cancellable = lap + some.cancellable;
  const Lap* const end = lap + some.count;
  for (; lap < end; ++lap) {
    lap->begin = now();  // first of all: what follows waits for memory together with the kernel
    if (lap < cancellable && cancel->load(std::memory_order_relaxed) && cancel->exchange(false)) [[unlikely]] {
      some.done = static_cast<int>(lap - some.laps.data());
      return tl::make_unexpected(cancelledBefore(lap->instruction));
    }
    if (lap->special) [[unlikely]] {
      const Status status = prepare(*lap, options);
      if (!status) {
        some.done = static_cast<int>(lap - some.laps.data());
        return status;
      }
      if (lap->special & kSkipped) {
        lap->end = lap->begin;
        continue;
      }
    }
    if (Status status = runInstruction(lap->instruction, options); !status) [[unlikely]] {
      some.done = static_cast<int>(lap - some.laps.data());
      return status;
    }
    if (lap->special & kOrdered) [[unlikely]] {
      if (Status status = recordAfter(lap->instruction); !status) {
        some.done = static_cast<int>(lap - some.laps.data());
        return status;
      }
    }
    lap->end = now();
  }
  some.done = some.count;
  return {};
}

// Waits, looks at the conditions, saves state. Events are recorded whether the instruction runs or not, because what waits
// for it waits for all that is on its stream.
Status Executor::prepare(Lap& lap, const RunOptions& options) {
  if (lap.special & kBegins) beginEarly(lap.instruction, options);
  if (lap.special & kOrdered) SS_TRY(waitBefore(lap.instruction));
  if (lap.special & kConditional && !(lap.special & kSkipped) && !conditionsHold(lap.instruction)) lap.special |= kSkipped;
  if (lap.special & kSkipped) return lap.special & kOrdered ? recordAfter(lap.instruction) : Status();
  return lap.special & kSaves ? saveState(lap.instruction) : Status();
}

bool Executor::beginsEarly(const RunOptions& options) const {
  return !plan_.early.empty() && options.collectives && options.collectives->beside();
}

// Their order is that of all ranks: none overtakes another one.
void Executor::beginEarly(int index, const RunOptions& options) {
  for (; nextEarly_ < plan_.early.size() && plan_.early[nextEarly_].begins <= index; ++nextEarly_) {
    const int which = plan_.early[nextEarly_].instruction;
    if (!options.update && (todo_[at(which)] & kUpdateOnly)) continue;
    if (options.begins) options.begins(which);
    Bound& bound = instructions_[at(which)];
    options.collectives->begin(graph_.node(plan_.instructions[at(which)].node),
                               KernelCall{bound.inputs(), bound.outputs(), bound.workspace, {}, bound.stream, {}});
  }
}

// With somebody who looks, or may stop, at every instruction.
Result<int> Executor::runListened(int begin, int end, const RunOptions& options) {
  std::int64_t last = monotonicNs();
  const bool beside = !options.before && beginsEarly(options);
  for (int i = begin; i < end; ++i) {
    if (options.cancel && i < options.cancelBelow && options.cancel->exchange(false))
      return tl::make_unexpected(cancelledBefore(i));
    if (options.before && !options.before(i)) return i;
    const bool skipped = !options.update && (todo_[at(i)] & kUpdateOnly);
    Span span{i, last, last};
    if (beside && todo_[at(i)] & kBegins) beginEarly(i, options);
    if (todo_[at(i)] & kOrdered) SS_TRY(waitBefore(i));
    if (todo_[at(i)] & kKernel && !skipped && conditionsHold(i)) {
      if (options.restoreState && todo_[at(i)] & kSaves) SS_TRY(saveState(i));
      span.begin = monotonicNs();
      SS_TRY(runInstruction(i, options));
      span.end = monotonicNs();
    }
    if (todo_[at(i)] & kOrdered) SS_TRY(recordAfter(i));
    if (options.spans) options.spans->push_back(span);
    if (options.after) SS_TRY(options.after(i));
    logical_.clear();  // copies that were looked at meanwhile
    last = monotonicNs();
  }
  return end;
}

Status Executor::runInstruction(int index, const RunOptions& options) {
  if (!options.marks) [[likely]]
    return runPlain(index, options);
  options.marks->begin(index);
  Status status = runPlain(index, options);
  options.marks->end();
  return status;
}

Status Executor::runPlain(int index, const RunOptions& options) {
  Bound& bound = instructions_[at(index)];
  activityId = static_cast<std::uint64_t>(index) + 1;
  const RandomKey key{options.key.seed, options.key.step, bound.randomNode};
  if (bound.copies) return runCopy(index);
  if (bound.byDevice) {
    const Node& node = graph_.node(plan_.instructions[at(index)].node);
    if (!options.collectives) {
      if (Status status = runOnHost(device_, *bound.kernel, bound.inputs(), bound.outputs(), key); !status)
        return tl::make_unexpected(saidBy(node, status.error()));
      return {};
    }
    return options.collectives->putOnDevice(node, {bound.inputs(), bound.outputs(), {}, key, bound.stream, {}});
  }
  if (!bound.kernel) {
    if (bound.collective && options.collectives) [[unlikely]]
      return unsupported(
          fmt::format("{}: its extents follow from data and may differ between ranks; expected extents that "
                      "are known before the step runs",
                      graph_.node(plan_.instructions[at(index)].node).label()));
    return runDynamic(index, key);
  }
  const KernelCall call{bound.inputs(), bound.outputs(), bound.workspace, key, bound.stream, {}};
  if (bound.collective && options.collectives) [[unlikely]] {
    const Node& node = graph_.node(plan_.instructions[at(index)].node);
    return options.collectives->hasBegun(node) ? options.collectives->wait(node) : options.collectives->run(node, call);
  }
  if (Status status = bound.device->launch(*bound.kernel, call); !status) {
    Error error = saidBy(graph_.node(plan_.instructions[at(index)].node), status.error());
    const bool elsewhere = bound.device->facts().space == Space::kDevice;
    return tl::make_unexpected(elsewhere ? withShapes(std::move(error), bound.inputs(), bound.outputs()) : std::move(error));
  }
  return {};
}

Status Executor::runCopy(int index) {
  const Instruction& instruction = plan_.instructions[at(index)];
  const Buffer &from = plan_.buffers[at(instruction.inputs[0])], &to = plan_.buffers[at(instruction.outputs[0])];
  const bool dynamic = from.home == Home::kDynamic;
  const TensorView made = dynamic ? viewOf(instruction.inputs[0]) : TensorView();
  const TensorView &source = dynamic ? made : instructions_[at(index)].inputs()[0],
                   &target = instructions_[at(index)].outputs()[0];
  if (source.bytes() != target.bytes())
    return invalid(
        fmt::format("{}: {} bytes; expected {}", instructionLabel(plan_, graph_, index), source.bytes(), target.bytes()));
  if (from.layout == to.layout) {
    Status copied = device_.copy(target.data, source.data, static_cast<std::int64_t>(target.bytes()), instruction.stream);
    if (copied) return {};
    Error error = std::move(copied).error();
    error.message = fmt::format("{}: {}", instructionLabel(plan_, graph_, index), error.message);
    return tl::make_unexpected(withShapes(std::move(error), std::span(&source, 1), std::span(&target, 1)));
  }
  if (from.space == Space::kDevice || to.space == Space::kDevice)
    return unsupported(fmt::format("{}: it is laid out as {}; expected {}", instructionLabel(plan_, graph_, index),
                                   layoutName(from.layout), layoutName(to.layout)));
  reorderLayout(source.data, from.layout, target.data, to.layout, target.dtype, target.dims);
  return {};
}

Status Executor::runDynamic(int index, const RandomKey& key) {
  const Instruction& instruction = plan_.instructions[at(index)];
  const Node& node = dynamicGraph_->node(instruction.node);
  const auto label = [&] { return node.label() + ": "; };
  std::vector<TensorView> inputs, outputs;
  KernelSpec spec = instruction.spec();
  for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
    TensorView view = viewOf(instruction.inputs[i]);
    if (instruction.inputs[i] >= 0 && !view.present()) {
      // It stands in a branch that did not run, and is not read; its type is known all the same.
      view.dtype = graph_.value(node.inputs[i]).type.dtype;
      inputs.push_back(view);
      dynamicGraph_->mutableValue(node.inputs[i]).type.shape = std::nullopt;
      dynamicInference_->setConstant(node.inputs[i], nullptr);
      spec.inputs[i] = {view.dtype, view.dims, false, {}};
      continue;
    }
    inputs.push_back(view);
    if (instruction.inputs[i] < 0) continue;
    // Borrowed for the time of the call: the inference and the kernel look at contents only while it runs.
    const auto borrowed = std::make_shared<const Tensor>(view.dtype, view.dims, std::shared_ptr<const void>(), view.data);
    Value& value = dynamicGraph_->mutableValue(node.inputs[i]);
    value.type.shape = shapeOf(view.dims);
    dynamicInference_->setConstant(value.id, borrowed);
    spec.inputs[i] = {view.dtype, view.dims, false, *borrowed};
  }
  SS_TRY(dynamicInference_->inferNode(node.id));
  const OpDef* op = operators_.ops.find(node);
  for (std::size_t o = 0; o < instruction.outputs.size(); ++o) {
    const int buffer = instruction.outputs[o];
    if (buffer < 0) {
      outputs.emplace_back();
      continue;
    }
    const Value& value = dynamicGraph_->value(node.outputs[o]);
    const auto dims = value.type.shape ? knownDims(*value.type.shape) : std::nullopt;
    if (plan_.buffers[at(buffer)].home == Home::kDynamic) {
      if (op && op->dataDependentShape) {
        spec.outputs[o] = {value.type.dtype, {}, true, {}};
        outputs.push_back({});
        continue;
      }
      if (!dims)
        return unsupported(label() + fmt::format("extents of '{}' are {}; expected numbers", value.name, value.type.text()));
      SS_TRY(checkedElementCount(*dims));
      dynamic_[buffer] = Tensor(value.type.dtype, *dims);
    } else if (dims && *dims != viewOf(buffer).dims) {
      return invalid(label() + fmt::format("'{}' is {} now; the plan was made for {}", value.name, dimsText(*dims),
                                           dimsText(viewOf(buffer).dims)));
    }
    outputs.push_back(viewOf(buffer));
    spec.outputs[o] = {outputs.back().dtype, outputs.back().dims, false, {}};
  }
  auto made = makeKernel(operators_.kernels, kernelsFor(instruction), spec, plan_.anyThreads);
  if (!made) return tl::make_unexpected(saidBy(node, made.error()));
  determinism_[at(index)] = saidOnce(made->determinism);
  std::vector<std::byte> workspace(made->kernel->workspaceBytes() + 64);
  const auto pad = (64 - reinterpret_cast<std::uintptr_t>(workspace.data()) % 64) % 64;
  KernelCall call{inputs, outputs, std::span(workspace).subspan(pad), key, 0, {}};
  call.allocate = [&](std::size_t o, Dims dims) -> Status {
    SS_TRY(checkedElementCount(dims));
    Tensor& made = dynamic_[instruction.outputs[o]];
    made = Tensor(spec.outputs[o].dtype, std::move(dims));
    outputs[o] = made.view();
    return {};
  };
  if (Status status = made->kernel->run(call); !status) return tl::make_unexpected(saidBy(node, status.error()));
  std::erase_if(dynamic_, [&](const auto& entry) { return plan_.buffers[at(entry.first)].last < index; });
  std::int64_t live = 0;
  for (const auto& [buffer, tensor] : dynamic_) live += static_cast<std::int64_t>(tensor.bytes());
  dynamicPeak_ = std::max(dynamicPeak_, live);
  return {};
}

}  // namespace stepscope
