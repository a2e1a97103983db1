#include <fmt/format.h>

#include <map>
#include <utility>

#include "engine/exec/executor.h"
#include "engine/exec/make_kernel.h"
#include "engine/ir/said_by.h"
#include "engine/plan/fits.h"
#include "kernels/index.h"
#include "kernels/strided_view.h"
#include "kernels/threads.h"

namespace stepscope {
namespace {

// All kernels of a plan are made for the same number.
int threadsOf(const ExecutionPlan& plan) {
  for (const Instruction& instruction : plan.instructions)
    if (!instruction.view) return instruction.spec().threads;
  return 1;
}

// "; views of inputs 0, 1, strided" of a kernel that reads parts of larger tensors where they lie; else nothing.
std::string viewsText(const KernelSpec& spec) {
  std::string inputs;
  int count = 0;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    if (!seesView(spec.domain, spec.op, i, spec.attrs)) continue;
    inputs += fmt::format("{}{}", count++ > 0 ? ", " : "", i);
  }
  if (count == 0) return {};
  return fmt::format("; {} {}, strided", count == 1 ? "view of input" : "views of inputs", inputs);
}

}  // namespace

Executor::Executor(const Graph& graph, ExecutionPlan plan, std::function<Tensor(ValueId)> state, Backend backend,
                   const Operators& operators, Device* device)
    : graph_(graph),
      plan_(std::move(plan)),
      state_(std::move(state)),
      backend_(backend),
      operators_(operators),
      device_(device ? *device : cpuDevice()),
      threads_(threadsOf(plan_)) {
  SS_CHECK(device_.facts().space == plan_.space);
}

Status Executor::makeKernels(bool reuse, std::int64_t memoryLimit, const Cancel& cancel) {
  SS_CHECK(!std::exchange(kernelsMade_, true));
  const ThreadScope scope(threads_);
  const std::size_t count = plan_.instructions.size();
  instructions_.resize(count);
  implementations_.assign(count, {});
  determinism_.assign(count, nullptr);
  std::map<std::pair<const KernelSpec*, bool>, std::size_t> shared;  // the first instruction that wants that kernel
  for (std::size_t i = 0; i < count; ++i) {
    SS_TRY(cancel.check("bind"));
    const Instruction& instruction = plan_.instructions[i];
    const Node& node = graph_.node(instruction.node);
    instructions_[i].randomNode = static_cast<std::uint32_t>(std::max(0, node.provenance.imported.index));
    instructions_[i].device = &deviceOf(instruction);
    instructions_[i].stream = instruction.stream;
    if (instruction.kind != InstructionKind::kKernel) {
      instructions_[i].copies = true;
      implementations_[i] = InternedText(instruction.kind == InstructionKind::kCopy ? "copy" : "commit");
      continue;
    }
    if (instruction.view) {
      implementations_[i] = InternedText("view");
      static const Determinism kNothingRuns = Determinism::fixed("the memory of its input: nothing runs");
      determinism_[i] = saidOnce(kNothingRuns);
      continue;
    }
    const OpDef* const op = operators_.ops.find(node);
    instructions_[i].collective = op && op->sideEffect == SideEffect::kCollective;
    if (plan_.deviceRanks && instruction.collective && !instruction.onHost) {
      static const Determinism kByDevice =
          Determinism::fixed("the library of the device adds in an order that its topology and settings decide");
      implementations_[i] = InternedText("NCCL");
      determinism_[i] = saidOnce(kByDevice);
      instructions_[i].byDevice = true;
      // For runs that send nothing: on the host, as rank kernels are written for it.
      KernelSpec spec = instruction.spec();
      for (auto* operands : {&spec.inputs, &spec.outputs})
        for (OperandSpec& operand : *operands) operand.space = Space::kHost;
      auto made = makeKernel(operators_.kernels, cpuDevice().facts().kernels, spec, plan_.anyThreads);
      if (!made) return tl::make_unexpected(saidBy(node, made.error()));
      instructions_[i].kernel = kernels_.emplace_back(std::move(made->kernel)).get();
      continue;
    }
    if (instruction.dynamic) {
      implementations_[i] = InternedText("chosen at run time");
      anyDynamic_ = true;
      continue;
    }
    const std::int64_t begin = monotonicNs();
    const auto [known, isNew] = shared.try_emplace({instruction.kernel.get(), instruction.onHost}, i);
    if (isNew || !instructions_[known->second].kernel->keepsNothing()) {
      auto made = makeKernel(operators_.kernels, kernelsFor(instruction), instruction.spec(), plan_.anyThreads);
      if (!made) return tl::make_unexpected(saidBy(node, made.error()));
      instructions_[i].kernel = kernels_.emplace_back(std::move(made->kernel)).get();
      implementations_[i] = InternedText(instructions_[i].kernel->implementation() + viewsText(instruction.spec()));
      determinism_[i] = saidOnce(made->determinism);
    } else {
      instructions_[i].kernel = instructions_[known->second].kernel;
      implementations_[i] = implementations_[known->second];
      determinism_[i] = determinism_[known->second];
    }
    bound_.push_back({node.id, implementations_[i], monotonicNs() - begin});
    if (const auto bytes = static_cast<std::int64_t>(instructions_[i].kernel->workspaceBytes()); bytes > 0)
      addWorkspace(plan_, i, bytes);
  }
  bound_.shrink_to_fit();
  packArena(plan_, graph_, reuse);
  return memoryLimit > 0 ? checkFits(plan_, memoryLimit) : Status{};
}

