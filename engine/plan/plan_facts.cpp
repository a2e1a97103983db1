// What is told of a plan's instructions and buffers: class, bytes moved, label; and the workspace that a kernel asks for.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "engine/plan/plan.h"
#include "kernels/index.h"
#include "kernels/strided_view.h"

namespace stepscope {
namespace {

// Whether the result takes over the memory of its base, so that only the updates are written; else everything is copied.
bool writesPart(const ExecutionPlan& plan, const Instruction& instruction) {
  const Traffic& t = instruction.traffic;
  if (t.base < 0 || static_cast<std::size_t>(std::max(t.base, t.updates)) >= instruction.inputs.size() ||
      instruction.outputs.empty())
    return false;
  const int base = instruction.inputs[static_cast<std::size_t>(t.base)], result = instruction.outputs[0];
  return base >= 0 && instruction.inputs[static_cast<std::size_t>(t.updates)] >= 0 && result >= 0 &&
         plan.root(base) == plan.root(result);
}

// Bytes of the views of a buffer that the instruction reads, or of all of it where that is less. Nothing: it reads no views.
std::optional<std::int64_t> bytesOfViews(const ExecutionPlan& plan, const Instruction& instruction, int buffer) {
  const KernelSpec& spec = instruction.spec();
  const std::int64_t all = plan.buffers[at(buffer)].bytes;
  std::int64_t bytes = 0;
  bool any = false;
  for (std::size_t k = 0; k < instruction.inputs.size() && k < spec.inputs.size(); ++k) {
    if (instruction.inputs[k] != buffer) continue;
    const auto view = seenOperand(spec.domain, spec.op, k, spec.inputs[k].dims, spec.attrs);
    if (!view) return all;
    any |= seesView(spec.domain, spec.op, k, spec.attrs);
    bytes += elementCount(view->dims) * static_cast<std::int64_t>(dtypeSize(spec.inputs[k].dtype));
  }
  return any ? std::optional(std::min(bytes, all)) : std::nullopt;
}

}  // namespace

std::int64_t bytesOfOperand(const ExecutionPlan& plan, const Instruction& instruction, std::size_t input) {
  const std::int64_t bytes = plan.buffers[at(instruction.inputs[input])].bytes;
  if (static_cast<int>(input) == instruction.traffic.base && writesPart(plan, instruction))
    return std::min(bytes, plan.buffers[at(instruction.inputs[at(instruction.traffic.updates)])].bytes);
  if (const auto seen = bytesOfViews(plan, instruction, instruction.inputs[input])) return *seen;
  if (!maskHas(instruction.traffic.picked, input) || instruction.outputs.empty() || instruction.outputs[0] < 0) return bytes;
  return std::min(bytes, plan.buffers[at(instruction.outputs[0])].bytes);
}

std::string_view bufferClassName(BufferClass bufferClass) {
  constexpr std::string_view names[] = {"parameter", "frozen",    "optimizer state", "gradient",      "activation", "stash",
                                        "backward",  "workspace", "input data",      "constant data", "update"};
  return names[static_cast<std::size_t>(bufferClass)];
}

std::int64_t bytesReadOf(const ExecutionPlan& plan, const Instruction& instruction, std::size_t input) {
  const int buffer = instruction.inputs[input];
  const auto end = instruction.inputs.begin() + static_cast<std::ptrdiff_t>(input);
  if (buffer < 0 || std::find(instruction.inputs.begin(), end, buffer) != end)
    return 0;  // an operand that comes twice is read once
  return bytesOfOperand(plan, instruction, input);
}

std::int64_t bytesWrittenOf(const ExecutionPlan& plan, const Instruction& instruction, std::size_t output) {
  const int buffer = instruction.outputs[output];
  if (buffer < 0) return 0;
  const std::int64_t bytes = plan.buffers[static_cast<std::size_t>(buffer)].bytes;
  if (output != 0 || !writesPart(plan, instruction)) return bytes;
  return std::min(bytes, plan.buffers[at(instruction.inputs[at(instruction.traffic.updates)])].bytes);
}

const KernelSpec& Instruction::spec() const {
  static const KernelSpec none;
  return kernel ? *kernel : none;
}

namespace {

std::string memoryText(const ExecutionPlan& plan, const Buffer& buffer) {
  const auto shared = [&] { return plan.buffers[at(buffer.shares)].name; };
  const bool constant = buffer.home == Home::kConstant;
  switch (buffer.sharing) {
    case Sharing::kView: return fmt::format("view of '{}'", shared());
    case Sharing::kInPlace: return fmt::format("in place of '{}'", shared());
    case Sharing::kWrittenOver: return fmt::format("written over '{}'", shared());
    case Sharing::kCopied:
      return constant ? "constant of the graph, brought to the device when kernels are made"
                      : fmt::format("copy in the memory of the {}", spaceName(buffer.space));
    case Sharing::kNone: break;
  }
  if (buffer.bufferClass == BufferClass::kWorkspace) return "scratch memory of one instruction";
  switch (buffer.home) {
    case Home::kArena: return buffer.space == plan.space ? "own memory" : "own memory on the host";
    case Home::kState: return "persistent state";
    case Home::kConstant: return "constant of the graph";
    case Home::kInput: return "copied from the batch";
    case Home::kDynamic: return "allocated when its producer has run: extents depend on data";
  }
  return {};
}

std::string refusalText(const ExecutionPlan& plan, const Graph& graph, const Refusal& refusal) {
  using Reason = Refusal::Reason;
  const auto ofInput = [&](const std::string& why) {
    return fmt::format("input {} '{}': {}", refusal.input, plan.buffers[at(refusal.operand)].name, why);
  };
  const auto instruction = [&] { return plan.instructions[static_cast<std::size_t>(refusal.number)].node; };
  switch (refusal.reason) {
    case Reason::kOff: return ofInput("option memory.inplace is off");
    case Reason::kBegunToWrite:
      return fmt::format("{} reads inputs after it has begun to write", graph.node(instruction()).op);
    case Reason::kOtherSpace:
      return ofInput("it is in the memory of the " + std::string(spaceName(static_cast<Space>(refusal.number))));
    case Reason::kOutlives: return ofInput("its memory outlives the instruction (parameter, constant or batch)");
    case Reason::kOtherSize:
      return ofInput(fmt::format("{} bytes; expected {}", refusal.number, plan.buffers[at(refusal.buffer)].bytes));
    case Reason::kKept: return ofInput("kept until the end of the step");
    case Reason::kReadAgain:
      return ofInput(fmt::format("read again by instruction {} ({})", refusal.number, graph.node(instruction()).label()));
    case Reason::kSameMemory:
      return ofInput(fmt::format("input {} is the same memory seen with other extents", refusal.number));
    case Reason::kSeenInParts:
      return ofInput(fmt::format("input {} sees elements of it at other places than they are written", refusal.number));
    case Reason::kOtherBranch: return ofInput("made under another condition of If");
    case Reason::kStateIsRead:
      return fmt::format("'{}' is read again by instruction {}", plan.buffers[at(refusal.operand)].name, refusal.number);
  }
  return {};
}

}  // namespace

std::string decisionText(const ExecutionPlan& plan, int buffer) {
  const Buffer& one = plan.buffers[at(buffer)];
  const std::string text = memoryText(plan, one);
  return one.layout == Layout::kPlain ? text : fmt::format("{}; laid out as {}", text, layoutName(one.layout));
}

std::vector<std::string> refusalTexts(const ExecutionPlan& plan, const Graph& graph, int buffer) {
  std::vector<std::string> texts;
  for (const Refusal& refusal : std::ranges::equal_range(plan.refusals.get(), buffer, {}, &Refusal::buffer))
    texts.push_back(refusalText(plan, graph, refusal));
  return texts;
}

std::string instructionLabel(const ExecutionPlan& plan, const Graph& graph, int instruction) {
  const Instruction& i = plan.instructions[static_cast<std::size_t>(instruction)];
  if (i.kind == InstructionKind::kKernel) return graph.node(i.node).label();
  const Buffer& to = plan.buffers[static_cast<std::size_t>(i.outputs[0])];
  if (i.kind == InstructionKind::kCommit) return fmt::format("Commit '{}'", to.name);
  return fmt::format("Copy '{}' to {}", to.name, spaceName(to.space));
}

void addWorkspace(ExecutionPlan& plan, std::size_t instruction, std::int64_t bytes) {
  static const Buffer scratch = [] {  // all of them share its name
    Buffer one;
    one.bufferClass = BufferClass::kWorkspace;
    one.name = "workspace";
    return one;
  }();
  Buffer buffer = scratch;
  buffer.bytes = bytes;
  buffer.space = plan.instructions[instruction].onHost ? Space::kHost : plan.space;
  buffer.first = buffer.last = static_cast<int>(instruction);
  plan.workspaces.resize(std::max(plan.workspaces.size(), instruction + 1), -1);
  plan.workspaces[instruction] = static_cast<int>(plan.buffers.size());
  plan.buffers.push_back(std::move(buffer));
}

}  // namespace stepscope
