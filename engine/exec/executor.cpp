#include "engine/exec/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/exec/clock.h"
#include "engine/ops/op_def.h"
#include "engine/plan/fits.h"
#include "kernels/threads.h"

namespace stepscope {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }
std::size_t at(ValueId id) { return static_cast<std::size_t>(id.index); }

// Kernels begin their messages with the op, which the label of the node says already.
std::string withLabel(const Node& node, const std::string& message) {
  const std::string op = node.op + ": ";
  return node.label() + ": " + (message.starts_with(op) ? message.substr(op.size()) : message);
}

// What stands between the first write of state and the end of a step: ops whose kernels only compute, so that they answer no
// error for operands that fit their spec.
constexpr std::array<std::string_view, 14> kOnlyCompute = {
    "Accumulate", "Add", "AdamUpdate", "AdamUpdates", "Div",        "LambUpdate", "Max",
    "Min",        "Mul", "Pointwise",  "SgdUpdate",   "SgdUpdates", "Sqrt",       "Sum"};

Status cancelledBefore(int instruction) {
  return fail(ErrorCode::kCancelled, fmt::format("step: cancelled before instruction {}", instruction));
}

// All kernels of a plan are made for the same number.
int threadsOf(const ExecutionPlan& plan) {
  for (const Instruction& instruction : plan.instructions)
    if (!instruction.view) return instruction.spec.threads;
  return 1;
}

}  // namespace

Executor::Executor(const Graph& graph, ExecutionPlan plan, std::function<Tensor(ValueId)> state, Backend backend,
                   Device* device)
    : graph_(graph),
      plan_(std::move(plan)),
      state_(std::move(state)),
      backend_(backend),
      device_(device ? *device : cpuDevice()) {
  SS_CHECK(device_.facts().space == plan_.space);
}

Status Executor::bind(bool reuse, std::int64_t memoryLimit) {
  const ThreadScope scope(threadsOf(plan_));
  const std::size_t count = plan_.instructions.size();
  instructions_.resize(count);
  implementations_.assign(count, "");
  bool anyDynamic = false;
  for (std::size_t i = 0; i < count; ++i) {
    Instruction& instruction = plan_.instructions[i];
    const Node& node = graph_.node(instruction.node);
    instructions_[i].randomNode = static_cast<std::uint32_t>(std::max(0, node.provenance.imported.index));
    instructions_[i].device = &deviceOf(instruction);
    instructions_[i].stream = instruction.stream;
    if (instruction.kind != InstructionKind::kKernel) {
      instructions_[i].copies = true;
      implementations_[i] = instruction.kind == InstructionKind::kCopy ? "copy" : "commit";
      continue;
    }
    if (instruction.view) {
      implementations_[i] = "view";
      continue;
    }
    if (instruction.dynamic) {
      implementations_[i] = "chosen at run time";
      anyDynamic = true;
      continue;
    }
    const std::int64_t begin = monotonicNs();
    auto kernel = makeKernel(backend_, instruction.spec);
    if (!kernel) return fail(kernel.error().code, withLabel(node, kernel.error().message));
    instructions_[i].kernel = std::move(*kernel);
    implementations_[i] = instructions_[i].kernel->implementation();
    bound_.push_back({node.id, implementations_[i], monotonicNs() - begin});
    if (const auto bytes = static_cast<std::int64_t>(instructions_[i].kernel->workspaceBytes()); bytes > 0)
      addWorkspace(plan_, i, bytes);
  }
  packArena(plan_, graph_, reuse);
  if (memoryLimit > 0) SS_TRY(checkFits(plan_, memoryLimit));
  SS_TRY(allocateMemory());
  for (std::size_t i = 0; i < count; ++i) {
    const Instruction& instruction = plan_.instructions[i];
    Bound& bound = instructions_[i];
    for (const int b : instruction.inputs) bound.inputs.push_back(viewOf(b));
    for (const int b : instruction.outputs) bound.outputs.push_back(viewOf(b));
    if (instruction.workspace >= 0) {
      const Buffer& workspace = plan_.buffers[at(instruction.workspace)];
      std::byte* const arena = workspace.space == plan_.space ? arena_.data() : hostArena_.data();
      bound.workspace = {arena + workspace.offset, static_cast<std::size_t>(workspace.bytes)};
    }
    for (const auto& [buffer, expected] : instruction.predicates) {
      const TensorView view = viewOf(buffer);
      if (view.dtype != DType::kBool)
        return invalid(
            fmt::format("condition '{}': {}; expected bool", plan_.buffers[at(buffer)].name, dtypeName(view.dtype)));
      bound.predicates.emplace_back(static_cast<const bool*>(view.data), expected);
    }
    todo_.push_back(static_cast<std::uint8_t>((instruction.view ? kNothing : kKernel) |
                                              (instruction.updateEntry ? kUpdateOnly : 0) |
                                              (bound.predicates.empty() ? 0 : kConditional)));
  }
  SS_TRY(bindEvents());
  findSaves();
  if (anyDynamic) {
    dynamicGraph_ = std::make_unique<Graph>(graph_);
    dynamicInference_ = std::make_unique<Inference>(*dynamicGraph_, InferOptions{.foldElements = -1});
  }
  return {};
}

