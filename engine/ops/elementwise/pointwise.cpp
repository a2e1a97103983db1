#include "engine/ops/elementwise/common.h"
#include "kernels/pointwise_program.h"

namespace stepscope::ops {
namespace {

Status inferPointwiseShape(ShapeContext& c) {
  std::vector<bool> masks;
  DType dtype = DType::kUndefined;
  std::optional<Shape> shape = Shape{};
  const auto given = dtypeFromOnnx(static_cast<int>(c.attrs().integer("output_type", 0)));
  for (std::size_t i = 0; i < c.inputCount(); ++i) {
    masks.push_back(c.inputDType(i) == DType::kBool);
    if (!masks.back() && dtype == DType::kUndefined) dtype = c.inputDType(i);
    if (!masks.back() && c.inputDType(i) != dtype && !given)
      return c.error("input " + std::to_string(i) + " is " + std::string(dtypeName(c.inputDType(i))) +
                     "; expected bool or " + std::string(dtypeName(dtype)));
    if (!c.rankKnown(i)) shape.reset();
    if (shape) {
      SS_ASSIGN(shape, c.broadcast(*shape, *c.inputShape(i)));
    }
  }
  if (const auto program = PointwiseProgram::of(c.attrs(), masks); !program) return c.error(program.error().message);
  c.setOutput(0, given.value_or(dtype), std::move(shape));
  return {};
}

double flopsOfPointwise(const OpShapes& shapes) {
  const auto* steps = shapes.attrs ? std::get_if<std::vector<std::string>>(shapes.attrs->find("steps")) : nullptr;
  double elements = 1;
  for (const std::int64_t extent : shapes.outputs[0]) elements *= static_cast<double>(extent);
  return elements * static_cast<double>(steps ? steps->size() : 1);
}

}  // namespace

extern constexpr OpDef kPointwiseOp{
    .name = "Pointwise",
    .domain = kInternalDomain,
    .doc =
        "a chain of elementwise ops in one pass over memory: attribute steps (kernels/pointwise_program.h); inputs "
        "broadcast; attribute output_type where they are of several types",
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

}  // namespace stepscope::ops
