#include <fmt/format.h>

#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/random_type.h"
#include "engine/ops/elementwise/rank_messages.h"

namespace stepscope::ops {
namespace {

// Attribute `shape`: -1 where an extent follows from the message.
Result<Shape> saidShape(ShapeContext& c) {
  Shape shape;
  for (const std::int64_t extent : c.attrs().integers("shape")) {
    if (extent < -1) return c.error(fmt::format("attribute shape has an extent of {}; expected -1 or more", extent));
    shape.push_back(extent < 0 ? c.freshDim(0, shape.size()) : Dim(extent));
  }
  return shape;
}

Status inferRecvShape(ShapeContext& c) {
  SS_TRY(messageEnds(c));
  SS_ASSIGN(const DType said, attributeType(c, "dtype", DType::kUndefined));
  if (c.hasInput(0)) {
    SS_TRY(movedLikeInput0(c));
    const DType sent = c.inputDType(0);
    if (said != DType::kUndefined && sent != DType::kUndefined && sent != said)
      return c.error(fmt::format("a message of {}; expected {}, its attribute dtype", dtypeName(sent), dtypeName(said)));
    if (!c.attrs().has("shape") || !c.rankKnown(0)) return {};
    SS_ASSIGN(const Shape shape, saidShape(c));
    return c.unifyShapes(*c.inputShape(0), shape, "message and attribute shape");
  }
  // Until pass pair_messages finds what is sent.
  if (said == DType::kUndefined || said == DType::kString || !c.attrs().has("shape"))
    return c.error("expected its Send as the input, or attributes dtype, of numbers or bool, and shape");
  SS_ASSIGN(const Shape shape, saidShape(c));
  c.setOutput(0, said, shape);
  return {};
}

// The message goes the other way.
Status recvGradient(GradientContext& g) {
  const Attributes back{
      {"from", g.attrs().integer("to", 0)}, {"to", g.attrs().integer("from", 0)}, {"tag", g.attrs().integer("tag", 0)}};
  g.setGradient(0, g.internal("Recv", {g.internal("Send", {g.dy(0)}, back)}, back));
  return {};
}

}  // namespace

extern constexpr OpDef kRecvOp{
    .name = "Recv",
    .domain = kInternalDomain,
    .doc = "y on rank `to` = x of rank `from`, zeros on the others; x is the Send of the same `from`, `to` and `tag`",
    .inputs = {0, 1},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferRecvShape,
    .gradient = recvGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .recompute = Recompute::kNever,
    .sideEffect = SideEffect::kCollective,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
