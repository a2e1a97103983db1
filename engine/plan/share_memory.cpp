#include "engine/plan/share_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/ir/low_copy.h"
#include "engine/ops/op_def.h"
#include "engine/plan/order_instructions.h"
#include "kernels/index.h"
#include "kernels/strided_view.h"

namespace stepscope {
namespace {

class Sharer {
 public:
  Sharer(ExecutionPlan& plan, const Graph& graph, const OpRegistry& ops, bool inPlace)
      : plan_(plan),
        graph_(graph),
        ops_(ops),
        inPlace_(inPlace),
        rootLast_(plan.buffers.size()),
        stateOfNext_(graph.valueCapacity()),
        readBy_(plan.buffers.size(), -1) {
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) rootLast_[b] = plan.buffers[b].last;
    for (const StateUpdate& update : graph.stateUpdates)
      if (!stateOfNext_[at(update.next)]) stateOfNext_[at(update.next)] = update.state;
  }

  // Decides whose memory the outputs of instruction i are.
  void share(std::size_t i) {
    const Instruction& instruction = plan_.instructions[i];
    const Node& node = graph_.node(instruction.node);
    const OpDef* op = ops_.find(node);
    if (!op || instruction.dynamic || instruction.kind != InstructionKind::kKernel) return;
    if (op->view && instruction.outputs[0] >= 0 && instruction.inputs[0] >= 0) {
      makeShared(instruction.outputs[0], instruction.inputs[0], Sharing::kView);
      plan_.instructions.edit()[i].view = true;
      return;
    }
    if ((node.phase == Phase::kOptimizer || accumulates(node)) && updateInPlace(i)) return;
    if (instruction.outputs.empty() || instruction.outputs[0] < 0) return;
    Buffer& out = plan_.buffers[at(instruction.outputs[0])];
    if (out.home != Home::kArena) return;
    bool candidate = false;
    for (std::size_t k = 0; k < instruction.inputs.size(); ++k) {
      if (instruction.inputs[k] < 0 || !maskHas(op->inPlaceInputs, k)) continue;
      candidate = true;
      const std::string refusal = inPlace_ ? refuse(i, k) : "option memory.inplace is off";
      if (!refusal.empty()) {
        out.editText().refusals.push_back(
            fmt::format("input {} '{}': {}", k, plan_.buffers[at(instruction.inputs[k])].name(), refusal));
        continue;
      }
      makeShared(instruction.outputs[0], instruction.inputs[k], Sharing::kInPlace);
      return;
    }
    if (!candidate) out.editText().refusals.push_back(fmt::format("{} reads inputs after it has begun to write", node.op));
  }

 private:
  // Why output 0 of instruction i cannot take over the memory of input k; empty when it can.
  std::string refuse(std::size_t i, std::size_t k) const {
    const Instruction& instruction = plan_.instructions[i];
    const int input = instruction.inputs[k], root = plan_.root(input);
    const Buffer& out = plan_.buffers[at(instruction.outputs[0])];
    const Buffer& in = plan_.buffers[at(root)];
    if (in.space != out.space) return "it is in the memory of the " + std::string(spaceName(in.space));
    if (in.home != Home::kArena) return "its memory outlives the instruction (parameter, constant or batch)";
    if (plan_.buffers[at(input)].bytes != out.bytes || in.bytes != out.bytes)
      return fmt::format("{} bytes; expected {}", in.bytes, out.bytes);
    const int last = rootLast_[at(root)];
    if (last > static_cast<int>(i)) {
      if (last >= static_cast<int>(plan_.instructions.size())) return "kept until the end of the step";
      return fmt::format("read again by instruction {} ({})", last, graph_.node(plan_.instructions[at(last)].node).label());
    }
    for (std::size_t other = 0; other < instruction.inputs.size(); ++other)
      if (other != k && instruction.inputs[other] >= 0 && instruction.inputs[other] != input &&
          plan_.root(instruction.inputs[other]) == root)
        return fmt::format("input {} is the same memory seen with other extents", other);
    const KernelSpec& spec = instruction.spec();
    for (std::size_t other = 0; other < instruction.inputs.size(); ++other)
      if (instruction.inputs[other] >= 0 && plan_.root(instruction.inputs[other]) == root &&
          seesView(spec.domain, spec.op, other, spec.attrs))
        return fmt::format("input {} sees elements of it at other places than they are written", other);
    // The memory of a value of one branch of If must not be handed to a node that runs under other conditions.
    const NodeId producer = graph_.value(in.value).producer;
    if (producer && graph_.node(producer).predicates != graph_.node(instruction.node).predicates)
      return "made under another condition of If";
    return {};
  }

  // Parameters, optimizer state and accumulated gradients: output o is the next version of an input and is written over it.
  bool updateInPlace(std::size_t i) {
    const Instruction& instruction = plan_.instructions[i];
    bool any = false;
    for (const int in : instruction.inputs)
      if (in >= 0) readBy_[at(in)] = static_cast<int>(i);
    for (const int out : instruction.outputs) {
      if (out < 0) continue;
      const ValueId updated = stateOfNext_[at(plan_.buffers[at(out)].value)];
      if (!updated) continue;
      const int state = plan_.bufferOfValue[at(updated)];
      if (state < 0) continue;
      // The copy of a parameter in a low type is written beside it, not read.
      const bool beside = graph_.value(updated).role == ValueRole::kState &&
                          !sourceOfLowCopy(graph_.value(updated).name).empty() &&
                          plan_.buffers[at(out)].space == plan_.buffers[at(state)].space;
      if (readBy_[at(state)] != static_cast<int>(i) && !beside) continue;
      const int last = rootLast_[at(state)];
      if (last > static_cast<int>(i)) {
        plan_.buffers[at(out)].editText().refusals.push_back(
            fmt::format("'{}' is read again by instruction {}", plan_.buffers[at(state)].name(), last));
        continue;
      }
      makeShared(out, state, Sharing::kWrittenOver);
      plan_.firstStateWrite = std::min(plan_.firstStateWrite, static_cast<int>(i));
      any = true;
    }
    return any;
  }

  void makeShared(int buffer, int with, Sharing sharing) {
    const int root = plan_.root(with);
    Buffer& b = plan_.buffers[at(buffer)];
    rootLast_[at(root)] = std::max(rootLast_[at(root)], b.last);
    b.shares = with;
    b.owner = root;
    b.home = plan_.buffers[at(root)].home;
    b.sharing = sharing;
  }

  ExecutionPlan& plan_;
  const Graph& graph_;
  const OpRegistry& ops_;
  bool inPlace_;
  std::vector<int> rootLast_;         // by buffer that owns its memory: last use of it, by whatever name
  std::vector<ValueId> stateOfNext_;  // by value: the state whose next version it is
  std::vector<int> readBy_;           // by buffer: the last instruction that was found to read it
};

}  // namespace

void shareMemory(ExecutionPlan& plan, const Graph& graph, const OpRegistry& ops, bool inPlace) {
  Sharer sharer(plan, graph, ops, inPlace);
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) sharer.share(i);
}

}  // namespace stepscope
