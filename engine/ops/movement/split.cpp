#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferSplitShape(ShapeContext& c) {
  const std::size_t parts = c.outputCount();
  const std::optional<Shape> input = c.inputShape(0);
  if (!input) {
    for (std::size_t i = 0; i < parts; ++i)
      if (c.hasOutput(i)) c.setOutput(i, c.inputDType(0), std::nullopt);
    return {};
  }
  SS_ASSIGN(const std::size_t axis, c.axis(c.attrs().integer("axis", 0), *input));
  const Dim extent = (*input)[axis];
  std::optional<std::vector<Dim>> sizes;
  if (c.hasInput(1)) {
    sizes = knownContents(c, 1);
    if (sizes && sizes->size() != parts)
      return c.error(std::to_string(sizes->size()) + " sizes for " + std::to_string(parts) + " outputs");
  } else {
    const std::int64_t count = c.attrs().integer("num_outputs", static_cast<std::int64_t>(parts));
    if (count < 1 || count < static_cast<std::int64_t>(parts))
      return c.error("num_outputs " + std::to_string(count) + " for " + std::to_string(parts) + " outputs");
    const Dim chunk = Dim::ceilDiv(extent, Dim(count));
    Dim left = extent;
    sizes.emplace();
    for (std::size_t i = 0; i < parts; ++i) {
      const bool last = static_cast<std::int64_t>(i) == count - 1;
      sizes->push_back(last ? left : extent.known() ? Dim::min(chunk, left) : chunk);
      left = left - sizes->back();
    }
  }
  Dim sum(0);
  for (std::size_t i = 0; sizes && i < parts; ++i) {
    const Dim& size = (*sizes)[i];
    if (size.known() && (size.value() < 0 || (extent.known() && size.value() > extent.value())))
      return c.error("size " + size.text() + " at position " + std::to_string(i) + " does not fit axis of extent " +
                     extent.text());
    sum = sum + size;
  }
  if (c.hasInput(1) && sizes && sum.known() && extent.known() && !(sum == extent))
    return c.error("sizes add up to " + sum.text() + "; expected " + extent.text());
  const auto contents = input->size() == 1 ? knownContents(c, 0) : std::nullopt;
  std::size_t begin = 0;
  bool numbers = contents.has_value();
  for (std::size_t i = 0; i < parts; ++i) {
    Shape shape = *input;
    shape[axis] = sizes ? (*sizes)[i] : c.freshDim(i, axis);
    if (c.hasOutput(i)) c.setOutput(i, c.inputDType(0), shape);
    numbers = numbers && shape[axis].known();
    if (!numbers) continue;
    const std::size_t end = begin + static_cast<std::size_t>(shape[axis].value());
    numbers = end <= contents->size();
    if (numbers && c.hasOutput(i))
      c.setContents(i, Contents(contents->begin() + static_cast<std::ptrdiff_t>(begin),
                                contents->begin() + static_cast<std::ptrdiff_t>(end)));
    begin = end;
  }
  return {};
}

Status splitGradient(GradientContext& g) {
  std::vector<ValueId> parts;
  for (std::size_t i = 0; i < g.node().outputs.size(); ++i) {
    if (!g.node().output(i)) g.ensureOutput(i);
    parts.push_back(g.dyOrZeros(i));
  }
  g.setGradient(0, parts.size() == 1 ? parts[0] : g.op("Concat", parts, {{"axis", g.attrs().integer("axis", 0)}}));
  return {};
}

}  // namespace

constexpr OpDef kSplitOp{
    .name = "Split",
    .sinceVersion = 18,
    .doc = "Parts of the input along `axis`: of the listed sizes, or num_outputs equal ones with what is left in the last.",
    .inputs = {1, 2},
    .outputs = {1, kMany},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = bit(1),
    .inferShape = inferSplitShape,
    .gradient = splitGradient,
    .differentiableInputs = bit(0),
    .differentiableOutputs = kAllInputs,
    .layout = {.inputs = bit(0), .outputs = kAllInputs, .together = true, .channels = ChannelRule::kParts},
    .traffic = {.moves = true},
};

constexpr OpDef kSplitTrainingOp{
    .name = "SplitTraining",
    .domain = "com.microsoft",
    .doc = "Split into parts of the listed sizes.",
    .inputs = {2, 2},
    .outputs = {1, kMany},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = bit(1),
    .inferShape = inferSplitShape,
    .gradient = splitGradient,
    .differentiableInputs = bit(0),
    .differentiableOutputs = kAllInputs,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
