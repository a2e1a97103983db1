#include "engine/ops/movement/common.h"
#include "kernels/strided_view.h"

namespace stepscope::ops {
namespace {

Status inferJoinShape(ShapeContext& c) {
  Dims y;
  const auto axis = static_cast<std::size_t>(c.attrs().integer("axis", 0));
  for (std::size_t i = 0; i < c.inputCount(); ++i) {
    SS_TRY(sameType(c, 0, i));
    const auto dims = c.rankKnown(i) ? knownDims(*c.inputShape(i)) : std::nullopt;
    if (!dims && !seesView(kInternalDomain, "Join", i, c.attrs())) {
      c.setOutput(0, c.inputDType(0), std::nullopt);
      return {};
    }
    const auto part = dims ? seenOperand(kInternalDomain, "Join", i, *dims, c.attrs())
                           : StridedView::read(c.attrs().integers(viewAttributeOf(kInternalDomain, "Join", i)));
    if (!part) return c.error(part.error().message);
    Dims fitting = i == 0 ? part->dims : y;
    if (axis < fitting.size() && part->dims.size() == fitting.size()) fitting[axis] = part->dims[axis];
    if (axis >= fitting.size() || part->dims != fitting)
      return c.error("input " + std::to_string(i) + " shows " + dimsText(part->dims) + "; expected extents " + dimsText(y) +
                     " besides axis " + std::to_string(axis));
    if (i == 0)
      y = part->dims;
    else
      y[axis] += part->dims[axis];
  }
  c.setOutput(0, c.inputDType(0), shapeOf(y));
  return {};
}

}  // namespace

extern constexpr OpDef kJoinOp{
    .name = "Join",
    .domain = kInternalDomain,
    .doc = "Concat along `axis`, 0 or more, of parts of the inputs: view0, view1 …, all of an input without (strided_views)",
    .inputs = {1, kMany},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferJoinShape,
    .noGradientReason = "written after the gradient was taken",
    .differentiableInputs = kAllInputs,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
