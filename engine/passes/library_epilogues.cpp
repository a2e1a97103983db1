#include "engine/passes/library_epilogues.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/ops/op_def.h"
#include "engine/passes/closing_sum.h"
#include "engine/passes/product_node.h"
#include "engine/passes/rewrite_walk.h"

namespace stepscope {
namespace {

constexpr std::int64_t kRowStep = 8;  // elements between rows that a library keeps in front of Gelu

bool isTanhForm(const Node& node) { return node.attrs.text("approximate", "none") == "tanh"; }

class Chooser : RewriteWalk {
 public:
  using RewriteWalk::RewriteWalk;

  Status run() {
    const std::vector<NodeId> order = graph_.order();
    for (const NodeId id : order) {
      const Node& node = graph_.node(id);
      if (isOp(node, "Gelu") && isTanhForm(node))
        takeGelu(node);
      else if (node.domain == kInternalDomain && node.op == "GeluGrad" && isTanhForm(node))
        takeSlope(node);
      else
        takeSums(node);
    }
    graph_.removeNodes(gone_);
    return {};
  }

 private:
  std::optional<Dims> dimsOf(ValueId id) const {
    const auto& shape = graph_.value(id).type.shape;
    return shape ? knownDims(*shape) : std::nullopt;
  }
  bool isGone(NodeId id) const { return std::ranges::find(gone_, id) != gone_.end(); }

  std::optional<ProductNode> productAt(NodeId id) const {
    return id && !isGone(id) ? readProduct(graph_, graph_.node(id)) : std::nullopt;
  }

  // Why a library does nothing after this product on behalf of `reader`; empty: it does.
  std::string refuse(const ProductNode& product, const Node& maker, const Node& reader) const {
    const DType dtype = graph_.value(maker.output(0)).type.dtype;
    if (maker.predicates != reader.predicates) return "the product belongs to another branch of If";
    if (maker.phase != reader.phase) return "the product belongs to another phase";
    if (!product.open()) return "the product does something after it already";
    if (dtype != DType::kF32 && !isLow(dtype)) return fmt::format("the product is in {}", dtypeName(dtype));
    const auto shape = shapeOfProduct(graph_, product);
    if (!shape) return "its extents are not known";
    if (shape->batches() != 1) return fmt::format("it is {} products; expected one matrix", shape->batches());
    return {};
  }
  // The same for Gelu and its slope, in front of which rows are kept.
  std::string refuseRows(const ProductNode& product, const Node& maker) const {
    if (product.permY != identityPerm(product.permY.size())) return "the product is stored transposed";
    const std::int64_t columns = dimsOf(maker.output(0))->back();
    if (columns % kRowStep != 0) return fmt::format("rows of {} elements; expected a multiple of {}", columns, kRowStep);
    return {};
  }

  bool isRecomputed() const {
    const std::string_view budget = context_.option("recompute.budget", "0"), plan = context_.option("recompute.plan", "");
    return budget != "0" || !plan.empty();
  }

  void takeGelu(const Node& gelu) {
    const ValueId before = gelu.input(0), z = gelu.output(0);
    const NodeId absorbed = gelu.id, maker = graph_.value(before).producer;
    const auto product = productAt(maker);
    if (!product) return;
    std::string condition = isRecomputed() ? "what is computed again is chosen, and Gelu is cheap" : "";
    if (condition.empty()) condition = refuse(*product, graph_.node(maker), gelu);
    if (condition.empty()) condition = refuseRows(*product, graph_.node(maker));
    if (!condition.empty()) return context_.miss(gelu.id, std::move(condition));
    const bool read = readers_.of(before).size() > 1 || readers_.isKept(before);
    graph_.swapOutputs(before, z);
    if (read) graph_.moveOutput(before, maker, 1);
    Node& node = write(maker, Node(graph_.node(maker)), *product, "activation", "Gelu");
    node.provenance.sources.push_back(absorbed);
    gone_.push_back(absorbed);
  }

