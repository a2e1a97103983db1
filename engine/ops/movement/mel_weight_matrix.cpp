#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferMelWeightMatrixShape(ShapeContext& c) {
  const std::int64_t wish = c.attrs().integer("output_datatype", 1);
  const auto dtype = wish >= 0 && wish < 256 ? dtypeFromOnnx(static_cast<int>(wish)) : std::nullopt;
  if (!dtype) return c.error("output_datatype " + std::to_string(wish) + " is not a type of this engine");
  c.setOutput(0, *dtype, c.freshShape(0, 2));
  Shape shape = c.freshShape(0, 2);
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const auto contents = knownContents(c, i);
    if (!contents || contents->size() != 1 || !contents->front().known()) continue;
    const std::int64_t value = contents->front().value();
    if (value < 1 || value > (std::int64_t{1} << 31))
      return c.error((i == 0 ? "num_mel_bins " : "dft_length ") + std::to_string(value) + "; expected 1 or more");
    shape[1 - i] = Dim(i == 0 ? value : value / 2 + 1);
  }
  c.setOutput(0, *dtype, std::move(shape));
  return {};
}

}  // namespace

constexpr OpDef kMelWeightMatrixOp{
    .name = "MelWeightMatrix",
    .sinceVersion = 17,
    .doc =
        "y[bin, m] = height of mel triangle m at a bin of the spectrum; inputs: mel bins, dft length, sample rate, lower "
        "and upper edge in Hz.",
    .inputs = {5, 5},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = bit(0) | bit(1) | bit(2) | bit(3) | bit(4),
    .inferShape = inferMelWeightMatrixShape,
    .noGradientReason = "the triangles lie on whole bins: piecewise constant in the edges",
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
