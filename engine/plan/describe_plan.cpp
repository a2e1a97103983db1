#include "engine/plan/describe_plan.h"

#include <span>

#include "engine/ir/low_copy.h"
#include "engine/ops/op_def.h"
#include "kernels/index.h"

namespace stepscope {
namespace {

// `countedAt`, by buffer: the last instruction whose reads counted it.
void describe(ExecutionPlan& plan, const Graph& graph, const OpRegistry& ops, std::size_t i, std::vector<int>& countedAt) {
  Instruction& instruction = plan.instructions.edit()[i];
  if (instruction.kind != InstructionKind::kKernel) {
    instruction.bytesRead = instruction.bytesWritten = plan.buffers[at(instruction.outputs[0])].bytes;
    return;
  }
  if (instruction.view || instruction.dynamic) return;
  for (std::size_t k = 0; k < instruction.inputs.size(); ++k) {
    const int in = instruction.inputs[k];
    if (in < 0 || countedAt[at(in)] == static_cast<int>(i)) continue;  // an operand that comes twice is read once
    countedAt[at(in)] = static_cast<int>(i);
    instruction.bytesRead += bytesOfOperand(plan, instruction, k);
  }
  for (std::size_t k = 0; k < instruction.outputs.size(); ++k)
    instruction.bytesWritten += bytesWrittenOf(plan, instruction, k);
  const Node& node = graph.node(instruction.node);
  const OpDef* op = ops.find(node);
  std::vector<std::span<const std::int64_t>> inputDims, outputDims;
  for (const OperandSpec& o : instruction.spec().inputs) inputDims.emplace_back(o.dims);
  for (const OperandSpec& o : instruction.spec().outputs) outputDims.emplace_back(o.dims);
  if (op && op->flops)
    instruction.flops = op->flops({inputDims, outputDims, &node.attrs});
  else if (!outputDims.empty() && !(op && op->traffic.moves))
    instruction.flops = static_cast<double>(elementCount(outputDims[0]));
}

}  // namespace

void describeInstructions(ExecutionPlan& plan, const Graph& graph, const OpRegistry& ops) {
  std::vector<int> countedAt(plan.buffers.size(), -1);
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) describe(plan, graph, ops, i, countedAt);
}

void classifyBuffers(ExecutionPlan& plan, const Graph& graph, const OpRegistry& ops, const std::vector<ValueId>& trained) {
  std::vector<bool> isTrained(graph.valueCapacity(), false), gradient(graph.valueCapacity(), false),
      update(graph.valueCapacity(), false);
  for (const ValueId id : trained) isTrained[at(id)] = true;
  for (const Instruction& instruction : plan.instructions) {
    const Node& node = graph.node(instruction.node);
    const OpDef* op = ops.find(node);
    for (std::size_t i = 0; op && i < node.inputs.size(); ++i)
      if (node.inputs[i] && op->gradients.has(i)) gradient[at(node.inputs[i])] = true;
  }
  for (const StateUpdate& u : graph.stateUpdates) update[at(u.next)] = true;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    Buffer& buffer = plan.buffers.edit(b);
    if (!buffer.value) continue;
    const Value& value = graph.value(buffer.value);
    switch (value.role) {
      case ValueRole::kInput: buffer.bufferClass = BufferClass::kInputData; continue;
      case ValueRole::kInitializer:
        buffer.bufferClass = isTrained[at(buffer.value)] ? BufferClass::kParameter : BufferClass::kFrozen;
        continue;
      case ValueRole::kState:
        buffer.bufferClass = sourceOfLowCopy(value.name).empty() ? BufferClass::kOptimizerState : BufferClass::kParameter;
        continue;
      case ValueRole::kConstant: buffer.bufferClass = BufferClass::kConstantData; continue;
      case ValueRole::kNodeOutput: break;
    }
    const Phase phase = graph.node(value.producer).phase;
    if (update[at(buffer.value)])
      buffer.bufferClass = BufferClass::kUpdate;
    else if (gradient[at(buffer.value)])
      buffer.bufferClass = BufferClass::kGradient;
    else if (phase == Phase::kForward)
      buffer.bufferClass =
          buffer.last >= plan.firstBackward && plan.firstBackward < static_cast<int>(plan.instructions.size())
              ? BufferClass::kStash
              : BufferClass::kActivation;
    else
      buffer.bufferClass = BufferClass::kBackward;
  }
}

}  // namespace stepscope
