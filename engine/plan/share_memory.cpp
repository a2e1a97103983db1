#include "engine/plan/share_memory.h"

#include <algorithm>
#include <cstdint>
#include <optional>
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
    const Buffer& out = plan_.buffers[at(instruction.outputs[0])];
    if (out.home != Home::kArena) return;
    bool candidate = false;
    for (std::size_t k = 0; k < instruction.inputs.size(); ++k) {
      if (instruction.inputs[k] < 0 || !maskHas(op->inPlaceInputs, k)) continue;
      candidate = true;
      if (const auto why = inPlace_ ? refuse(i, k) : Why{{Reason::kOff, 0}}) {
        refused(instruction.outputs[0], instruction.inputs[k], k, *why);
        continue;
      }
      makeShared(instruction.outputs[0], instruction.inputs[k], Sharing::kInPlace);
      return;
    }
    if (!candidate) refused(instruction.outputs[0], -1, 0, {Reason::kBegunToWrite, static_cast<std::int64_t>(i)});
  }

 private:
  using Reason = Refusal::Reason;
  using Why = std::optional<std::pair<Reason, std::int64_t>>;

  void refused(int buffer, int operand, std::size_t input, const std::pair<Reason, std::int64_t>& why) {
    plan_.refusals.edit().push_back({buffer, operand, static_cast<std::int32_t>(input), why.first, why.second});
  }

  // Why output 0 of instruction i cannot take over the memory of input k; nothing when it can.
  Why refuse(std::size_t i, std::size_t k) const {
    const Instruction& instruction = plan_.instructions[i];
    const int input = instruction.inputs[k], root = plan_.root(input);
    const Buffer& out = plan_.buffers[at(instruction.outputs[0])];
    const Buffer& in = plan_.buffers[at(root)];
    if (in.space != out.space) return {{Reason::kOtherSpace, static_cast<std::int64_t>(in.space)}};
    if (in.home != Home::kArena) return {{Reason::kOutlives, 0}};
    if (plan_.buffers[at(input)].bytes != out.bytes || in.bytes != out.bytes) return {{Reason::kOtherSize, in.bytes}};
    const int last = rootLast_[at(root)];
    if (last > static_cast<int>(i)) {
      if (last >= static_cast<int>(plan_.instructions.size())) return {{Reason::kKept, 0}};
      return {{Reason::kReadAgain, last}};
    }
    for (std::size_t other = 0; other < instruction.inputs.size(); ++other)
      if (other != k && instruction.inputs[other] >= 0 && instruction.inputs[other] != input &&
          plan_.root(instruction.inputs[other]) == root)
        return {{Reason::kSameMemory, static_cast<std::int64_t>(other)}};
    const KernelSpec& spec = instruction.spec();
    for (std::size_t other = 0; other < instruction.inputs.size(); ++other)
      if (instruction.inputs[other] >= 0 && plan_.root(instruction.inputs[other]) == root &&
          seesView(spec.domain, spec.op, other, spec.attrs))
        return {{Reason::kSeenInParts, static_cast<std::int64_t>(other)}};
    // The memory of a value of one branch of If must not be handed to a node that runs under other conditions.
    const NodeId producer = graph_.value(in.value).producer;
    if (producer && graph_.node(producer).predicates != graph_.node(instruction.node).predicates)
      return {{Reason::kOtherBranch, 0}};
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
        refused(out, state, 0, {Reason::kStateIsRead, last});
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
    Buffer& b = plan_.buffers.edit(at(buffer));
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
  std::ranges::stable_sort(plan.refusals.edit(), {}, &Refusal::buffer);
}

}  // namespace stepscope