Status Executor::bindEvents() {
  SS_TRY(device_.needStreams(plan_.streams));
  for (std::size_t i = 0; i < plan_.instructions.size(); ++i)
    for (const Wait& wait : plan_.instructions[i].waits) {
      todo_[i] |= kOrdered;
      todo_[at(wait.instruction)] |= kOrdered;
      if (auto& event = instructions_[at(wait.instruction)].event; !event) {
        SS_ASSIGN(event, device_.makeEvent());
      }
    }
  return {};
}

// State that is written while something that may fail is still to come has to be saved at full speed. The plan puts what
// writes state at the end, and updates cannot fail, so that of most plans nothing is saved.
void Executor::findSaves() {
  bool laterMayFail = false;
  for (std::size_t i = plan_.instructions.size(); i-- > 0;) {
    const Instruction& instruction = plan_.instructions[i];
    if (instruction.view) continue;
    const Bound& bound = instructions_[i];
    const bool onlyComputes = std::find(kOnlyCompute.begin(), kOnlyCompute.end(), instruction.spec.op) != kOnlyCompute.end();
    laterMayFail |= instruction.dynamic || (bound.kernel && !onlyComputes) || !device_.facts().immediate;
    for (const int out : instruction.outputs)
      if (laterMayFail && out >= 0 && plan_.buffers[at(plan_.root(out))].home == Home::kState) todo_[i] |= kSaves;
  }
}

