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

Executor::Executor(const Graph& graph, ExecutionPlan plan, std::function<Tensor(ValueId)> state, Backend backend)
    : graph_(graph), plan_(std::move(plan)), state_(std::move(state)), backend_(backend) {}

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
  SS_TRY(arena_.reserve(plan_.arenaBytes));
  inputs_.resize(plan_.buffers.size());
  dynamic_.resize(plan_.buffers.size());
  for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
    const Buffer& buffer = plan_.buffers[b];
    if (buffer.home != Home::kInput || buffer.shares >= 0 || !buffer.value) continue;
    const ValueType& type = graph_.value(buffer.value).type;
    const auto dims = type.shape ? knownDims(*type.shape) : std::nullopt;
    if (!dims) return invalid(fmt::format("input '{}': {}; expected numbers for every extent", buffer.name, type.text()));
    inputs_[b] = Tensor(type.dtype, *dims);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Instruction& instruction = plan_.instructions[i];
    Bound& bound = instructions_[i];
    for (const int b : instruction.inputs) bound.inputs.push_back(viewOf(b));
    for (const int b : instruction.outputs) bound.outputs.push_back(viewOf(b));
    if (instruction.workspace >= 0) {
      const Buffer& workspace = plan_.buffers[at(instruction.workspace)];
      bound.workspace = {arena_.data() + workspace.offset, static_cast<std::size_t>(workspace.bytes)};
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
  if (anyDynamic) {
    dynamicGraph_ = std::make_unique<Graph>(graph_);
    dynamicInference_ = std::make_unique<Inference>(*dynamicGraph_, InferOptions{.foldElements = -1});
  }
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
    case Home::kArena: view.data = arena_.data() + b.offset; break;
    case Home::kState: {
      const Tensor tensor = state_(root.value);
      view.data = tensor.data();
      if (b.value == root.value) view.dims = tensor.dims();
      break;
    }
    case Home::kConstant: {
      const Tensor& tensor = *graph_.value(root.value).data;
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
  if (layout == Layout::kPlain || view.data == nullptr) return view;
  Tensor& copy = logical_[index];
  if (!copy.valid()) copy = Tensor(view.dtype, view.dims);
  // Every time: stepping back restores memory behind our back.
  reorderLayout(view.data, layout, copy.data(), Layout::kPlain, view.dtype, view.dims);
  view.data = copy.data();
  return view;
}

Result<Tensor> Executor::read(ValueId id) const {
  const TensorView found = view(id);
  if (!found.present()) {
    const bool known = id && at(id) < graph_.valueCapacity();
    return fail(ErrorCode::kNotFound, fmt::format("value '{}': it has no memory now", known ? graph_.value(id).name : ""));
  }
  return Tensor(found.dtype, found.dims, nullptr, found.data);
}

int Executor::instructionOf(ValueId id) const {
  const NodeId producer = id ? graph_.value(id).producer : NodeId{};
  for (std::size_t i = 0; producer && i < plan_.instructions.size(); ++i)
    if (plan_.instructions[i].node == producer) return static_cast<int>(i);
  return -1;
}

bool Executor::staysInPlace(ValueId id) const {
  const int index = plan_.bufferOfValue[at(id)];
  return index >= 0 && plan_.buffers[at(index)].layout == Layout::kPlain &&
         plan_.buffers[at(plan_.root(index))].home != Home::kDynamic;
}

Status Executor::write(ValueId id, const TensorView& contents) {
  const int index = id && at(id) < plan_.bufferOfValue.size() ? plan_.bufferOfValue[at(id)] : -1;
  const TensorView target = viewOf(index);
  if (!target.data || target.dtype != contents.dtype || target.bytes() != contents.bytes())
    return invalid(fmt::format("value '{}': it has no memory now", id ? graph_.value(id).name : ""));
  if (contents.bytes() > 0)
    reorderLayout(contents.data, Layout::kPlain, target.data, plan_.buffers[at(index)].layout, target.dtype, target.dims);
  return {};
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
  struct Lap {
    std::int64_t begin, end;  // ticks
    std::int32_t instruction;
    bool conditional;
  };
  int cancellable = 0, count = 0, done = 0;
  std::array<Lap, kMost> laps;
};

Result<int> Executor::run(int begin, int end, const RunOptions& options) {
  const ThreadScope scope(threadsOf(plan_));
  logical_.clear();
  if (options.before || options.after) return runListened(begin, end, options);
  const bool timed = options.spans != nullptr;
  const std::uint8_t left = options.update ? 0 : kUpdateOnly;
  Laps some;
  for (int first = begin; first < end; first += Laps::kMost) {
    const int behind = std::min(end, first + Laps::kMost);
    some.cancellable = some.count = some.done = 0;
    for (int i = first; i < behind; ++i) {
      const std::uint8_t todo = todo_[at(i)];
      if (!(todo & kKernel) || (todo & left)) continue;
      some.laps[at(some.count++)] = {0, 0, i, (todo & kConditional) != 0};
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
  Laps::Lap* lap = some.laps.data();
  const Laps::Lap* const cancellable = lap + some.cancellable;
  const Laps::Lap* const end = lap + some.count;
  for (; lap < end; ++lap) {
    lap->begin = now();  // first of all: what follows waits for memory together with the kernel
    if (lap < cancellable && cancel->load(std::memory_order_relaxed) && cancel->exchange(false)) [[unlikely]] {
      some.done = static_cast<int>(lap - some.laps.data());
      return cancelledBefore(lap->instruction);
    }
    if (lap->conditional && !conditionsHold(lap->instruction)) [[unlikely]] {
      lap->end = lap->begin;
      continue;
    }
    if (Status status = runInstruction(lap->instruction, options); !status) [[unlikely]] {
      some.done = static_cast<int>(lap - some.laps.data());
      return status;
    }
    lap->end = now();
  }
  some.done = some.count;
  return {};
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
    if (todo_[at(i)] & kKernel && !skipped && conditionsHold(i)) {
      span.begin = monotonicNs();
      SS_TRY(runInstruction(i, options));
      span.end = monotonicNs();
    }
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
  if (!bound.kernel) return runDynamic(index, key);
  const KernelCall call{bound.inputs, bound.outputs, bound.workspace, key, {}};
  if (Status status = bound.kernel->run(call); !status)
    return fail(status.error().code, withLabel(graph_.node(plan_.instructions[at(index)].node), status.error().message));
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
