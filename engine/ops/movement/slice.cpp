#include <algorithm>

#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

constexpr std::int64_t kFar = std::int64_t{1} << 40;  // beyond any extent; keeps sums of bounds inside int64

Dim near(const Dim& bound) { return bound.known() ? Dim(std::clamp(bound.value(), -kFar, kFar)) : bound; }

// One bound, counted from the start of the axis and clamped to [0, extent]. A symbolic bound is assumed to lie inside: the
// numbers decide at `specialise`.
Dim placed(const Dim& raw, const Dim& extent) {
  Dim bound = near(raw);
  const bool fromEnd = bound.known() ? bound.value() < 0 : (Dim(0) - bound).asSymbol().has_value();
  if (fromEnd) {
    if (bound.known() && bound.value() <= -kFar) return Dim(0);
    bound = extent + bound;
  }
  if (bound.known()) {
    if (bound.value() <= 0) return Dim(0);
    if (bound.value() >= kFar) return extent;
    if (extent.known()) return Dim(std::min(bound.value(), extent.value()));
    return fromEnd ? bound : Dim::min(bound, extent);
  }
  const Dim over = bound - extent;
  return over.known() && over.value() >= 0 ? extent : bound;
}

std::optional<Dim> slicedExtent(const Dim& extent, const Dim& rawStart, const Dim& rawEnd, std::int64_t step) {
  if (extent.known() && rawStart.known() && rawEnd.known()) {
    const std::int64_t size = extent.value(), low = step > 0 ? 0 : -1, high = std::max(low, step > 0 ? size : size - 1);
    const auto clamp = [&](const Dim& bound) {
      const std::int64_t v = near(bound).value();
      return std::clamp(v < 0 ? v + size : v, low, high);
    };
    const std::int64_t start = clamp(rawStart), end = clamp(rawEnd);
    const std::int64_t span = step > 0 ? end - start : start - end, stride = step > 0 ? step : -step;
    return Dim(span > 0 ? (span - 1) / stride + 1 : 0);
  }
  if (step > 0) {
    const Dim end = placed(rawEnd, extent);
    Dim start = placed(rawStart, extent);
    if (rawStart.known() && rawStart.value() > 0 && rawStart.value() < kFar && !extent.known())
      start = rawStart;  // assumed inside
    const Dim span = end - start;
    if (span.known()) return Dim(span.value() > 0 ? (span.value() - 1) / step + 1 : 0);
    return Dim::ceilDiv(span, Dim(step));
  }
  // A whole reversal is the one backward slice that symbols allow.
  if (step == -1 && rawStart.known() && rawEnd.known() && (rawStart.value() == -1 || rawStart.value() >= kFar) &&
      rawEnd.value() <= -kFar)
    return extent;
  return std::nullopt;
}

// The elements that a slice of a vector of known contents picks; both bounds are numbers.
Contents slicedContents(const Contents& contents, std::int64_t start, std::int64_t end, std::int64_t step) {
  const auto size = static_cast<std::int64_t>(contents.size());
  const std::int64_t low = step > 0 ? 0 : -1, high = std::max(low, step > 0 ? size : size - 1);
  const auto clamp = [&](std::int64_t v) { return std::clamp(v < 0 ? v + size : v, low, high); };
  step = std::clamp(step, -kFar, kFar);
  Contents picked;
  const std::int64_t stop = clamp(end);
  for (std::int64_t i = clamp(start); step > 0 ? i < stop : i > stop; i += step)
    picked.push_back(contents[static_cast<std::size_t>(i)]);
  return picked;
}

Status inferSliceShape(ShapeContext& c) {
  const std::optional<Shape> data = c.inputShape(0);
  const auto starts = knownContents(c, 1), ends = knownContents(c, 2);
  const auto steps = c.hasInput(4) ? c.integers(4) : std::nullopt;
  auto axes = c.hasInput(3) ? c.integers(3) : std::nullopt;
  if (!data) {
    c.setOutput(0, c.inputDType(0), std::nullopt);
    return {};
  }
  const std::size_t count = starts ? starts->size() : ends ? ends->size() : 0;
  if (!c.hasInput(3) && (starts || ends)) {
    if (count > data->size()) return c.error(std::to_string(count) + " starts for shape " + shapeText(*data));
    axes.emplace();
    for (std::size_t a = 0; a < count; ++a) axes->push_back(static_cast<std::int64_t>(a));
  }
  if (!axes) {
    c.setOutput(0, c.inputDType(0), c.freshShape(0, data->size()));
    return {};
  }
  if ((starts && starts->size() != axes->size()) || (ends && ends->size() != axes->size()) ||
      (steps && steps->size() != axes->size()))
    return c.error("starts, ends, axes and steps of different lengths");
  SS_ASSIGN(const std::vector<std::size_t> places, uniqueAxes(c, *axes, data->size()));
  Shape shape = *data;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t a = places[i];
    const std::int64_t step = steps ? (*steps)[i] : 1;
    if (step == 0 || step == INT64_MIN) return c.error("step " + std::to_string(step) + " at position " + std::to_string(i));
    std::optional<Dim> extent;
    if (starts && ends && (steps || !c.hasInput(4))) extent = slicedExtent((*data)[a], (*starts)[i], (*ends)[i], step);
    shape[a] = extent ? *extent : c.freshDim(0, a);
  }
  c.setOutput(0, c.inputDType(0), shape);
  if (data->size() != 1 || !starts || !ends || (c.hasInput(4) && !steps)) return {};
  const auto contents = knownContents(c, 0);
  const auto from = knownDims(*starts), to = knownDims(*ends);
  if (!contents || !from || !to) return {};
  c.setContents(0, places.empty() ? *contents : slicedContents(*contents, (*from)[0], (*to)[0], steps ? (*steps)[0] : 1));
  return {};
}

Status sliceGradient(GradientContext& g) {
  std::vector<ValueId> inputs{g.dy(0), g.shapeOf(g.x(0))};
  for (std::size_t i = 1; i < g.node().inputs.size(); ++i) inputs.push_back(g.x(i));
  g.setGradient(0, g.internal("SliceGrad", inputs));
  return {};
}

}  // namespace

constexpr OpDef kSliceOp{
    .name = "Slice",
    .sinceVersion = 13,
    .doc =
        "Elements start, start + step, … before end along each listed axis; bounds are clamped, negative ones count from "
        "the end.",
    .inputs = {3, 5},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = bit(1) | bit(2) | bit(3) | bit(4),
    .inferShape = inferSliceShape,
    .gradient = sliceGradient,
    .differentiableInputs = bit(0),
    .traffic = {.picked = bit(0), .moves = true},
};

constexpr OpDef kSliceGradOp{
    .name = "SliceGrad",
    .domain = kInternalDomain,
    .doc = "dx of Slice: zeros with dy in the window; inputs dy, shape of x, starts, ends, axes?, steps?.",
    .inputs = {4, 6},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = bit(1) | bit(2) | bit(3) | bit(4) | bit(5),
    .inferShape = gradientShapedByInput1,
    .noGradientReason = "second derivatives are not built",
    .differentiableInputs = kAllInputs,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
