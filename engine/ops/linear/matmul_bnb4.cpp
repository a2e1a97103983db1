#include <fmt/format.h>

#include "engine/ops/gradient_context.h"
#include "engine/ops/linear/ops.h"
#include "engine/ops/shape_context.h"

namespace stepscope::ops {
namespace {

// The matrix is [N, K]; transB = 1 multiplies by its transpose, transB = 0 by itself.
struct Form {
  std::int64_t k, n, block;
  bool transposed;
  explicit Form(const Attributes& attrs)
      : k(attrs.integer("K", 0)),
        n(attrs.integer("N", 0)),
        block(attrs.integer("block_size", 0)),
        transposed(attrs.integer("transB", 1) != 0) {}
  std::int64_t inner() const { return transposed ? k : n; }
  std::int64_t outer() const { return transposed ? n : k; }
};

Status requireLength(ShapeContext& c, std::size_t input, std::int64_t length, std::string_view what) {
  const auto shape = c.inputShape(input);
  if (!shape) return {};
  Dim elements = 1;
  for (const Dim& dim : *shape) elements = elements * dim;
  if (!elements.known() || elements.value() == length) return {};
  return invalid(fmt::format("{}: {} has {} elements; expected {} for attributes K, N and block_size", c.node().label(),
                             what, elements.value(), length));
}

Status inferMatMulBnb4Shape(ShapeContext& c) {
  for (const std::size_t input : {0, 2})
    if (const DType dtype = c.inputDType(input); dtype != DType::kUndefined && !isFloating(dtype))
      return invalid(
          fmt::format("{}: input {} is {}; expected floating numbers", c.node().label(), input, dtypeName(dtype)));
  const Form form(c.attrs());
  const std::int64_t kind = c.attrs().integer("quant_type", -1);
  if (form.k <= 0 || form.n <= 0 || form.n > (std::int64_t{1} << 40) / form.k)
    return invalid(
        fmt::format("{}: attributes K = {}, N = {}; expected extents of a matrix", c.node().label(), form.k, form.n));
  if (form.block < 16 || (form.block & (form.block - 1)) != 0)
    return invalid(
        fmt::format("{}: attribute block_size is {}; expected a power of two from 16 on", c.node().label(), form.block));
  if (kind != 0 && kind != 1)
    return invalid(fmt::format("{}: attribute quant_type is {}; expected 0 (FP4) or 1 (NF4)", c.node().label(), kind));
  if (c.inputDType(1) != DType::kU8 && c.inputDType(1) != DType::kUndefined)
    return invalid(fmt::format("{}: weights are {}; expected uint8", c.node().label(), dtypeName(c.inputDType(1))));
  SS_TRY(requireLength(c, 1, (form.n * form.k + 1) / 2, "the packed weight"));
  SS_TRY(requireLength(c, 2, (form.n * form.k + form.block - 1) / form.block, "absmax"));
  auto shape = c.inputShape(0);
  if (!shape) {
    c.setOutput(0, c.inputDType(0), std::nullopt);
    return {};
  }
  if (shape->empty())
    return invalid(
        fmt::format("{}: a scalar operand; expected its last axis to have {} elements", c.node().label(), form.inner()));
  SS_TRY(c.unify(shape->back(), Dim(form.inner()), "last axis of the operand"));
  shape->back() = Dim(form.outer());
  c.setOutput(0, c.inputDType(0), *shape);
  return {};
}

// d x = dy · W, the same product with the matrix the other way round. The weight is frozen.
Status matMulBnb4Gradient(GradientContext& g) {
  Attributes attrs = g.attrs();
  attrs.set("transB", std::int64_t{attrs.integer("transB", 1) == 0});
  g.setGradient(0, g.emit("com.microsoft", "MatMulBnb4", {g.dy(0), g.x(1), g.x(2)}, 1, std::move(attrs)).front());
  return {};
}

double flopsOfMatMulBnb4(const OpShapes& shapes) {
  const Form form(*shapes.attrs);
  double rows = 1;
  for (std::size_t axis = 0; axis + 1 < shapes.inputs[0].size(); ++axis) rows *= static_cast<double>(shapes.inputs[0][axis]);
  return 2 * rows * static_cast<double>(form.n) * static_cast<double>(form.k);
}

}  // namespace

extern constexpr OpDef kMatMulBnb4Op{
    .name = "MatMulBnb4",
    .domain = "com.microsoft",
    .doc =
        "y = x · Wᵀ (transB = 0: x · W) with a frozen W [N, K] in four bits, absmax per block_size elements; "
        "quant_type 0 FP4, 1 NF4",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kMatmul,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferMatMulBnb4Shape,
    .gradient = matMulBnb4Gradient,
    .differentiableInputs = bit(0),
    .recompute = Recompute::kCostly,
    .flops = flopsOfMatMulBnb4,
};

}  // namespace stepscope::ops