Status Executor::bind(bool reuse, std::int64_t memoryLimit, const Cancel& cancel) {
  const std::size_t count = plan_.instructions.size();
  if (!kernelsMade_) SS_TRY(makeKernels(reuse, memoryLimit, cancel));
  const ThreadScope scope(threads_);
  SS_TRY(allocateMemory(cancel));
  std::size_t operands = 0;
  for (const Instruction& one : plan_.instructions) operands += one.inputs.size() + one.outputs.size();
  views_.resize(operands);
  TensorView* view = views_.data();
  for (std::size_t i = 0; i < count; ++i) {
    SS_TRY(cancel.check("bind"));
    const Instruction& instruction = plan_.instructions[i];
    Bound& bound = instructions_[i];
    bound.views = view;
    bound.inputCount = static_cast<std::uint32_t>(instruction.inputs.size());
    bound.outputCount = static_cast<std::uint32_t>(instruction.outputs.size());
    for (const auto* buffers : {&instruction.inputs, &instruction.outputs})
      for (const int b : *buffers) *view++ = viewOf(b);
    if (const int scratch = plan_.workspaceOf(i); scratch >= 0) {
      const Buffer& workspace = plan_.buffers[at(scratch)];
      std::byte* const arena = workspace.space == plan_.space ? arena_.data() : hostArena_.data();
      bound.workspace = {arena + plan_.offsets[at(scratch)], static_cast<std::size_t>(workspace.bytes)};
    }
    for (const auto& [buffer, expected] : instruction.predicates) {
      const TensorView condition = viewOf(buffer);
      if (condition.dtype != DType::kBool)
        return invalid(
            fmt::format("condition '{}': {}; expected bool", plan_.buffers[at(buffer)].name, dtypeName(condition.dtype)));
      bound.predicates.edit().emplace_back(static_cast<const bool*>(condition.data), expected);
    }
    todo_.push_back(static_cast<std::uint8_t>((instruction.view ? kNothing : kKernel) |
                                              (instruction.updateEntry ? kUpdateOnly : 0) |
                                              (bound.predicates.empty() ? 0 : kConditional)));
  }
  for (const EarlyCollective& early : plan_.early)
    for (const int i : {early.begins, early.instruction}) todo_[at(i)] |= kBegins;
  SS_TRY(bindEvents());
  findSaves();
  if (anyDynamic_) {
    dynamicGraph_ = std::make_unique<Graph>(graph_);
    dynamicInference_ = std::make_unique<Inference>(*dynamicGraph_, operators_, InferOptions{.foldElements = -1});
  }
  return {};
}

const Determinism* Executor::saidOnce(const Determinism& says) {
  for (const Determinism& known : said_)
    if (known.order == says.order && known.reason == says.reason) return &known;
  return &said_.emplace_back(says);
}

std::string_view Executor::kernelsFor(const Instruction& instruction) const {
  return backend_ == Backend::kReference ? kReferenceDevice : std::string_view(deviceOf(instruction).facts().kernels);
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
// writes state at the end, and kernels of updates only compute, so that of most plans nothing is saved. A collective that
// fails ends the run of all ranks, and nobody reads their state any more.
void Executor::findSaves() {
  bool laterMayFail = false;
  for (std::size_t i = plan_.instructions.size(); i-- > 0;) {
    const Instruction& instruction = plan_.instructions[i];
    if (instruction.view) continue;
    const Bound& bound = instructions_[i];
    laterMayFail |=
        instruction.dynamic || (bound.kernel && bound.kernel->mayFail() && !bound.collective) || !device_.facts().immediate;
    for (const int out : instruction.outputs)
      if (laterMayFail && out >= 0 && plan_.buffers[at(plan_.root(out))].home == Home::kState) todo_[i] |= kSaves;
  }
}

Status Executor::allocateMemory(const Cancel& cancel) {
  SS_ASSIGN(arena_, device_.allocate(plan_.arenaBytes));
  SS_ASSIGN(hostArena_, cpuDevice().allocate(plan_.hostArenaBytes));
  for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
    SS_TRY(cancel.check("bind"));
    const Buffer& buffer = plan_.buffers[b];
    if (buffer.shares >= 0 || !buffer.value) continue;
    if (buffer.home == Home::kConstant && buffer.space == Space::kDevice) {
      const Tensor& constant = *graph_.value(buffer.value).data;
      Tensor& own = constants_[static_cast<int>(b)];
      SS_ASSIGN(own, makeTensor(device_, constant.dtype(), constant.dims()));
      SS_TRY(writeTensor(device_, own.view(), constant.view()));
    }
    if (buffer.home != Home::kInput) continue;
    const ValueType& type = graph_.value(buffer.value).type;
    const auto dims = type.shape ? knownDims(*type.shape) : std::nullopt;
    if (!dims) return invalid(fmt::format("input '{}': {}; expected numbers for every extent", buffer.name, type.text()));
    inputs_[static_cast<int>(b)] = Tensor(type.dtype, *dims);
  }
  if (plan_.space == Space::kHost) return {};
  copyInstructionOf_.assign(graph_.valueCapacity(), -1);
  for (std::size_t i = 0; i < plan_.instructions.size(); ++i)
    if (const Instruction& copy = plan_.instructions[i]; copy.kind == InstructionKind::kCopy)
      copyInstructionOf_[at(plan_.buffers[at(copy.outputs[0])].value)] = static_cast<int>(i);
  return {};
}

}  // namespace stepscope
