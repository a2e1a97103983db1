#include <string>

#include "engine/ops/linear/matmul_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

constexpr const char* kViews[] = {"viewQ", "viewK", "viewV"};

// Extents of the operands as the product sees them.
struct Operands {
  Shape q, k, v;  // [lead.., m, d], [lead.., n, d], [lead.., n, e]
};

// Nothing where a rank is not known. `first`: the input that is q.
Result<std::optional<Operands>> operandsOf(ShapeContext& c, std::size_t first) {
  SS_TRY(requireOneType(c, {first, first + 1, first + 2}));
  if (c.hasInput(first + 4) && c.inputDType(first + 4) != DType::kI64 && c.inputDType(first + 4) != DType::kUndefined)
    return c.error("kept rows are " + std::string(dtypeName(c.inputDType(first + 4))) + "; expected int64");
  if (!c.rankKnown(first) || !c.rankKnown(first + 1) || !c.rankKnown(first + 2)) return std::optional<Operands>{};
  Operands o;
  SS_ASSIGN(o.q, seenShape(c, first, "viewQ", "permQ"));
  SS_ASSIGN(o.k, seenShape(c, first + 1, "viewK", "permK"));
  SS_ASSIGN(o.v, seenShape(c, first + 2, "viewV", "permV"));
  if (o.q.size() < 2 || o.k.size() != o.q.size() || o.v.size() != o.q.size())
    return c.error("q " + shapeText(o.q) + ", k " + shapeText(o.k) + ", v " + shapeText(o.v) +
                   "; expected the same rank, 2 or more");
  const std::size_t lead = o.q.size() - 2;
  // One element of k and v for all heads along the innermost leading axes.
  std::size_t apart = lead;
  while (apart > 0 && o.k[apart - 1] == Dim(1) && o.v[apart - 1] == Dim(1)) --apart;
  if (const std::int64_t groups = c.attrs().integer("groups", 1); groups != 1) {
    if (groups < 1 || lead == 0) return c.error("groups is " + std::to_string(groups) + "; expected 1 or more, and heads");
    SS_TRY(c.unify(o.q[lead - 1], o.k[lead - 1] * Dim(groups), "heads of q and of groups of k"));
    SS_TRY(c.unify(o.q[lead - 1], o.v[lead - 1] * Dim(groups), "heads of q and of groups of v"));
    apart = lead - 1;
  }
  for (std::size_t i = 0; i < apart; ++i) {
    SS_TRY(c.unify(o.q[i], o.k[i], "leading extents of q and k"));
    SS_TRY(c.unify(o.q[i], o.v[i], "leading extents of q and v"));
  }
  SS_TRY(c.unify(o.q.back(), o.k.back(), "extents of q and k"));
  SS_TRY(c.unify(o.k[lead], o.v[lead], "rows of k and v"));
  return std::optional<Operands>(std::move(o));
}

DType fusedAttentionStatisticsType(DType type) { return isLow(type) ? DType::kF32 : type; }

Status inferFusedAttentionShape(ShapeContext& c) {
  SS_ASSIGN(const std::optional<Operands> o, operandsOf(c, 0));
  const DType type = c.inputDType(0);
  if (!o) {
    c.setOutput(0, type, std::nullopt);
    if (c.hasOutput(1)) c.setOutput(1, fusedAttentionStatisticsType(type), std::nullopt);
    return {};
  }
  const std::size_t lead = o->q.size() - 2;
  if (c.hasInput(3) && c.rankKnown(3)) {
    if (c.inputDType(3) != DType::kBool) SS_TRY(requireOneType(c, {0, 3}));
    Shape scores(o->q.begin(), o->q.end() - 1);
    scores.push_back(o->k[lead]);
    SS_ASSIGN(const Shape both, c.broadcast(scores, *c.inputShape(3)));
    if (both.size() != scores.size())
      return c.error("mask of shape " + shapeText(*c.inputShape(3)) + " does not broadcast to " + shapeText(scores));
  }
  Shape y(o->q.begin(), o->q.end() - 1);
  Shape statistics = y;
  statistics.push_back(Dim(2));
  y.push_back(o->v.back());
  SS_ASSIGN(Shape stored, permutedShape(c, y, "permY"));
  c.setOutput(0, type, std::move(stored));
  if (c.hasOutput(1)) c.setOutput(1, fusedAttentionStatisticsType(type), std::move(statistics));
  return {};
}

// Softmax, its mask and both products once more, and their gradient to the mask: for a mask that is trained, where the
// scores have to be there as a whole anyway.
Status maskGradient(GradientContext& g) {
  const Attributes& attrs = g.attrs();
  const auto turned = [&](ValueId value, std::vector<std::int64_t> perm) {
    return perm.empty() ? value : g.transpose(value, std::move(perm));
  };
  if (attrs.real("dropout", 0.0F) > 0) return g.error("a mask that is trained and dropout; expected one of them");
  if (attrs.integer("groups", 1) != 1) return g.error("a mask that is trained and groups of heads; expected one of them");
  SS_ASSIGN(const std::size_t rank, g.rank(g.x(0)));
  std::vector<std::int64_t> back(rank);
  const auto permY = attrs.integers("permY");
  for (std::size_t i = 0; i < permY.size(); ++i) back[static_cast<std::size_t>(permY[i])] = static_cast<std::int64_t>(i);
  const ValueId q = turned(g.x(0), attrs.integers("permQ")), k = turned(g.x(1), attrs.integers("permK")),
                v = turned(g.x(2), attrs.integers("permV")), dy = permY.empty() ? g.dy(0) : g.transpose(g.dy(0), back);
  ValueId products =
      g.internal("BatchedMatMul", {q, k}, {{"transB", std::int64_t{1}}, {"alpha", attrs.real("scale", 1.0F)}});
  if (const auto cap = static_cast<double>(attrs.real("softcap", 0.0F)); cap > 0)
    products = g.mul(g.op("Tanh", {g.mul(products, 1 / cap)}), cap);
  const ValueId p = g.op("Softmax", {g.add(products, g.x(3))}, {{"axis", std::int64_t{-1}}});
  const ValueId dp = g.internal("BatchedMatMul", {dy, v}, {{"transB", std::int64_t{1}}});
  g.setGradient(3, g.reduceTo(g.internal("SoftmaxGrad", {dp, p}, {{"axis", std::int64_t{-1}}}), g.x(3)));
  return {};
}

