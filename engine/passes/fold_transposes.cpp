#include "engine/passes/fold_transposes.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/passes/pattern.h"
#include "engine/passes/product_node.h"

namespace stepscope {
namespace {

class Folder {
 public:
  Folder(Graph& graph, PassContext& context) : graph_(graph), context_(context), readers_(graph) {}

  Status run() {
    const std::vector<NodeId> order = graph_.order();
    for (const NodeId id : order) {
      auto product = readProduct(graph_, graph_.node(id));
      if (!product) continue;
      bool folded = foldOperand(id, *product, true);
      folded = foldOperand(id, *product, false) || folded;
      const NodeId target = foldResult(id, *product);
      if (!folded && target == id) continue;
      writeProduct(graph_, target, Node(graph_.node(id)), *product);
      if (target != id) gone_.push_back(id);
    }
    graph_.removeNodes(gone_);
    if (context_.result.matches > 0) graph_.removeDeadNodes();
    return {};
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

  void miss(NodeId id, std::string condition) { context_.miss(id, std::move(condition)); }

  // How many products are computed one after the other. 0 when the extents are not known.
  std::int64_t productsOf(const ProductNode& product) const {
    const auto shape = shapeOfProduct(graph_, product);
    return shape ? shape->batches() : 0;
  }
  bool splits(NodeId id, const ProductNode& before, const ProductNode& after, std::string_view what) {
    const std::int64_t whole = productsOf(before), parts = productsOf(after);
    if (whole == 0 || parts <= whole) return false;
    miss(id, fmt::format("{}: {} products of few rows instead of {}", what, parts, whole));
    return true;
  }

  bool foldOperand(NodeId id, ProductNode& product, bool left) {
    bool any = false;
    if (!(left ? product.viewA : product.viewB).empty()) return any;  // it sees something else than what the node makes
    while (const Node* transpose = transposeOf(left ? product.a : product.b, graph_.node(id))) {
      const Dims& perm = left ? product.permA : product.permB;
      const Dims inner = permOf(*transpose, perm.size());
      Dims whole(perm.size());
      for (std::size_t i = 0; i < perm.size(); ++i) whole[i] = inner[static_cast<std::size_t>(perm[i])];
      if (!keepsNeighbours(whole)) {
        miss(id, fmt::format("operand '{}': axes {} leave no neighbouring elements in a row or column",
                             graph_.value(transpose->output(0)).name, dimsText(whole)));
        break;
      }
      ProductNode next = product;
      (left ? next.a : next.b) = transpose->input(0);
      (left ? next.permA : next.permB) = std::move(whole);
      if (splits(id, product, next, fmt::format("operand '{}'", graph_.value(transpose->output(0)).name))) break;
      product = std::move(next);
      context_.match();
      any = true;
    }
    return any;
  }

  // The node that holds the product afterwards: the Transpose that was the only reader of its result, or itself.
  NodeId foldResult(NodeId id, ProductNode& product) {
    const Node& node = graph_.node(id);
    const Node* reader = readers_.only(node.output(0));
    if (!reader || !isOp(*reader, "Transpose") || reader->predicates != node.predicates || reader->phase != node.phase)
      return id;
    if (product.bias || !product.open()) {
      miss(id, "its result is transposed after something was added to it");
      return id;
    }
    const Dims outer = permOf(*reader, product.permY.size());
    Dims whole(outer.size());
    for (std::size_t i = 0; i < outer.size(); ++i) whole[i] = product.permY[static_cast<std::size_t>(outer[i])];
    // The axis that is stored last has to be a row or a column of the product.
    if (whole.back() + 2 < static_cast<std::int64_t>(whole.size())) {
      miss(id, fmt::format("its result is transposed to axes {}, which leave no neighbouring elements in a row or column",
                           dimsText(whole)));
      return id;
    }
    ProductNode next = product;
    next.permY = std::move(whole);
    if (splits(id, product, next, "its result is transposed")) return id;
    product = std::move(next);
    context_.match();
    return reader->id;
  }

  Graph& graph_;
  PassContext& context_;
  Readers readers_;
  std::vector<NodeId> gone_;
};

}  // namespace

Status foldTransposes(Graph& graph, PassContext& context) { return Folder(graph, context).run(); }

}  // namespace stepscope
