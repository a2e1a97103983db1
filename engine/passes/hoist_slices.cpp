#include "engine/passes/hoist_slices.h"

#include <algorithm>

#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

// Why the rows of `product` cannot be sliced before it; empty when they can.
std::string refuse(const Graph& graph, const Inference& inference, const Node& slice, const Node& product,
                   bool readElsewhere) {
  const auto &a = graph.value(product.input(0)).type.shape, &b = graph.value(product.input(1)).type.shape;
  if (!a || !b || b->size() != 2 || a->size() < 2) return "the right operand is no matrix";
  if (readElsewhere) return "the product is read whole too";
  if (product.predicates != slice.predicates) return "the product belongs to another branch of If";
  const auto rank = static_cast<std::int64_t>(a->size());
  const auto axes = slice.input(3) ? inference.integers(slice.input(3)) : std::nullopt;
  if (!axes) return "the axes of the slice are not known";
  for (const std::int64_t axis : *axes)
    if (axis == rank - 1 || axis == -1) return "it slices columns of the product";
  return {};
}

}  // namespace

Status hoistSlices(Graph& graph, PassContext& context) {
  Inference& inference = context.inference;
  const Readers readers(graph);
  std::vector<NodeId> gone;
  const std::vector<NodeId> order = graph.order();
  std::vector<NodeId> sorted;
  for (const NodeId id : order) {
    sorted.push_back(id);
    const Node& slice = graph.node(id);
    const ValueId y = slice.input(0);
    const Node* matmul = isOp(slice, "Slice") ? producerOf(graph, y, "MatMul") : nullptr;
    if (!matmul) continue;
    const Node product = *matmul;
    if (const std::string condition = refuse(graph, inference, slice, product, !readers.single(y)); !condition.empty()) {
      context.miss(id, condition);
      continue;
    }
    std::vector<ValueId> inputs = slice.inputs;
    inputs[0] = product.input(0);
    const NodeId rows = graph.addNode(slice.name + "_rows", "", "Slice", std::move(inputs),
                                      {graph.value(product.input(0)).name + "_rows"}, slice.attrs);
    Node& first = graph.mutableNode(rows);
    first.provenance = slice.provenance;
    first.provenance.sources.push_back(id);
    first.sinceVersion = slice.sinceVersion;
    SS_TRY(inference.inferNode(rows));
    Node& target = graph.mutableNode(id);
    target.op = "MatMul";
    target.inputs = {graph.node(rows).output(0), product.input(1)};
    target.attrs = {};
    target.provenance = product.provenance;
    target.provenance.sources.push_back(product.id);
    target.provenance.pass = graph.pass();
    graph.logChange(id);
    sorted.insert(sorted.end() - 1, rows);
    gone.push_back(product.id);
    context.match();
  }
  if (context.result.matches == 0) return {};
  graph.setOrder(std::move(sorted));
  graph.removeNodes(gone);
  return {};
}

}  // namespace stepscope
