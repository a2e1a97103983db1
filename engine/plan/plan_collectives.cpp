#include "engine/plan/plan_collectives.h"

#include <numeric>

#include "engine/ops/op_def.h"

namespace stepscope {
namespace {

CollectiveEnds endsOf(const Node& node) {
  const auto number = [&](const char* name, int fallback) { return static_cast<int>(node.attrs.integer(name, fallback)); };
  if (node.op == "Broadcast") return {.from = number("root", 0)};
  if (node.op == "Reduce") return {.to = number("root", 0)};
  if (node.op == "Recv") return {number("from", -1), number("to", -1)};
  return {};
}

}  // namespace

std::vector<PlannedCollective> collectivesOf(const Graph& graph, const ExecutionPlan& plan, const OpRegistry& ops, int rank,
                                             int ranks) {
  std::vector<PlannedCollective> found;
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    if (instruction.kind != InstructionKind::kKernel || instruction.view) continue;
    const Node& node = graph.node(instruction.node);
    const OpDef* op = ops.find(node);
    if (!op || op->sideEffect != SideEffect::kCollective) continue;
    // Of an AllGather the results are whole, of the others the operands.
    std::vector<std::int64_t> elements;
    DType dtype = DType::kUndefined;
    for (const ValueId id : node.op == "AllGather" || node.op == "AllGatherRows" ? node.outputs : node.inputs) {
      if (!id) continue;
      const ValueType& type = graph.value(id).type;
      const auto dims = type.shape ? knownDims(*type.shape) : std::nullopt;
      elements.push_back(dims ? elementCount(*dims) : 0);
      dtype = type.dtype;
    }
    const std::int64_t all = std::accumulate(elements.begin(), elements.end(), std::int64_t{0});
    found.push_back({instruction.node, static_cast<int>(i), all * static_cast<std::int64_t>(dtypeSize(dtype)),
                     collectiveSentBytes(node.op, elements, dtype, rank, ranks, endsOf(node)), instruction.updateEntry,
                     endsOf(node)});
  }
  return found;
}

}  // namespace stepscope
