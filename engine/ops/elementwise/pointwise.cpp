#include "engine/ops/elementwise/common.h"
#include "kernels/pointwise_program.h"
#include "kernels/strided_view.h"

namespace stepscope::ops {
namespace {

// The extents of what chain `op` sees of an input, whose rank is known.
Result<Shape> seenByChain(ShapeContext& c, std::size_t input, std::string_view op) {
  const Shape& shape = *c.inputShape(input);
  if (!seesView(kInternalDomain, op, input, c.attrs())) return shape;
  const auto dims = knownDims(shape);
  const auto seen = dims ? seenOperand(kInternalDomain, op, input, *dims, c.attrs())
                         : StridedView::read(c.attrs().integers(viewAttributeOf(kInternalDomain, op, input)));
  if (!seen) return c.error(seen.error().message);
  return shapeOf(seen->dims);
}

// The type of a chain's result, and the extents that its operands broadcast to.
struct ChainType {
  DType dtype = DType::kUndefined;
  std::optional<Shape> shape = Shape{};
};
Result<ChainType> chainType(ShapeContext& c, std::string_view op) {
  std::vector<bool> masks;
  ChainType type;
  const auto given = dtypeFromOnnx(static_cast<int>(c.attrs().integer("output_type", 0)));
  for (std::size_t i = 0; i < c.inputCount(); ++i) {
    masks.push_back(c.inputDType(i) == DType::kBool);
    if (!masks.back() && type.dtype == DType::kUndefined) type.dtype = c.inputDType(i);
    if (!masks.back() && c.inputDType(i) != type.dtype && !given)
      return c.error("input " + std::to_string(i) + " is " + std::string(dtypeName(c.inputDType(i))) +
                     "; expected bool or " + std::string(dtypeName(type.dtype)));
    if (!c.rankKnown(i)) type.shape.reset();
    if (type.shape) {
      SS_ASSIGN(const Shape seen, seenByChain(c, i, op));
      SS_ASSIGN(type.shape, c.broadcast(*type.shape, seen));
    }
  }
  if (const auto program = PointwiseProgram::of(c.attrs(), masks); !program) return c.error(program.error().message);
  type.dtype = given.value_or(type.dtype);
  return type;
}

Status inferPointwiseShape(ShapeContext& c) {
  SS_ASSIGN(ChainType type, chainType(c, "Pointwise"));
  c.setOutput(0, type.dtype, std::move(type.shape));
  return {};
}

Status inferPointwiseSumShape(ShapeContext& c) {
  SS_ASSIGN(const ChainType type, chainType(c, "PointwiseSum"));
  const std::vector<std::int64_t> axes = c.attrs().integers("axes"), given = c.attrs().integers("shape");
  if (type.shape) {
    std::vector<bool> summed(type.shape->size(), false);
    for (const std::int64_t axis : axes) {
      SS_ASSIGN(const std::size_t at, c.axis(axis, *type.shape));
      summed[at] = true;
    }
    std::int64_t kept = 1;
    bool known = true;
    for (std::size_t i = 0; i < summed.size(); ++i) {
      const auto extent = (*type.shape)[i].asKnown();
      known = known && (summed[i] || extent);
      if (!summed[i] && extent) kept *= *extent;
    }
    if (known && elementCount(given) != kept)
      return c.error("attribute shape is " + dimsText(given) + "; expected " + std::to_string(kept) + " elements of " +
                     shapeText(*type.shape));
  }
  c.setOutput(0, type.dtype, shapeOf(given));
  return {};
}

double stepsOfChain(const OpShapes& shapes) {
  const auto* steps = shapes.attrs ? std::get_if<std::vector<std::string>>(shapes.attrs->find("steps")) : nullptr;
  return static_cast<double>(steps ? steps->size() : 1);
}

double flopsOfPointwise(const OpShapes& shapes) {
  double elements = 1;
  for (const std::int64_t extent : shapes.outputs[0]) elements *= static_cast<double>(extent);
  return elements * stepsOfChain(shapes);
}

// With one addition.
double flopsOfPointwiseSum(const OpShapes& shapes) {
  static const Attributes kNone;
  const Attributes& attrs = shapes.attrs ? *shapes.attrs : kNone;
  Dims all;
  for (std::size_t k = 0; k < shapes.inputs.size(); ++k) {
    const Dims whole(shapes.inputs[k].begin(), shapes.inputs[k].end());
    const auto seen = seenOperand(kInternalDomain, "PointwiseSum", k, whole, attrs);
    const Dims& input = seen ? seen->dims : whole;
    if (input.size() > all.size()) all.insert(all.begin(), input.size() - all.size(), 1);
    for (std::size_t i = 0; i < input.size(); ++i)
      if (std::int64_t& extent = all[all.size() - input.size() + i]; extent == 1) extent = input[i];
  }
  double elements = 1;
  for (const std::int64_t extent : all) elements *= static_cast<double>(extent);
  return elements * (stepsOfChain(shapes) + 1);
}

}  // namespace

extern constexpr OpDef kPointwiseOp{
    .name = "Pointwise",
    .domain = kInternalDomain,
    .doc =
        "a chain of elementwise ops in one pass over memory: attribute steps (kernels/pointwise_program.h); inputs "
        "broadcast; attribute output_type where they are of several types; view0, view1 …: what it sees of an input",
    .inputs = {1, kMany},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferPointwiseShape,
    .noGradientReason = "written after the gradient was taken",
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = kAllInputs,
    .flops = flopsOfPointwise,
    .layout = kVectorLayout,
};

extern constexpr OpDef kPointwiseSumOp{
    .name = "PointwiseSum",
    .domain = kInternalDomain,
    .doc =
        "the sum of a chain of elementwise ops along attribute axes, or its mean (attribute mean), without the chain's "
        "result "
        "in memory: attributes steps and output_type as Pointwise, shape the extents of y",
    .inputs = {1, kMany},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferPointwiseSumShape,
    .noGradientReason = "written after the gradient was taken",
    .differentiableInputs = kAllInputs,
    .flops = flopsOfPointwiseSum,
};

}  // namespace stepscope::ops
