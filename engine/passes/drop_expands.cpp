#include "engine/passes/drop_expands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

bool broadcasts(const Node& node) {
  static constexpr std::array<std::string_view, 17> kOps{"Add",  "And",         "Div", "Equal", "Greater", "GreaterOrEqual",
                                                         "Less", "LessOrEqual", "Max", "Mean",  "Min",     "Mul",
                                                         "Or",   "Pow",         "Sub", "Sum",   "Where"};
  return node.domain.empty() && std::ranges::find(kOps, node.op) != kOps.end();
}

// The extents of operands that broadcast together; nothing where one of them is unknown or two are not known to fit.
std::optional<Shape> together(const Graph& graph, const std::vector<ValueId>& operands) {
  Shape all;
  for (const ValueId operand : operands) {
    const auto& shape = operand ? graph.value(operand).type.shape : std::nullopt;
    if (!shape) return std::nullopt;
    if (shape->size() > all.size()) all.insert(all.begin(), shape->size() - all.size(), Dim(1));
    for (std::size_t i = 0; i < shape->size(); ++i) {
      Dim& dim = all[all.size() - shape->size() + i];
      if (dim == Dim(1))
        dim = (*shape)[i];
      else if ((*shape)[i] != Dim(1) && (*shape)[i] != dim)
        return std::nullopt;
    }
  }
  return all;
}

}  // namespace

Status dropExpands(Graph& graph, PassContext& context) {
  const Readers readers(graph);
  for (const NodeId id : std::vector<NodeId>(graph.order())) {
    const Node node = graph.node(id);
    if (!isOp(node, "Expand") || readers.of(node.output(0)).empty()) continue;
    const ValueId y = node.output(0), x = node.input(0);
    std::string why = readers.isKept(y) ? "its result outlives the graph" : "";
    const NodeId made = graph.value(x).producer;
    if (!node.predicates.empty() && (!made || graph.node(made).predicates != node.predicates))
      why = "it belongs to a branch of If, its input does not";
    for (const Use& use : readers.of(y)) {
      if (!why.empty()) break;
      const Node& reader = graph.node(use.node);
      if (use.input == SIZE_MAX || !broadcasts(reader)) {
        why = fmt::format("{} does not broadcast what it reads", reader.label());
        continue;
      }
      std::vector<ValueId> operands = reader.inputs;
      std::ranges::replace(operands, y, x);
      const auto& result = graph.value(reader.output(0)).type.shape;
      if (const auto shape = together(graph, operands); !shape || !result || *shape != *result)
        why = fmt::format("the result of {} gets its extents from it", reader.label());
    }
    if (!why.empty()) {
      context.miss(id, why);
      continue;
    }
    for (const Use& use : std::vector<Use>(readers.of(y).begin(), readers.of(y).end()))
      graph.setInput(use.node, use.input, x);
    context.match();
  }
  if (context.result.matches > 0) graph.removeDeadNodes();
  return {};
}

}  // namespace stepscope
