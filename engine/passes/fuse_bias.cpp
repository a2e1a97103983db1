#include "engine/passes/fuse_bias.h"

#include <algorithm>

#include "engine/passes/product_node.h"

namespace stepscope {
namespace {

// Leading axes that the right operand lacks: the product is one matrix, and so is what the primitive writes.
bool oneMatrix(const Graph& graph, const ProductNode& product) {
  return graph.value(product.b).type.shape->size() == 2 && product.permA == identityPerm(product.permA.size());
}

}  // namespace

Result<PassResult> fuseBias(Graph& graph, Inference&) {
  PassResult result;
  std::vector<bool> isOutput(graph.valueCapacity(), false);
  for (const ValueId out : graph.outputs()) isOutput[static_cast<std::size_t>(out.index)] = true;
  for (const StateUpdate& update : graph.stateUpdates) isOutput[static_cast<std::size_t>(update.next.index)] = true;
  const auto uses = graph.uses();
  std::vector<NodeId> gone;
  const std::vector<NodeId> order = graph.order();
  for (const NodeId id : order) {
    const Node& add = graph.node(id);
    if (!add.domain.empty() || add.op != "Add" || add.inputs.size() != 2) continue;
    for (const std::size_t side : {0u, 1u}) {
      const ValueId y = add.input(side), bias = add.input(1 - side);
      const NodeId producer = graph.value(y).producer;
      if (!producer) continue;
      auto product = readProduct(graph, graph.node(producer));
      const auto &rows = graph.value(y).type.shape, &row = graph.value(bias).type.shape;
      if (!product || !rows || !row || row->size() != 1 || (*row)[0] != rows->back() || graph.value(add.output(0)).type.shape != rows) continue;
      std::string condition;
      if (graph.node(producer).predicates != add.predicates) condition = "the product belongs to another branch of If";
      else if (product->bias) condition = "the product has a bias already";
      else if (product->permY != identityPerm(product->permY.size())) condition = "the product is stored transposed";
      else if (!oneMatrix(graph, *product)) condition = "the product has batches or a transposed left operand";
      else if (uses[static_cast<std::size_t>(y.index)].size() != 1 || isOutput[static_cast<std::size_t>(y.index)])
        condition = "the product is read without the bias too";
      if (!condition.empty()) {
        result.nearMisses.push_back({id, condition});
        continue;
      }
      product->bias = bias;
      writeProduct(graph, id, Node(graph.node(producer)), *product);
      gone.push_back(producer);
      ++result.matches;
      break;
    }
  }
  graph.removeNodes(gone);
  return result;
}

}  // namespace stepscope