Status fusedAttentionGradient(GradientContext& g) {
  for (const char* view : kViews)
    if (g.attrs().has(view))
      return g.error(std::string("attribute ") + view + "; expected none before the gradient is taken");
  if (g.needs(0) || g.needs(1) || g.needs(2)) {
    std::vector<ValueId> inputs{g.dy(0), g.ensureOutput(1), g.x(0), g.x(1), g.x(2)};
    const bool kept = g.node().input(4).valid();
    if (g.node().input(3).valid() || kept) inputs.push_back(g.node().input(3).valid() ? g.x(3) : ValueId{});
    if (kept) inputs.push_back(g.x(4));
    const std::vector<ValueId> gradients = g.emit(kInternalDomain, "FusedAttentionGrad", std::move(inputs), 3, g.attrs());
    for (const std::size_t i : {0u, 1u, 2u})
      if (g.needs(i)) g.setGradient(i, gradients[i]);
  }
  if (g.node().input(3).valid() && g.needs(3)) return maskGradient(g);
  return {};
}

Status inferFusedAttentionGrad(ShapeContext& c) {
  SS_ASSIGN(const std::optional<Operands> o, operandsOf(c, 2));
  SS_TRY(requireOneType(c, {0, 2}));
  for (const std::size_t i : {0u, 1u, 2u}) {
    if (!c.hasOutput(i)) continue;
    if (!c.attrs().has(kViews[i])) {
      c.setOutput(i, c.inputDType(2 + i), c.inputShape(2 + i));
      continue;
    }
    SS_ASSIGN(Shape seen, seenShape(c, 2 + i, kViews[i], ""));
    c.setOutput(i, c.inputDType(2 + i), std::move(seen));
  }
  return {};
}

double productFlops(const OpShapes& shapes, std::size_t first, double products) {
  const Dims q = seenDims(shapes.inputs[first], shapes.attrs, "viewQ"),
             k = seenDims(shapes.inputs[first + 1], shapes.attrs, "viewK");
  double size = 1;
  for (const std::int64_t extent : q) size *= static_cast<double>(extent);
  // The rows of k: its extent before the last, in the order of permK.
  std::size_t axis = k.size() - 2;
  if (shapes.attrs)
    if (const auto perm = shapes.attrs->integers("permK"); perm.size() == k.size())
      axis = static_cast<std::size_t>(perm[perm.size() - 2]);
  return products * 2 * size * static_cast<double>(k[axis]);
}
double forwardFlops(const OpShapes& shapes) { return productFlops(shapes, 0, 2); }
double backwardFlops(const OpShapes& shapes) { return productFlops(shapes, 2, 5); }

}  // namespace

constexpr OpDef kFusedAttentionOp{
    .name = "FusedAttention",
    .domain = kInternalDomain,
    .doc =
        "q, k, v, mask?, kept? → y = (D(softmax(cap(scale · q^permQ · (k^permK)^T) + mask)) · v^permV)^permY, log of the "
        "sum of "
        "exponentials of every row?; cap(x) = softcap tanh(x / softcap); k and v may have one element along the innermost "
        "leading axes, or serve `groups` heads of q with each of theirs; a bool mask puts `fill` where it is `invert` (0); "
        "`safe`: rows that are all -inf give "
        "zeros; D drops the share `dropout`; viewQ, viewK, viewV, of passes after the gradient: offset, extents and strides "
        "of the part of a larger tensor that is the operand; rows of q behind the last one of their batch entry that kept "
        "[K] "
        "names, batch and rows seen as one axis, are not computed: y is 0 there.",
    .inputs = {3, 5},
    .outputs = {1, 2},
    .category = OpCategory::kMatmul,
    .precision = Precision::kLow,
    .hostInputs = kNoInputs,
    .inferShape = inferFusedAttentionShape,
    .gradient = fusedAttentionGradient,
    .differentiableInputs = bit(0) | bit(1) | bit(2) | bit(3),
    .recompute = Recompute::kCostly,
    .random = true,  // where `dropout` is above 0
    .flops = forwardFlops,
};

constexpr OpDef kFusedAttentionGradOp{
    .name = "FusedAttentionGrad",
    .domain = kInternalDomain,
    .doc =
        "dy, statistics of the rows, q, k, v, mask?, kept? → dq, dk, dv of FusedAttention; the softmax is computed again.",
    .inputs = {5, 7},
    .outputs = {3, 3},
    .category = OpCategory::kMatmul,
    .precision = Precision::kLow,
    .hostInputs = kNoInputs,
    .inferShape = inferFusedAttentionGrad,
    .noGradientReason = "gradient op",
    .differentiableInputs = kAllInputs,
    .recompute = Recompute::kCostly,
    .random = true,
    .flops = backwardFlops,
};

}  // namespace stepscope::ops
