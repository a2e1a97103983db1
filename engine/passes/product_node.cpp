#include "engine/passes/product_node.h"

#include <algorithm>
#include <numeric>

#include "engine/ops/op_def.h"

namespace stepscope {
namespace {

// Of an operand as the product sees it.
std::optional<std::size_t> rankOf(const Graph& graph, ValueId id, const Dims& view = {}) {
  if (!view.empty()) return (view.size() - 1) / 2;
  if (!id) return std::nullopt;
  const auto& shape = graph.value(id).type.shape;
  return shape ? std::optional(shape->size()) : std::nullopt;
}

Dims permOf(const Attributes& attrs, std::string_view name, bool exchange, std::size_t rank) {
  Dims perm = attrs.integers(name);
  if (perm.empty()) perm = identityPerm(rank);
  if (exchange) std::swap(perm.back(), perm[rank - 2]);
  return perm;
}

bool isIdentity(const Dims& perm) { return perm == identityPerm(perm.size()); }

bool addsRow(const Graph& graph, const Node& gemm) {
  const auto& c = graph.value(gemm.input(2)).type.shape;
  const auto& y = graph.value(gemm.output(0)).type.shape;
  return c && y && c->size() == 1 && (*c)[0] == y->back() && gemm.attrs.real("beta", 1.0f) == 1.0f;
}

}  // namespace

Dims identityPerm(std::size_t rank) {
  Dims perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  return perm;
}

bool keepsNeighbours(const Dims& perm) {
  const auto last = static_cast<std::int64_t>(perm.size()) - 1;
  return perm.size() < 2 || perm.back() == last || perm[perm.size() - 2] == last;
}

std::optional<ProductNode> readProduct(const Graph& graph, const Node& node) {
  const bool gemm = node.domain.empty() && node.op == "Gemm", own = node.domain == kInternalDomain && node.op == "Product";
  if (!gemm && !own && !(node.domain.empty() && node.op == "MatMul") &&
      !(node.domain == "com.microsoft" && node.op == "FusedMatMul") &&
      !(node.domain == kInternalDomain && node.op == "BatchedMatMul"))
    return std::nullopt;
  const Dims viewA = node.attrs.integers("viewA"), viewB = node.attrs.integers("viewB");
  const auto rankA = rankOf(graph, node.input(0), viewA), rankB = rankOf(graph, node.input(1), viewB),
             rankY = rankOf(graph, node.output(0));
  if (!rankA || !rankB || !rankY || *rankA < 2 || *rankB < 2) return std::nullopt;
  ProductNode product{.a = node.input(0),
                      .b = node.input(1),
                      .bias = {},
                      .addend = {},
                      .alpha = node.attrs.real("alpha", 1.0f),
                      .permA = {},
                      .permB = {},
                      .permY = {},
                      .viewA = viewA,
                      .viewB = viewB};
  if (gemm && node.input(2)) {
    if (!addsRow(graph, node)) return std::nullopt;
    product.bias = node.input(2);
  }
  if (own) {
    product.bias = node.input(2);
    product.addend = node.input(3);
    product.activation = node.attrs.text("activation", "");
  }
  product.permA = permOf(node.attrs, "permA", node.attrs.integer("transA", 0) != 0, *rankA);
  product.permB = permOf(node.attrs, "permB", node.attrs.integer("transB", 0) != 0, *rankB);
  product.permY = permOf(node.attrs, "permY", false, *rankY);
  return product;
}

std::optional<MatMulShape> shapeOfProduct(const Graph& graph, const ProductNode& product) {
  const auto seen = [&](ValueId id, const Dims& view) -> std::optional<StridedView> {
    const auto& shape = graph.value(id).type.shape;
    const auto dims = shape ? knownDims(*shape) : std::nullopt;
    if (!dims) return std::nullopt;
    Attributes attrs;
    if (!view.empty()) attrs.set("view", view);
    auto found = StridedView::of(*dims, attrs, "view");
    return found ? std::optional(std::move(*found)) : std::nullopt;
  };
  const auto a = seen(product.a, product.viewA), b = seen(product.b, product.viewB);
  if (!a || !b) return std::nullopt;
  ProductForm form;
  form.permA = product.permA;
  form.permB = product.permB;
  form.permY = product.permY;
  auto shape = matMulShape(*a, *b, form);
  if (!shape) return std::nullopt;
  mergeBatches(*shape);
  return std::move(*shape);
}

void writeProduct(Graph& graph, NodeId target, const Node& from, const ProductNode& product) {
  Provenance provenance = from.provenance;
  if (from.id != target &&
      std::find(provenance.sources.begin(), provenance.sources.end(), from.id) == provenance.sources.end())
    provenance.sources.push_back(from.id);
  provenance.pass = graph.pass();
  Node& node = graph.mutableNode(target);
  node.provenance = std::move(provenance);
  node.phase = from.phase;
  node.domain = kInternalDomain;
  node.op = "Product";
  node.inputs = {product.a, product.b};
  if (product.bias || product.addend) node.inputs.push_back(product.bias);
  if (product.addend) node.inputs.push_back(product.addend);
  Attributes attrs;
  if (product.alpha != 1.0f) attrs.set("alpha", product.alpha);
  if (!isIdentity(product.permA)) attrs.set("permA", product.permA);
  if (!isIdentity(product.permB)) attrs.set("permB", product.permB);
  if (!isIdentity(product.permY)) attrs.set("permY", product.permY);
  if (!product.viewA.empty()) attrs.set("viewA", product.viewA);
  if (!product.viewB.empty()) attrs.set("viewB", product.viewB);
  if (!product.activation.empty()) attrs.set("activation", product.activation);
  node.attrs = std::move(attrs);
  graph.logChange(target);
}

}  // namespace stepscope