Status Executor::saveState(int index) {
  const Instruction& instruction = plan_.instructions[at(index)];
  for (std::size_t o = 0; o < instruction.outputs.size(); ++o) {
    if (instruction.outputs[o] < 0 || plan_.buffers[at(plan_.root(instruction.outputs[o]))].home != Home::kState) continue;
    const TensorView& state = instructions_[at(index)].outputs[o];
    const auto bytes = static_cast<std::int64_t>(state.bytes());
    Saved& saved = saved_[state.data];
    if (saved.contents.bytes() != bytes) {
      SS_ASSIGN(saved.contents, device_.allocate(bytes));
    }
    saved.state = state;
    SS_TRY(device_.copy(saved.contents.data(), state.data, bytes, instruction.stream));
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

Status Executor::allocateMemory() {
  SS_ASSIGN(arena_, device_.allocate(plan_.arenaBytes));
  SS_ASSIGN(hostArena_, cpuDevice().allocate(plan_.hostArenaBytes));
  inputs_.resize(plan_.buffers.size());
  dynamic_.resize(plan_.buffers.size());
  constants_.resize(plan_.buffers.size());
  for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
    const Buffer& buffer = plan_.buffers[b];
    if (buffer.shares >= 0 || !buffer.value) continue;
    if (buffer.home == Home::kConstant && buffer.space == Space::kDevice) {
      const Tensor& constant = *graph_.value(buffer.value).data;
      SS_ASSIGN(constants_[b], makeTensor(device_, constant.dtype(), constant.dims()));
      SS_TRY(writeTensor(device_, constants_[b].view(), constant.view()));
    }
    if (buffer.home != Home::kInput) continue;
    const ValueType& type = graph_.value(buffer.value).type;
    const auto dims = type.shape ? knownDims(*type.shape) : std::nullopt;
    if (!dims) return invalid(fmt::format("input '{}': {}; expected numbers for every extent", buffer.name, type.text()));
    inputs_[b] = Tensor(type.dtype, *dims);
  }
  if (plan_.space == Space::kHost) return {};
  copyInstructionOf_.assign(graph_.valueCapacity(), -1);
  for (std::size_t i = 0; i < plan_.instructions.size(); ++i)
    if (const Instruction& copy = plan_.instructions[i]; copy.kind == InstructionKind::kCopy)
      copyInstructionOf_[at(plan_.buffers[at(copy.outputs[0])].value)] = static_cast<int>(i);
  return {};
}

TensorView Executor::viewOf(int buffer) const {
  if (buffer < 0) return {};
  const Buffer& b = plan_.buffers[at(buffer)];
  const ValueType& type = graph_.value(b.value).type;
  TensorView view;
  view.dtype = type.dtype;
  const Buffer& root = plan_.buffers[at(plan_.root(buffer))];
  if (type.shape) view.dims = knownDims(*type.shape).value_or(Dims{});
  switch (root.home) {
    case Home::kArena: view.data = (b.space == plan_.space ? arena_ : hostArena_).data() + b.offset; break;
    case Home::kState: {
      const Tensor tensor = state_(root.value);
      view.data = tensor.data();
      if (b.value == root.value) view.dims = tensor.dims();
      break;
    }
    case Home::kConstant: {
      const Tensor& made = constants_[at(plan_.root(buffer))];
      const Tensor& tensor = made.valid() ? made : *graph_.value(root.value).data;
      view.data = tensor.data();
      if (b.value == root.value) view.dims = tensor.dims();
      break;
    }
    case Home::kInput: view.data = inputs_[at(plan_.root(buffer))].data(); break;
    case Home::kDynamic: return dynamic_[at(plan_.root(buffer))].view();
  }
  return view;
}

TensorView Executor::view(ValueId id) const {
  if (!id || at(id) >= plan_.bufferOfValue.size() || plan_.bufferOfValue[at(id)] < 0) return {};
  const int index = plan_.bufferOfValue[at(id)];
  TensorView view = viewOf(index);
  const Layout layout = plan_.buffers[at(index)].layout;
  if (layout == Layout::kPlain || view.data == nullptr || plan_.buffers[at(index)].space == Space::kDevice) return view;
  Tensor& copy = logical_[index];
  if (!copy.valid()) copy = Tensor(view.dtype, view.dims);
  // Every time: stepping back restores memory behind our back.
  reorderLayout(view.data, layout, copy.data(), Layout::kPlain, view.dtype, view.dims);
  view.data = copy.data();
  return view;
}

Result<Tensor> Executor::read(ValueId id) const {
  const int index = id && at(id) < plan_.bufferOfValue.size() ? plan_.bufferOfValue[at(id)] : -1;
  const TensorView found = viewOf(index);
  if (!found.present()) {
    const bool known = id && at(id) < graph_.valueCapacity();
    return fail(ErrorCode::kNotFound, fmt::format("value '{}': it has no memory now", known ? graph_.value(id).name : ""));
  }
  const Buffer& buffer = plan_.buffers[at(index)];
  if (buffer.space == Space::kHost) return Tensor(found.dtype, found.dims, nullptr, view(id).data);
  SS_ASSIGN(const Tensor there, readTensor(device_, found));
  Tensor& copy = logical_[index];
  if (!copy.valid()) copy = Tensor(found.dtype, found.dims);
  reorderLayout(there.data(), buffer.layout, copy.data(), Layout::kPlain, found.dtype, found.dims);
  return copy;
}

Status Executor::write(ValueId id, const TensorView& contents, int position) {
  const int index = id && at(id) < plan_.bufferOfValue.size() ? plan_.bufferOfValue[at(id)] : -1;
  const TensorView target = viewOf(index);
  if (!target.data || target.dtype != contents.dtype || target.bytes() != contents.bytes())
    return invalid(fmt::format("value '{}': it has no memory now", id ? graph_.value(id).name : ""));
  if (contents.bytes() == 0) return {};
  SS_TRY(writeBuffer(index, contents));
  const int copy = copyInstructionOf_.empty() ? -1 : copyInstructionOf_[at(id)];
  if (copy < 0 || copy >= position) return {};
  const int made = plan_.instructions[at(copy)].outputs[0];
  return plan_.buffers[at(plan_.root(made))].last >= position ? writeBuffer(made, contents) : Status();
}

Status Executor::writeBuffer(int buffer, const TensorView& contents) {
  const Buffer& b = plan_.buffers[at(buffer)];
  const TensorView target = viewOf(buffer);
  if (b.space == Space::kHost) {
    reorderLayout(contents.data, Layout::kPlain, target.data, b.layout, target.dtype, target.dims);
    return {};
  }
  if (b.layout == Layout::kPlain) return writeTensor(device_, target, contents);
  const Tensor laidOut(target.dtype, target.dims);
  reorderLayout(contents.data, Layout::kPlain, laidOut.data(), b.layout, target.dtype, target.dims);
  return writeTensor(device_, target, laidOut.view());
}

std::string Executor::unavailable(ValueId id, int position) const {
  if (!id || at(id) >= plan_.bufferOfValue.size() || plan_.bufferOfValue[at(id)] < 0)
    return "the plan does not compute it: folded, fused or not needed for the loss";
  const int index = plan_.bufferOfValue[at(id)];
  const Value& value = graph_.value(id);
  if (value.role != ValueRole::kNodeOutput) return {};
  const int producer = plan_.instructionOf(value.producer);
  if (position <= producer) return fmt::format("not computed yet: instruction {} makes it", producer);
  if (!conditionsHold(producer)) return "its branch of If did not run";
  if (overwritten_.empty()) overwritten_ = overwritten(plan_);
  const Overwritten& lost = overwritten_[at(index)];
  if (lost.instruction < 0 || lost.instruction >= position) return {};
  const Buffer& by = plan_.buffers[at(lost.by)];
  if (by.bufferClass == BufferClass::kWorkspace)
    return fmt::format("its memory was reused as workspace by instruction {}; pin it to keep it", lost.instruction);
  return fmt::format("its memory was reused by '{}' at instruction {}; pin it to keep it", by.name, lost.instruction);
}

Status Executor::setInput(ValueId id, const TensorView& view) {
  const int buffer = plan_.bufferOfValue[at(id)];
  if (buffer < 0) return {};  // the plan does not read this input
  const Tensor& target = inputs_[at(buffer)];
  if (view.dtype != target.dtype() || view.dims != target.dims())
    return invalid(fmt::format("input '{}': found {}{}; expected {}{}", plan_.buffers[at(buffer)].name,
                               dtypeName(view.dtype), dimsText(view.dims), dtypeName(target.dtype()),
                               dimsText(target.dims())));
  if (view.dtype == DType::kString)
    std::copy(view.as<std::string>().begin(), view.as<std::string>().end(), target.as<std::string>().begin());
  else if (target.bytes() > 0)
    std::memcpy(target.data(), view.data, target.bytes());
  return {};
}

bool Executor::writtenMemory(int instruction, std::vector<std::span<std::byte>>& memory) const {
  memory.clear();
  if (plan_.instructions[at(instruction)].view) return true;
  if (plan_.instructions[at(instruction)].dynamic) return false;
  const Bound& bound = instructions_[at(instruction)];
  for (const TensorView& output : bound.outputs) {
    if (!output.present()) continue;
    if (output.dtype == DType::kString) return false;
    memory.emplace_back(static_cast<std::byte*>(output.data), output.data ? output.bytes() : 0);
  }
  if (!bound.workspace.empty()) memory.push_back(bound.workspace);
  return true;
}

bool Executor::conditionsHold(int instruction) const {
  for (const auto& [condition, expected] : instructions_[at(instruction)].predicates)
    if (*condition != expected) return false;
  return true;
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
  const ThreadScope scope(threadsOf(plan_));
  logical_.clear();
  if (begin == 0) written_.clear();
  Result<int> reached = options.before || options.after ? runListened(begin, end, options) : runAll(begin, end, options);
  if (reached && !device_.facts().immediate)
    if (Status status = device_.synchronise(); !status) reached = tl::make_unexpected(std::move(status.error()));
  if (!reached && !written_.empty())
    if (const Status restored = restoreState(); !restored)
      reached.error().message += "; and the state could not be put back: " + restored.error().message;
  return reached;
}

Result<int> Executor::runAll(int begin, int end, const RunOptions& options) {
  const bool timed = options.spans != nullptr;
  const std::uint8_t left = options.update ? 0 : kUpdateOnly;
  const std::uint8_t special = kConditional | kOrdered | (options.restoreState ? kSaves : 0);
  Laps some;
  for (int first = begin; first < end; first += Laps::kMost) {
    const int behind = std::min(end, first + Laps::kMost);
    some.cancellable = some.count = some.done = 0;
    for (int i = first; i < behind; ++i) {
      const std::uint8_t todo = todo_[at(i)];
      const bool skipped = !(todo & kKernel) || (todo & left);
      if (skipped && !(todo & kOrdered)) continue;
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
      return cancelledBefore(lap->instruction);
    }
    if (lap->special) [[unlikely]] {
      const Status status = prepare(*lap);
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
Status Executor::prepare(Lap& lap) {
  if (lap.special & kOrdered) SS_TRY(waitBefore(lap.instruction));
  if (lap.special & kConditional && !(lap.special & kSkipped) && !conditionsHold(lap.instruction)) lap.special |= kSkipped;
  if (lap.special & kSkipped) return lap.special & kOrdered ? recordAfter(lap.instruction) : Status();
  return lap.special & kSaves ? saveState(lap.instruction) : Status();
}

// With somebody who looks, or may stop, at every instruction.
Result<int> Executor::runListened(int begin, int end, const RunOptions& options) {
  std::int64_t last = monotonicNs();
  for (int i = begin; i < end; ++i) {
    if (options.cancel && i < options.cancelBelow && options.cancel->exchange(false))
      return tl::make_unexpected(cancelledBefore(i).error());
    if (options.before && !options.before(i)) return i;
    const bool skipped = !options.update && (todo_[at(i)] & kUpdateOnly);
    Span span{i, last, last};
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
  Bound& bound = instructions_[at(index)];
  const RandomKey key{options.key.seed, options.key.step, bound.randomNode};
  if (bound.copies) return runCopy(index);
  if (!bound.kernel) return runDynamic(index, key);
  const KernelCall call{bound.inputs, bound.outputs, bound.workspace, key, {}};
  if (Status status = bound.device->launch(*bound.kernel, call); !status)
    return fail(status.error().code, withLabel(graph_.node(plan_.instructions[at(index)].node), status.error().message));
  return {};
}

Status Executor::runCopy(int index) {
  const Instruction& instruction = plan_.instructions[at(index)];
  const Buffer &from = plan_.buffers[at(instruction.inputs[0])], &to = plan_.buffers[at(instruction.outputs[0])];
  const bool dynamic = from.home == Home::kDynamic;
  const TensorView made = dynamic ? viewOf(instruction.inputs[0]) : TensorView();
  const TensorView &source = dynamic ? made : instructions_[at(index)].inputs[0],
                   &target = instructions_[at(index)].outputs[0];
  if (source.bytes() != target.bytes())
    return invalid(
        fmt::format("{}: {} bytes; expected {}", instructionLabel(plan_, graph_, index), source.bytes(), target.bytes()));
  if (from.layout == to.layout)
    return device_.copy(target.data, source.data, static_cast<std::int64_t>(target.bytes()), instruction.stream);
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
  KernelSpec spec = instruction.spec;
  for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
    const TensorView view = viewOf(instruction.inputs[i]);
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
  const OpDef* op = findOp(node.domain, node.op);
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
      dynamic_[at(buffer)] = Tensor(value.type.dtype, *dims);
    } else if (dims && *dims != viewOf(buffer).dims) {
      return invalid(label() + fmt::format("'{}' is {} now; the plan was made for {}", value.name, dimsText(*dims),
                                           dimsText(viewOf(buffer).dims)));
    }
    outputs.push_back(viewOf(buffer));
    spec.outputs[o] = {outputs.back().dtype, outputs.back().dims, false, {}};
  }
  auto kernel = makeKernel(backend_, spec);
  if (!kernel) return fail(kernel.error().code, withLabel(node, kernel.error().message));
  std::vector<std::byte> workspace((*kernel)->workspaceBytes() + 64);
  const auto pad = (64 - reinterpret_cast<std::uintptr_t>(workspace.data()) % 64) % 64;
  KernelCall call{inputs, outputs, std::span(workspace).subspan(pad), key, {}};
  call.allocate = [&](std::size_t o, Dims dims) -> Status {
    SS_TRY(checkedElementCount(dims));
    dynamic_[at(instruction.outputs[o])] = Tensor(spec.outputs[o].dtype, std::move(dims));
    outputs[o] = dynamic_[at(instruction.outputs[o])].view();
    return {};
  };
  if (Status status = (*kernel)->run(call); !status)
    return fail(status.error().code, withLabel(node, status.error().message));
  std::int64_t live = 0;
  for (std::size_t b = 0; b < dynamic_.size(); ++b) {
    if (plan_.buffers[b].home == Home::kDynamic && plan_.buffers[b].last < index) dynamic_[b] = Tensor();
    if (dynamic_[b].valid()) live += static_cast<std::int64_t>(dynamic_[b].bytes());
  }
  dynamicPeak_ = std::max(dynamicPeak_, live);
  return {};
}

}  // namespace stepscope