  void takeSlope(const Node& slope) {
    const NodeId maker = graph_.value(slope.input(0)).producer;
    const auto product = productAt(maker);
    if (!product) return;
    std::string condition = refuse(*product, graph_.node(maker), slope);
    if (condition.empty()) condition = refuseRows(*product, graph_.node(maker));
    if (condition.empty() && product->bias) condition = "the product has a bias";
    if (condition.empty() && !readers_.single(slope.input(0))) condition = "the product is read as it is too";
    if (condition.empty() && dimsOf(slope.input(1)) != dimsOf(slope.input(0))) condition = "its operands are broadcast";
    if (!condition.empty()) return context_.miss(slope.id, std::move(condition));
    const ValueId x = slope.input(1);
    Node& node = write(slope.id, Node(graph_.node(maker)), *product, "activation", "GeluGrad");
    node.inputs = {product->a, product->b, {}, x};
    gone_.push_back(maker);
  }

  // The sum of a matrix over its rows, which is the gradient of a bias that was added to each.
  void takeSums(const Node& sum) {
    const auto closing = closingSumOf(graph_, context_.inference, sum);
    if (!closing || closing->mean) return;
    const auto dims = dimsOf(sum.input(0)), result = dimsOf(sum.output(0));
    if (result->size() != 1 || result->back() != dims->back() || closing->axes.size() + 1 != dims->size()) return;
    const ValueId dy = sum.input(0);
    std::string condition = takeSumsOf(sum, dy);
    for (const Use& use : readers_.of(dy)) {
      if (condition.empty() || use.input != 0) continue;
      const Node& view = graph_.node(use.node);
      if ((!isOp(view, "Flatten") && !isOp(view, "Reshape")) || view.predicates != sum.predicates) continue;
      const auto seen = dimsOf(view.output(0));
      if (seen && seen->size() == 2 && seen->back() == dims->back()) condition = takeSumsOf(sum, view.output(0));
    }
    if (!condition.empty()) context_.miss(sum.id, std::move(condition));
  }

  // Why no product that reads the matrix adds up its rows; empty: one does now.
  std::string takeSumsOf(const Node& sum, ValueId matrix) {
    const ValueId result = sum.output(0);
    std::string why = fmt::format("no product reads '{}' by rows", graph_.value(sum.input(0)).name);
    for (const Use& use : readers_.of(matrix)) {
      const auto product = use.input < 2 ? productAt(use.node) : std::nullopt;
      if (!product || product->a == product->b) continue;
      const bool left = use.input == 0;
      if (!(left ? product->viewA : product->viewB).empty()) continue;
      // The product sums over the rows of the matrix.
      if ((left ? product->permA : product->permB) != (left ? Dims{1, 0} : Dims{0, 1})) continue;
      const Node& maker = graph_.node(use.node);
      why = refuse(*product, maker, sum);
      if (why.empty() && (product->bias || product->alpha != 1)) why = "the product has a bias or a factor";
      if (why.empty() && graph_.value(result).type.dtype != graph_.value(matrix).type.dtype)
        why = "the sum is in another type than the product";
      const auto reads = readers_.of(result);
      if (why.empty() && std::ranges::any_of(reads, [&](const Use& r) { return place(r.node) <= place(maker.id); }))
        why = "the sum is read before the product is there";
      if (!why.empty()) continue;
      const NodeId reduction = sum.id;
      Node& node = write(maker.id, Node(maker), *product, "sums", left ? "a" : "b");
      node.provenance.sources.push_back(reduction);
      graph_.moveOutput(result, node.id, 1);
      gone_.push_back(reduction);
      return {};
    }
    return why;
  }

  // `target` becomes the product of `from` with this attribute.
  Node& write(NodeId target, const Node& from, const ProductNode& product, std::string attribute, std::string value) {
    writeProduct(graph_, target, from, product);
    Node& node = graph_.mutableNode(target);
    node.op = "EpilogueProduct";
    node.attrs.set(std::move(attribute), std::move(value));
    context_.match();
    return node;
  }

  std::vector<NodeId> gone_;
};

}  // namespace

Status libraryEpilogues(Graph& graph, PassContext& context) {
  if (context.target.device != "cuda") {
    context.note(fmt::format("'{}' has no library that does more than a product", context.target.device));
    return {};
  }
  return Chooser(graph, context).run();
}

}  // namespace stepscope
