#include "engine/passes/fuse_epilogue.h"

#include "engine/passes/product_node.h"
#include "engine/passes/rewrite_walk.h"

namespace stepscope {
namespace {

class Fuser : RewriteWalk {
 public:
  using RewriteWalk::RewriteWalk;

  Status run() {
    const std::vector<NodeId> order = graph_.order();
    for (const NodeId id : order) {
      const Node& node = graph_.node(id);
      if (node.phase == Phase::kOptimizer) continue;
      if (isOp(node, "Add") && node.inputs.size() == 2)
        fuseSum(node);
      else if (isOp(node, "Relu"))
        fuseRelu(node);
    }
    graph_.removeNodes(gone_);
    return {};
  }

 private:
  const std::optional<Shape>& shapeOf(ValueId id) const { return graph_.value(id).type.shape; }

  std::optional<ProductNode> productOf(ValueId y) const {
    const NodeId producer = graph_.value(y).producer;
    return producer ? readProduct(graph_, graph_.node(producer)) : std::nullopt;
  }

  std::size_t madeAt(ValueId y) const { return place(graph_.value(y).producer); }

  // Why the product that makes y cannot take over what `reader` does; empty when it can.
  std::string refuse(const ProductNode& product, ValueId y, const Node& reader) const {
    const Node& producer = graph_.node(graph_.value(y).producer);
    if (producer.predicates != reader.predicates) return "the product belongs to another branch of If";
    if (producer.phase != reader.phase) return "the product belongs to another phase";
    if (!product.open()) return "the product does something after it already";
    if (!readers_.single(y)) return "the product is read as it is too";
    return {};
  }

  void write(const Node& reader, ValueId y, const ProductNode& product) {
    const NodeId producer = graph_.value(y).producer;
    writeProduct(graph_, reader.id, Node(graph_.node(producer)), product);
    gone_.push_back(producer);
    context_.match();
  }

  bool isRow(ValueId bias, ValueId y) const {
    const auto &row = shapeOf(bias), &rows = shapeOf(y);
    return row && rows && row->size() == 1 && (*row)[0] == rows->back();
  }

  void fuseSum(const Node& add) {
    // Of two products the later one takes the sum: the other one is there then.
    std::size_t first = 0;
    if (productOf(add.input(0)) && productOf(add.input(1)) && madeAt(add.input(1)) > madeAt(add.input(0))) first = 1;
    for (const std::size_t side : {first, 1 - first}) {
      const ValueId y = add.input(side), other = add.input(1 - side);
      auto product = productOf(y);
      if (!product || y == other || !shapeOf(y) || shapeOf(add.output(0)) != shapeOf(y)) continue;
      const bool row = isRow(other, y), whole = shapeOf(other) == shapeOf(y);
      if (!row && !whole) continue;
      std::string condition = refuse(*product, y, add);
      const bool oneMatrix = shapeOf(product->b)->size() == 2 && product->permA == identityPerm(product->permA.size());
      if (condition.empty() && product->permY != identityPerm(product->permY.size()))
        condition = "the product is stored transposed";
      if (condition.empty() && row && product->bias) condition = "the product has a bias already";
      if (condition.empty() && row && !oneMatrix) condition = "the product has batches or a transposed left operand";
      if (!condition.empty()) {
        context_.miss(add.id, condition);
        continue;
      }
      (row ? product->bias : product->addend) = other;
      write(add, y, *product);
      return;
    }
  }

  void fuseRelu(const Node& relu) {
    const ValueId y = relu.input(0);
    auto product = productOf(y);
    if (!product) return;
    // An addend may come before Relu, so that only an activation closes the product for it.
    const ValueId addend = product->addend;
    product->addend = {};
    const std::string condition = refuse(*product, y, relu);
    product->addend = addend;
    if (!condition.empty()) {
      context_.miss(relu.id, condition);
      return;
    }
    product->activation = "Relu";
    write(relu, y, *product);
  }

  std::vector<NodeId> gone_;
};

}  // namespace

Status fuseEpilogue(Graph& graph, PassContext& context) { return Fuser(graph, context).run(); }

}  // namespace stepscope
