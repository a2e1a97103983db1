#include "engine/plan/place_operands.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/ops/op_registry.h"
#include "kernels/device_ranks.h"
#include "kernels/index.h"
#include "kernels/library_code.h"

namespace stepscope {
namespace {

bool sumsUp(std::string_view op) {
  return op == "AllReduce" || op == "ReduceScatter" || op == "ReduceScatterRows" || op == "Reduce";
}

class Placer {
 public:
  Placer(ExecutionPlan& plan, const Graph& graph, const OpRegistry& ops, const KernelRegistry& kernels, const Device& device,
         bool referenceKernels, bool deviceRanks, SpecTable& specs)
      : plan_(plan),
        graph_(graph),
        ops_(ops),
        kernels_(kernels),
        device_(device),
        hostKernels_(referenceKernels && device.facts().kernels != cpuDevice().facts().kernels),
        deviceRanks_(deviceRanks),
        specs_(specs) {}

  void run() {
    plan_.space = device_.facts().space;
    const std::size_t known = plan_.buffers.size();
    twins_.assign(known, -1);
    for (std::size_t b = 0; b < known; ++b) plan_.buffers.edit(b).space = homeSpace(plan_.buffers[b]);
    std::vector<Instruction> old = std::move(plan_.instructions.edit());
    plan_.instructions = {};
    plan_.instructions.edit().reserve(old.size());
    for (Instruction& instruction : old) {
      place(instruction);
      plan_.instructions.edit().push_back(std::move(instruction));
    }
    bringBatchFirst();
    for (std::size_t i = 0; i < plan_.instructions.size(); ++i)
      if (const Instruction& one = plan_.instructions[i]; one.kind == InstructionKind::kKernel)
        plan_.instructionOfNode.edit()[static_cast<std::size_t>(one.node.index)] = static_cast<int>(i);
  }

 private:
  // Copies of the batch stand before everything: they overlap with the first kernels, and what follows them needs the host
  // no more, so that it can be recorded as a graph.
  void bringBatchFirst() {
    const auto ofBatch = [&](const Instruction& one) {
      return one.kind == InstructionKind::kCopy && one.predicates.empty() &&
             plan_.buffers[at(one.inputs[0])].home == Home::kInput;
    };
    std::vector<Instruction>& instructions = plan_.instructions.edit();
    const auto rest = std::stable_partition(instructions.begin(), instructions.end(), ofBatch);
    for (auto it = instructions.begin(); it != rest; ++it) it->phase = Phase::kForward;
  }

  // Of what no instruction of the plan makes; outputs follow where they are made.
  Space homeSpace(const Buffer& buffer) const {
    const bool text = buffer.value && graph_.value(buffer.value).type.dtype == DType::kString;
    return !text && (buffer.home == Home::kState || buffer.home == Home::kArena) ? plan_.space : Space::kHost;
  }

  bool hasStrings(const Instruction& instruction) const {
    const auto text = [](const OperandSpec& operand) { return operand.dtype == DType::kString; };
    return std::any_of(instruction.spec().inputs.begin(), instruction.spec().inputs.end(), text) ||
           std::any_of(instruction.spec().outputs.begin(), instruction.spec().outputs.end(), text);
  }

  std::string reasonForHost(const Instruction& instruction) const {
    if (instruction.dynamic) return "its extents are known only at run time";
    if (hasStrings(instruction)) return "it has strings";
    if (hostKernels_) return "kernels of reference run on the CPU";
    if (instruction.collective && deviceRanks_) {
      const DType dtype = instruction.spec().inputs[0].dtype;
      return sumsUp(instruction.spec().op) && !deviceRanksAdd(dtype)
                 ? fmt::format("NCCL has no sums of {}", dtypeName(dtype))
                 : "";
    }
    if (device_.takes(instruction.spec())) return "";
    const auto added = whyNotByLibrary(kernels_, device_, instruction.spec());
    return added ? *added : fmt::format("device '{}' has no kernel for it", device_.facts().name);
  }

