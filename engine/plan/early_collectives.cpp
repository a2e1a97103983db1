#include "engine/plan/early_collectives.h"

#include <algorithm>
#include <deque>

#include "engine/ops/op_def.h"
#include "kernels/index.h"

namespace stepscope {
namespace {

bool isCollective(const OpRegistry& ops, const Node& node) {
  const OpDef* op = ops.find(node);
  return op && op->sideEffect == SideEffect::kCollective;
}

bool gathers(const Node& node) { return node.op == "AllGather"; }

}  // namespace

std::vector<NodeId> delayCollectives(const Graph& graph, const OpRegistry& ops, const std::vector<NodeId>& nodes,
                                     bool untilNext) {
  std::vector<NodeId> order;
  std::deque<NodeId> held;
  const auto put = [&](std::size_t count) {
    for (; count > 0; --count) {
      order.push_back(held.front());
      held.pop_front();
    }
  };
  // How many of those that are held must run first, because `node` reads what one of them makes.
  const auto neededBy = [&](const Node& node) {
    std::size_t count = 0;
    const auto need = [&](ValueId value) {
      if (!value) return;
      const auto found = std::ranges::find(held, graph.value(value).producer);
      if (found != held.end()) count = std::max(count, static_cast<std::size_t>(found - held.begin()) + 1);
    };
    for (const ValueId input : node.inputs) need(input);
    for (const Predicate& predicate : node.predicates) need(predicate.condition);
    return count;
  };
  for (const NodeId id : nodes) {
    const Node& node = graph.node(id);
    const bool collective = isCollective(ops, node), sums = collective && !gathers(node) && node.predicates.empty();
    put(collective && (untilNext || !sums) ? held.size() : neededBy(node));
    if (sums)
      held.push_back(id);
    else
      order.push_back(id);
  }
  put(held.size());
  return order;
}

void beginCollectivesEarly(ExecutionPlan& plan, const Graph& graph, const OpRegistry& ops, bool sums, bool gather) {
  plan.early.clear();
  if (plan.space != Space::kHost) return;
  std::vector<int> written(plan.buffers.size(), -1), touched(plan.buffers.size(), -1);  // by owner: the last instruction
  int begins = 0, gathered = -1;  // where the collective before begins; the place of the one that gathers before
  const auto owner = [&](int buffer) { return at(plan.root(buffer)); };
  for (int i = 0; i < static_cast<int>(plan.instructions.size()); ++i) {
    const Instruction& instruction = plan.instructions[at(i)];
    if (instruction.view) continue;
    const Node& node = graph.node(instruction.node);
    if (instruction.kind == InstructionKind::kKernel && isCollective(ops, node)) {
      bool early = (gathers(node) ? gather : sums) && instruction.predicates.empty() && !instruction.dynamic;
      for (const int b : instruction.outputs) early = early && (b < 0 || plan.buffers[owner(b)].home == Home::kArena);
      if (early) {
        for (const int b : instruction.inputs)
          if (b >= 0) begins = std::max(begins, written[owner(b)] + 1);
        for (const int b : instruction.outputs)
          if (b >= 0) begins = std::max(begins, touched[owner(b)] + 1);
        if (gathers(node)) begins = std::max(begins, gathered + 1);
      } else {
        begins = i;
      }
      if (gathers(node)) gathered = i;
      if (begins < i) {
        plan.early.push_back({i, begins});
        for (const int b : instruction.outputs)
          if (b >= 0) {
            Buffer& result = plan.buffers.edit(owner(b));
            result.first = std::min(result.first, begins);
          }
      } else {
        begins = i + 1;  // it runs at its place: none behind it before that
      }
    }
    for (const int b : instruction.inputs)
      if (b >= 0) touched[owner(b)] = i;
    for (const int b : instruction.outputs)
      if (b >= 0) touched[owner(b)] = written[owner(b)] = i;
  }
}

}  // namespace stepscope
