#include "engine/passes/fold_transposes.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/passes/pattern.h"
#include "engine/passes/product_node.h"

namespace stepscope {
namespace {

class Folder {
 public:
  explicit Folder(Graph& graph) : graph_(graph), readers_(graph) {}

  Result<PassResult> run() {
    const std::vector<NodeId> order = graph_.order();
    for (const NodeId id : order) {
      auto product = readProduct(graph_, graph_.node(id));
      if (!product) continue;
      bool folded = foldOperand(id, product->a, product->permA);
      folded = foldOperand(id, product->b, product->permB) || folded;
      const NodeId target = foldResult(id, *product);
      if (!folded && target == id) continue;
      writeProduct(graph_, target, Node(graph_.node(id)), *product);
      if (target != id) gone_.push_back(id);
    }
    graph_.removeNodes(gone_);
    if (result_.matches > 0) graph_.removeDeadNodes();
    return std::move(result_);
  }

 private:
  const Node* transposeOf(ValueId id, const Node& reader) const {
    const Node* node = producerOf(graph_, id, "Transpose");
    return node && node->predicates == reader.predicates ? node : nullptr;
  }

  Dims permOf(const Node& transpose, std::size_t rank) const {
    Dims perm = transpose.attrs.integers("perm");
    if (perm.empty()) {
      perm = identityPerm(rank);
      std::reverse(perm.begin(), perm.end());
    }
    return perm;
  }

  void miss(NodeId id, std::string condition) { result_.nearMisses.push_back({id, std::move(condition)}); }

  bool foldOperand(NodeId product, ValueId& operand, Dims& perm) {
    bool any = false;
    while (const Node* transpose = transposeOf(operand, graph_.node(product))) {
      const Dims inner = permOf(*transpose, perm.size());
      Dims whole(perm.size());
      for (std::size_t i = 0; i < perm.size(); ++i) whole[i] = inner[static_cast<std::size_t>(perm[i])];
      if (!keepsNeighbours(whole)) {
        miss(product, fmt::format("operand '{}': axes {} leave no neighbouring elements in a row or column", graph_.value(operand).name, dimsText(whole)));
        break;
      }
      operand = transpose->input(0);
      perm = std::move(whole);
      ++result_.matches;
      any = true;
    }
    return any;
  }

  // The node that holds the product afterwards: the Transpose that was the only reader of its result, or itself.
  NodeId foldResult(NodeId id, ProductNode& product) {
    const Node& node = graph_.node(id);
    const Node* reader = readers_.only(node.output(0));
    if (!reader || !isOp(*reader, "Transpose") || reader->predicates != node.predicates || reader->phase != node.phase) return id;
    if (product.bias || !product.open()) {
      miss(id, "its result is transposed after something was added to it");
      return id;
    }
    const Dims outer = permOf(*reader, product.permY.size());
    Dims whole(outer.size());
    for (std::size_t i = 0; i < outer.size(); ++i) whole[i] = product.permY[static_cast<std::size_t>(outer[i])];
    // The axis that is stored last has to be a row or a column of the product.
    if (whole.back() + 2 < static_cast<std::int64_t>(whole.size())) {
      miss(id, fmt::format("its result is transposed to axes {}, which leave no neighbouring elements in a row or column", dimsText(whole)));
      return id;
    }
    product.permY = std::move(whole);
    ++result_.matches;
    return reader->id;
  }

  Graph& graph_;
  Readers readers_;
  std::vector<NodeId> gone_;
  PassResult result_;
};

}  // namespace

Result<PassResult> foldTransposes(Graph& graph, Inference&) { return Folder(graph).run(); }

}  // namespace stepscope