  void place(Instruction& instruction) {
    const Node& node = graph_.node(instruction.node);
    const OpDef* op = ops_.find(node);
    if (!instruction.predicates.empty())
      for (auto& [buffer, expected] : instruction.predicates.edit()) buffer = in(buffer, Space::kHost, instruction);
    if (op && op->view && !instruction.dynamic && instruction.inputs[0] >= 0 && instruction.outputs[0] >= 0) {
      plan_.buffers.edit(at(instruction.outputs[0])).space = plan_.buffers[at(instruction.inputs[0])].space;
      return;
    }
    instruction.onHostReason = reasonForHost(instruction);
    instruction.onHost = !instruction.onHostReason.empty();
    KernelSpec spec = instruction.spec();
    const Space space = instruction.onHost ? Space::kHost : plan_.space;
    for (std::size_t k = 0; k < instruction.inputs.size(); ++k) {
      int& input = instruction.inputs[k];
      if (input < 0) continue;
      const bool readByHost = op && maskHas(op->hostInputs.value_or(kNoInputs), k);
      input = in(input, readByHost ? Space::kHost : space, instruction);
      spec.inputs[k].space = plan_.buffers[at(input)].space;
    }
    for (std::size_t k = 0; k < instruction.outputs.size(); ++k) {
      if (instruction.outputs[k] < 0) continue;
      Buffer& output = plan_.buffers.edit(at(instruction.outputs[k]));
      if (output.home == Home::kArena) output.space = space;
      spec.outputs[k].space = output.space;
    }
    instruction.kernel = specs_.share(std::move(spec));
  }

  // The buffer of the same value in `space`, which an instruction copies when it is not there yet.
  int in(int buffer, Space space, const Instruction& reader) {
    if (plan_.buffers[at(buffer)].space == space) return buffer;
    if (twins_[at(buffer)] >= 0) return twins_[at(buffer)];
    const int twin = static_cast<int>(plan_.buffers.size());
    Buffer copy = plan_.buffers[at(buffer)];
    copy.space = space;
    copy.sharing = Sharing::kCopied;
    if (copy.home != Home::kConstant) copy.home = Home::kArena;  // the device has its own, made at bind
    twins_[at(buffer)] = twin;
    twins_.push_back(buffer);
    plan_.buffers.push_back(std::move(copy));
    if (plan_.buffers[at(twin)].home == Home::kArena) insertCopy(buffer, twin, reader);
    return twin;
  }

  void insertCopy(int from, int to, const Instruction& reader) {
    Instruction copy;
    copy.kind = InstructionKind::kCopy;
    copy.node = reader.node;
    copy.phase = reader.phase;
    copy.updateEntry = reader.updateEntry;
    copy.inputs = {from};
    copy.outputs = {to};
    const NodeId producer = graph_.value(plan_.buffers[at(from)].value).producer;
    if (producer)
      for (const Predicate& p : graph_.node(producer).predicates)
        copy.predicates.edit().emplace_back(
            in(plan_.bufferOfValue[static_cast<std::size_t>(p.condition.index)], Space::kHost, reader), p.expected);
    plan_.instructions.edit().push_back(std::move(copy));
  }

  ExecutionPlan& plan_;
  const Graph& graph_;
  const OpRegistry& ops_;
  const KernelRegistry& kernels_;
  const Device& device_;
  const bool hostKernels_;  // kernels of reference, which are functions of the host
  const bool deviceRanks_;  // collectives run on the device
  SpecTable& specs_;
  std::vector<int> twins_;  // by buffer: the same value in the other space; -1 = not there
};

}  // namespace

void placeOperands(ExecutionPlan& plan, const Graph& graph, const OpRegistry& ops, const KernelRegistry& kernels,
                   const Device& device, bool referenceKernels, bool deviceRanks, SpecTable& specs) {
  Placer(plan, graph, ops, kernels, device, referenceKernels, deviceRanks, specs).run();
}

}  // namespace stepscope
