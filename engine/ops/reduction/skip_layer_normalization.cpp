#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

// Inputs input, skip, gamma, beta?, bias? (without beta when simplified) → y, mean, inv_std, sum.
template <bool kCentered>
Status inferSkipLayerNormalizationShape(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 3));
  constexpr std::size_t kLast = kCentered ? 4 : 3;
  SS_TRY(reduction_rules::expectFloat(c, 0, "input"));
  for (std::size_t i = 1; i <= kLast; ++i) SS_TRY(reduction_rules::expectSameDType(c, 0, i));
  SS_TRY(shape_rules::sameAsInput0(c));
  std::optional<Shape> statistics;
  if (c.rankKnown(0)) {
    const Shape x = *c.inputShape(0);
    if (x.empty()) return c.error("input is a scalar; expected [..., hidden]");
    for (std::size_t i = 2; i <= kLast; ++i)
      SS_TRY(reduction_rules::expectVector(c, i, x.back(), "a vector of the hidden size"));
    SS_TRY(reduction_rules::expectNormalised(c, 1, x, 0, "skip"));
    statistics = x;
    statistics->back() = 1;
  }
  for (std::size_t i = 1; i <= 2; ++i)
    if (c.hasOutput(i)) c.setOutput(i, reduction_rules::statisticsType(c), statistics);
  if (c.hasOutput(3)) c.setOutput(3, c.inputDType(0), c.inputShape(0));
  return {};
}

// The normalisation of sum = input + skip + bias; all three receive d sum.
template <bool kCentered>
Status skipLayerNormalizationGradient(GradientContext& g) {
  constexpr std::size_t kBias = kCentered ? 4 : 3;
  ValueId dsum = g.dy(3);
  if (g.dy(0).valid()) {
    const ValueId sum = g.ensureOutput(3), inverse = g.ensureOutput(2);
    std::vector<ValueId> inputs{g.dy(0), sum, g.x(2)};
    if (kCentered) inputs.push_back(g.ensureOutput(1));
    inputs.push_back(inverse);
    const bool beta = kCentered && g.x(3).valid() && g.needs(3);
    const auto d =
        g.emit(kInternalDomain, kCentered ? "LayerNormalizationGrad" : "SimplifiedLayerNormalizationGrad", std::move(inputs),
               beta         ? 3
               : g.needs(2) ? 2
                            : 1,
               {{"axis", std::int64_t{-1}}});
    if (g.needs(2)) g.setGradient(2, d[1]);
    if (beta) g.setGradient(3, d[2]);
    dsum = dsum.valid() ? g.add(dsum, d[0]) : d[0];
  }
  if (!dsum.valid()) return {};
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}, kBias})
    if (g.x(i).valid() && g.needs(i)) g.setGradient(i, g.reduceTo(dsum, g.x(i)));
  return {};
}

}  // namespace

extern const OpDef kSkipLayerNormalizationOp{
    .name = "SkipLayerNormalization",
    .domain = "com.microsoft",
    .doc = "LayerNormalization over the last axis of input + skip + bias; outputs y, mean, inv_std, the sum.",
    .inputs = {3, 5},
    .outputs = {1, 4},
    .category = OpCategory::kNormalization,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferSkipLayerNormalizationShape<true>,
    .gradient = skipLayerNormalizationGradient<true>,
    .differentiableInputs = bit(0) | bit(1) | bit(2) | bit(3) | bit(4),
    .differentiableOutputs = bit(0) | bit(3),
    .flops = reduction_rules::flopsPerElement<10>,
};

extern const OpDef kSkipSimplifiedLayerNormalizationOp{
    .name = "SkipSimplifiedLayerNormalization",
    .domain = "com.microsoft",
    .doc = "RMS normalisation over the last axis of input + skip + bias; outputs y, (mean), inv_std, the sum.",
    .inputs = {3, 4},
    .outputs = {1, 4},
    .category = OpCategory::kNormalization,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferSkipLayerNormalizationShape<false>,
    .gradient = skipLayerNormalizationGradient<false>,
    .differentiableInputs = bit(0) | bit(1) | bit(2) | bit(3),
    .differentiableOutputs = bit(0) | bit(3),
    .flops = reduction_rules::flopsPerElement<7>,
};

}  // namespace stepscope::ops
