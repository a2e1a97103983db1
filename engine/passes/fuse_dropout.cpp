#include "engine/passes/fuse_dropout.h"

#include <algorithm>
#include <string>
#include <vector>

#include "engine/passes/rewrite_walk.h"

namespace stepscope {
namespace {

class Fuser : RewriteWalk {
 public:
  using RewriteWalk::RewriteWalk;

  Status run() {
    for (const NodeId id : std::vector<NodeId>(graph_.order()))
      if (isOp(graph_.node(id), "Dropout")) fuse(Node(graph_.node(id)));
    graph_.removeNodes(gone_);
    return {};
  }

 private:
  const ValueType& typeOf(ValueId id) const { return graph_.value(id).type; }
  bool whole(ValueId id, ValueId x) const { return typeOf(id).shape && typeOf(id).shape == typeOf(x).shape; }
  bool row(ValueId id, ValueId x) const {
    const auto &bias = typeOf(id).shape, &shape = typeOf(x).shape;
    return bias && shape && !shape->empty() && bias->size() == 1 && bias->front() == shape->back();
  }
  bool isSum(const Node& node) const { return isOp(node, "Add") && node.inputs.size() == 2; }

  // Why a sum that is next to the Dropout cannot go into it; empty where it can.
  std::string refusal(const Node& dropout, const Node& sum, ValueId between) const {
    if (sum.predicates != dropout.predicates || sum.phase != dropout.phase)
      return "the sum belongs to another phase or branch of If";
    if (!readers_.single(between)) return "what lies between Dropout and sum is read elsewhere too";
    if (typeOf(between).dtype != DType::kF32) return "the values are no float32";
    return {};
  }

  // x and bias where the Dropout reads their sum; x alone where it does not, or may not.
  std::pair<ValueId, ValueId> readBias(const Node& dropout) {
    const ValueId x = dropout.input(0);
    const NodeId maker = graph_.value(x).producer;
    if (!maker || !isSum(graph_.node(maker))) return {x, {}};
    const Node& sum = graph_.node(maker);
    for (const std::size_t side : {1u, 0u}) {
      const ValueId bias = sum.input(side), of = sum.input(1 - side);
      if (!whole(of, x) || (!row(bias, x) && !whole(bias, x))) continue;
      if (std::string why = refusal(dropout, sum, x); !why.empty()) {
        context_.miss(maker, std::move(why));
        return {x, {}};
      }
      return {of, bias};
    }
    context_.miss(maker, "the bias is broadcast along other axes than the first ones");
    return {x, {}};
  }

  // The sum that reads the result, and its other operand.
  std::pair<NodeId, ValueId> readResidual(const Node& dropout) {
    const ValueId y = dropout.output(0);
    NodeId reader;
    for (const Use& use : readers_.of(y))
      if (use.input != SIZE_MAX && isSum(graph_.node(use.node))) reader = use.node;
    if (!reader) return {};
    const Node& sum = graph_.node(reader);
    const ValueId residual = sum.input(sum.input(0) == y ? 1 : 0);
    std::string why = refusal(dropout, sum, y);
    if (why.empty() && (residual == y || !whole(residual, y))) why = "the residual has other extents than the Dropout";
    // The mask is made where the sum is: what reads it has to stand behind.
    for (const Use& use : dropout.output(1) ? readers_.of(dropout.output(1)) : std::span<const Use>{})
      if (why.empty() && place(use.node) < place(reader)) why = "the mask is read before the sum";
    if (why.empty()) return {reader, residual};
    context_.miss(reader, std::move(why));
    return {};
  }

  void fuse(const Node& dropout) {
    const auto [x, bias] = readBias(dropout);
    const auto [sum, residual] = readResidual(dropout);
    if (!bias && !sum) return;
    const NodeId target = sum ? sum : dropout.id;
    Node model = dropout;
    model.domain = kInternalDomain;
    model.op = "BiasDropout";
    std::vector<NodeId> absorbed;
    if (bias) absorbed.push_back(graph_.value(dropout.input(0)).producer);
    if (sum) absorbed.push_back(dropout.id);
    becomeLike(graph_, target, model, {x, bias, residual, dropout.input(1), dropout.input(2)}, absorbed);
    if (sum) {
      graph_.mutableNode(target).provenance.imported = dropout.provenance.imported;  // whose key it draws with
      if (dropout.output(1)) graph_.moveOutput(dropout.output(1), target, 1);
    }
    gone_.insert(gone_.end(), absorbed.begin(), absorbed.end());
    context_.match();
  }

  std::vector<NodeId> gone_;
};

}  // namespace

Status fuseDropout(Graph& graph, PassContext& context) { return Fuser(graph, context).run(); }

}  // namespace stepscope
