#include <limits>

#include "tests/engine/ops/op_example.h"

namespace stepscope::testing {
namespace {

using In = ExampleInput;
constexpr std::int64_t kYes = 1, kNo = 0;

In values(Dims dims, const std::vector<float>& contents) {
  return In::of(Tensor::of<float>(std::move(dims), std::span<const float>(contents)));
}

// Inputs that a Reduce op is differentiable at: away from zero where it has a kink, positive where it takes a logarithm.
void addReductions(std::vector<OpExample>& list) {
  const struct {
    const char* op;
    double low, high;
    std::vector<double> avoid;
  } ops[] = {
      {"ReduceL1", -1, 1, {0}}, {"ReduceL2", -1, 1, {}},        {"ReduceLogSum", 0.5, 2, {}}, {"ReduceLogSumExp", -2, 2, {}},
      {"ReduceMax", -9, 9, {}}, {"ReduceMean", -1, 1, {}},      {"ReduceMin", -9, 9, {}},     {"ReduceProd", 0.5, 1.5, {}},
      {"ReduceSum", -1, 1, {}}, {"ReduceSumSquare", -1, 1, {}},
  };
  for (const auto& o : ops) {
    const std::string name = o.op;
    const In x = In::random({2, 3, 4}, o.low, o.high, o.avoid);
    list.push_back({name + "_last", "", name, {x, In::ints({-1})}});
    list.push_back({name + "_middle_drop", "", name, {x, In::ints({1})}, 1, {{"keepdims", kNo}}});
    list.push_back({name + "_outer", "", name, {x, In::ints({0, 2})}, 1, {{"keepdims", kNo}}});
    list.push_back({name + "_all_drop", "", name, {x}, 1, {{"keepdims", kNo}}});
    list.push_back({name + "_noop", "", name, {x}, 1, {{"noop_with_empty_axes", kYes}}});
    // More results side by side than one block of the kernel holds.
    list.push_back(
        {name + "_wide", "", name, {In::random({2, 70}, o.low, o.high, o.avoid), In::ints({0})}, 1, {}, 1e-6, false});
    // Integers, for which there is no gradient.
    list.push_back({name + "_int", "", name, {In::integers({3, 4}, 1, 9), In::ints({1})}, 1, {}, 1e-6, false});
  }
  list.push_back({"ReduceSum_empty", "", "ReduceSum", {In::random({2, 0, 3}), In::ints({1})}, 1, {}, 1e-6, false});
  list.push_back({"ReduceMax_empty", "", "ReduceMax", {In::random({2, 0, 3}), In::ints({1})}, 1, {}, 1e-6, false});
  list.push_back({"ReduceL2_zero", "", "ReduceL2", {values({2, 2}, {0, 0, 3, 4}), In::ints({1})}, 1, {}, 1e-6, false});
  const float minus = -std::numeric_limits<float>::infinity();
  list.push_back({"ReduceLogSumExp_minus_infinity",
                  "",
                  "ReduceLogSumExp",
                  {values({3, 2}, {minus, minus, minus, 1, 100, 101}), In::ints({1})},
                  1,
                  {},
                  1e-6,
                  false});
  list.push_back({"ReduceProdGrad",
                  "stepscope",
                  "ReduceProdGrad",
                  {In::random({3, 1}), values({3, 3}, {2, 3, 4, 2, 0, 4, 0, 3, 0}), In::ints({1})}});
  list.push_back({"ReduceToShape_keep", "stepscope", "ReduceToShape", {In::random({2, 3, 4}), In::ints({2, 1, 4})}});
  list.push_back({"ReduceToShape_lead", "stepscope", "ReduceToShape", {In::random({2, 3, 4}), In::ints({3, 1})}});
  list.push_back({"ReduceToShape_scalar", "stepscope", "ReduceToShape", {In::random({2, 3}), In::ints({})}});
  list.push_back({"ReduceToShape_same", "stepscope", "ReduceToShape", {In::random({2, 3}), In::ints({2, 3})}});
  for (const char* op : {"ArgMax", "ArgMin"}) {
    const std::string name = op;
    list.push_back({name + "_first", "", name, {In::integers({3, 7}, 0, 2)}, 1, {{"axis", std::int64_t{1}}}});
    list.push_back({name + "_last",
                    "",
                    name,
                    {In::integers({3, 7}, 0, 2)},
                    1,
                    {{"axis", std::int64_t{-1}}, {"keepdims", kNo}, {"select_last_index", kYes}}});
    list.push_back({name + "_float", "", name, {In::random({4, 3})}});
  }
  for (const std::int64_t exclusive : {kNo, kYes})
    for (const std::int64_t reverse : {kNo, kYes})
      list.push_back({"CumSum_" + std::to_string(exclusive) + std::to_string(reverse),
                      "",
                      "CumSum",
                      {In::random({2, 3, 4}), In::scalarInt(1)},
                      1,
                      {{"exclusive", exclusive}, {"reverse", reverse}}});
  for (const std::int64_t exclusive : {kNo, kYes})
    for (const std::int64_t reverse : {kNo, kYes}) {
      const Attributes attributes{{"exclusive", exclusive}, {"reverse", reverse}};
      const std::string form = std::to_string(exclusive) + std::to_string(reverse);
      list.push_back({"CumProd_" + form, "", "CumProd", {In::random({2, 3, 4}), In::scalarInt(1)}, 1, attributes});
      list.push_back({"CumProdGrad_" + form,
                      "stepscope",
                      "CumProdGrad",
                      {In::random({2, 3, 4}), In::random({2, 3, 4}), In::scalarInt(1)},
                      1,
                      attributes});
    }
  list.push_back({"CumProd_none", "", "CumProd", {In::random({0, 3}), In::scalarInt(-1)}, 1, {}, 1e-6, false});
  list.push_back({"Inverse_batch", "com.microsoft", "Inverse", {In::random({2, 3, 3})}});
  // A zero on the diagonal has to be exchanged; no matrix at all has nothing to vary.
  list.push_back(
      {"Inverse_pivots", "com.microsoft", "Inverse", {values({3, 3}, {0, 2, 1, 1, 0, 3, 2, -1, 1})}, 1, {}, 1e-6, false});
  list.push_back({"Inverse_none", "com.microsoft", "Inverse", {In::random({0, 3, 3})}, 1, {}, 1e-6, false});
  // Random numbers are a positive definite matrix for sure only where each matrix is one number; slopes of larger ones are
  // in tests/engine/autodiff/matrix_gradients_test.cpp.
  list.push_back({"Cholesky_numbers", "stepscope", "Cholesky", {In::random({2, 1, 1}, 1, 2)}});
  list.push_back({"Cholesky_batch",
                  "stepscope",
                  "Cholesky",
                  {values({2, 3, 3}, {4, 1, 0, 1, 3, 1, 0, 1, 5, 2, 0, -1, 0, 1, 0.5F, -1, 0.5F, 3})},
                  1,
                  {},
                  1e-6,
                  false});
  list.push_back({"Cholesky_none", "stepscope", "Cholesky", {In::random({0, 3, 3})}, 1, {}, 1e-6, false});
  for (const std::int64_t upper : {kNo, kYes})
    for (const std::int64_t unit : {kNo, kYes})
      for (const std::int64_t transpose : {kNo, kYes})
        list.push_back({"TriangularSolve_" + std::to_string(upper) + std::to_string(unit) + std::to_string(transpose),
                        "stepscope",
                        "TriangularSolve",
                        {In::random(upper == unit ? Dims{2, 3, 3} : Dims{3, 3}, 0.5, 1.5), In::random({2, 3, 2})},
                        1,
                        {{"upper", upper}, {"unit_diagonal", unit}, {"transpose", transpose}}});
  list.push_back({"TriangularSolve_b_broadcast",
                  "stepscope",
                  "TriangularSolve",
                  {In::random({2, 3, 3}, 0.5, 1.5), In::random({3, 1})}});
  list.push_back({"Det_single", "", "Det", {In::random({3, 3})}});
  list.push_back({"Det_batch", "", "Det", {In::random({2, 2, 4, 4})}});
  list.push_back(
      {"DetGrad_singular", "stepscope", "DetGrad", {In::random({2}), values({2, 2, 2}, {1, 2, 2, 4, 0, 0, 0, 0})}});
}

void addSoftmax(std::vector<OpExample>& list) {
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    const std::string name = op;
    list.push_back({name + "_last", "", name, {In::random({2, 3, 4}, -3, 3)}});
    list.push_back({name + "_axis1", "", name, {In::random({2, 3, 4}, -3, 3)}, 1, {{"axis", std::int64_t{1}}}});
    list.push_back({name + "_large", "", name, {values({1, 3}, {1000, 1001, 999})}, 1, {}, 1e-6, false});
    list.push_back({name + "Grad",
                    "stepscope",
                    name + "Grad",
                    {In::random({2, 5}), In::random({2, 5}, -1, 0)},
                    1,
                    {{"axis", std::int64_t{-1}}}});
  }
  const float minus = -std::numeric_limits<float>::infinity();
  list.push_back(
      {"Softmax_masked", "", "Softmax", {values({2, 3}, {1, minus, 2, minus, minus, minus})}, 1, {}, 1e-6, false});
  // No gradient: the op is written after it was taken.
  const In scores = In::random({2, 3, 4, 5}, -3, 3);
  const Attributes fill{{"fill", -1e4F}}, inverted{{"fill", -1e4F}, {"invert", std::int64_t{1}}};
  list.push_back(
      {"MaskedSoftmax_added", "stepscope", "MaskedSoftmax", {scores, In::random({2, 1, 1, 5}, -3, 3)}, 1, {}, 1e-6, false});
  list.push_back({"MaskedSoftmax_whole", "stepscope", "MaskedSoftmax", {scores, scores}, 1, {}, 1e-6, false});
  list.push_back({"MaskedSoftmax_bools",
                  "stepscope",
                  "MaskedSoftmax",
                  {scores, In::integers({4, 5}, 0, 1, DType::kBool)},
                  1,
                  fill,
                  1e-6,
                  false});
  list.push_back({"MaskedSoftmax_inverted",
                  "stepscope",
                  "MaskedSoftmax",
                  {scores, In::integers({2, 1, 4, 1}, 0, 1, DType::kBool)},
                  1,
                  inverted,
                  1e-6,
                  false});
  list.push_back({"Hardmax_ties", "", "Hardmax", {values({2, 3}, {1, 3, 3, 2, 1, 0})}, 1, {{"axis", std::int64_t{-1}}}});
}

void addLayerNorms(std::vector<OpExample>& list) {
  const In x = In::random({2, 3, 5}), scale = In::random({5}, 0.5, 1.5), bias = In::random({5});
  const float epsilon = 1e-3F;
  list.push_back({"LayerNormalization", "", "LayerNormalization", {x, scale, bias}, 1, {{"epsilon", epsilon}}});
  list.push_back(
      {"LayerNormalization_outputs", "", "LayerNormalization", {x, scale, bias}, 3, {{"epsilon", epsilon}}, 1e-6, false});
  // With constant scale and bias, since mean and inverse deviation do not depend on them.
  list.push_back({"LayerNormalization_statistics",
                  "",
                  "LayerNormalization",
                  {x, values({5}, {1, 2, -1, 0.5F, 3})},
                  3,
                  {{"epsilon", epsilon}}});
  list.push_back({"LayerNormalization_no_bias", "", "LayerNormalization", {x, scale}});
  list.push_back({"LayerNormalization_axis1",
                  "",
                  "LayerNormalization",
                  {x, In::random({3, 5}), In::random({3, 5})},
                  1,
                  {{"axis", std::int64_t{1}}}});
  list.push_back({"LayerNormalization_broadcast",
                  "",
                  "LayerNormalization",
                  {x, scale, In::random({3, 5})},
                  1,
                  {{"axis", std::int64_t{1}}}});
  list.push_back({"LayerNormalizationGrad",
                  "stepscope",
                  "LayerNormalizationGrad",
                  {x, x, scale, In::random({2, 3, 1}), In::random({2, 3, 1}, 0.5, 2)},
                  3,
                  {{"axis", std::int64_t{-1}}}});
  for (const auto& [domain, op] : {std::pair{"", "RMSNormalization"},
                                   {"", "SimplifiedLayerNormalization"},
                                   {"com.microsoft", "SimplifiedLayerNormalization"}}) {
    const std::string name = std::string(domain).empty() ? op : std::string("ms_") + op;
    list.push_back({name, domain, op, {x, scale}, 1, {{"epsilon", epsilon}}});
    list.push_back({name + "_axis1", domain, op, {x, In::random({3, 5})}, 1, {{"axis", std::int64_t{1}}}});
    list.push_back({name + "_statistics", domain, op, {x, values({5}, {1, 2, -1, 0.5F, 3})}, 2, {{"epsilon", epsilon}}});
  }
  list.push_back(
      {"SimplifiedLayerNormalization_outputs", "", "SimplifiedLayerNormalization", {x, scale}, 2, {}, 1e-6, false});
  list.push_back({"SimplifiedLayerNormalizationGrad",
                  "stepscope",
                  "SimplifiedLayerNormalizationGrad",
                  {x, x, scale, In::random({2, 3, 1}, 0.5, 2)},
                  2,
                  {{"axis", std::int64_t{-1}}}});
  const std::vector<float> ones(5, 1.25F);
  const In fixed = values({5}, ones);
  const In skip = In::random({2, 3, 5}), shared = In::random({3, 5});
  list.push_back({"SkipLayerNormalization",
                  "com.microsoft",
                  "SkipLayerNormalization",
                  {x, skip, scale, bias, bias},
                  1,
                  {{"epsilon", epsilon}}});
  list.push_back({"SkipLayerNormalization_shared_skip",
                  "com.microsoft",
                  "SkipLayerNormalization",
                  {x, shared, scale},
                  1,
                  {{"epsilon", epsilon}}});
  // With constant scale and bias, since the sum (output 3) does not depend on them.
  list.push_back({"SkipLayerNormalization_sum",
                  "com.microsoft",
                  "SkipLayerNormalization",
                  {x, skip, fixed, fixed, bias},
                  4,
                  {{"epsilon", epsilon}}});
  list.push_back({"SkipSimplifiedLayerNormalization",
                  "com.microsoft",
                  "SkipSimplifiedLayerNormalization",
                  {x, skip, scale, bias},
                  1,
                  {{"epsilon", epsilon}}});
  list.push_back({"SkipSimplifiedLayerNormalization_sum",
                  "com.microsoft",
                  "SkipSimplifiedLayerNormalization",
                  {x, skip, fixed, bias},
                  4,
                  {{"epsilon", epsilon}}});
}

void addOtherNorms(std::vector<OpExample>& list) {
  const In x = In::random({2, 4, 3, 2}), scale = In::random({4}, 0.5, 1.5), bias = In::random({4});
  const In mean =
      In::of(convertTensor(Tensor::of<float>({4}, std::vector<float>{0.1F, -0.2F, 0.3F, 0}).view(), DType::kF32));
  const In variance = values({4}, {0.5F, 1, 2, 1.5F});
  list.push_back({"BatchNormalization_frozen", "", "BatchNormalization", {x, scale, bias, mean, variance}});
  list.push_back({"BatchNormalization_computed_statistics",
                  "",
                  "BatchNormalization",
                  {x, scale, bias, In::random({4}), In::random({4}, 0.5, 2)}});
  list.push_back(
      {"BatchNormalization_frozen_2d", "", "BatchNormalization", {In::random({3, 4}), scale, bias, mean, variance}, 5});
  list.push_back({"BatchNormalization_training",
                  "",
                  "BatchNormalization",
                  {x, scale, bias, mean, variance},
                  3,
                  {{"training_mode", kYes}, {"momentum", 0.8F}, {"epsilon", 1e-3F}}});
  list.push_back({"BatchNormalization_sample_variance",
                  "",
                  "BatchNormalization",
                  {In::random({3, 4, 2}), scale, bias, mean, variance},
                  5,
                  {{"training_mode", kYes}, {"sample_variance", kYes}}});
  list.push_back({"BatchNormalization_training_3d",
                  "",
                  "BatchNormalization",
                  {In::random({3, 4, 5}), scale, bias, mean, variance},
                  5,
                  {{"training_mode", kYes}}});
  const In inverse = In::random({4}, 0.5, 2);
  list.push_back({"BatchNormalizationGrad",
                  "stepscope",
                  "BatchNormalizationGrad",
                  {x, x, scale, bias, inverse},
                  3,
                  {{"training_mode", kYes}}});
  list.push_back({"BatchNormalizationGrad_frozen",
                  "stepscope",
                  "BatchNormalizationGrad",
                  {x, x, scale, bias, inverse},
                  3,
                  {{"training_mode", kNo}}});
  list.push_back({"BatchNormalizationGrad_without_x",
                  "stepscope",
                  "BatchNormalizationGrad",
                  {x, In::none(), scale, bias, inverse},
                  1,
                  {{"training_mode", kNo}}});
  const In z = In::random({2, 4, 3, 2});
  list.push_back({"FusedBatchNormalization",
                  "stepscope",
                  "FusedBatchNormalization",
                  {x, scale, bias, mean, variance, z},
                  5,
                  {{"training_mode", kYes}, {"relu", kYes}, {"momentum", 0.8F}}});
  list.push_back({"FusedBatchNormalization_alone",
                  "stepscope",
                  "FusedBatchNormalization",
                  {x, scale, bias, mean, variance},
                  1,
                  {{"relu", kYes}}});
  list.push_back({"FusedBatchNormalizationGrad",
                  "stepscope",
                  "FusedBatchNormalizationGrad",
                  {x, x, scale, bias, inverse, z},
                  4,
                  {{"training_mode", kYes}}});
  list.push_back({"FusedBatchNormalizationGrad_frozen",
                  "stepscope",
                  "FusedBatchNormalizationGrad",
                  {x, In::none(), scale, bias, inverse, z},
                  1,
                  {{"training_mode", kNo}}});
  list.push_back({"InstanceNormalization", "", "InstanceNormalization", {x, scale, bias}});
  list.push_back({"GroupNormalization", "", "GroupNormalization", {x, scale, bias}, 1, {{"num_groups", std::int64_t{2}}}});
  list.push_back({"GroupNormalization_per_group",
                  "",
                  "GroupNormalization",
                  {x, In::random({2}), In::random({2})},
                  1,
                  {{"num_groups", std::int64_t{2}}}});
  list.push_back({"GroupNormalizationGrad",
                  "stepscope",
                  "GroupNormalizationGrad",
                  {x, x, scale},
                  3,
                  {{"num_groups", std::int64_t{2}}, {"epsilon", 1e-5F}}});
  list.push_back({"MeanVarianceNormalization", "", "MeanVarianceNormalization", {x}});
  list.push_back({"MeanVarianceNormalization_axes",
                  "",
                  "MeanVarianceNormalization",
                  {x},
                  1,
                  {{"axes", std::vector<std::int64_t>{1, -1}}}});
  for (const std::int64_t p : {1, 2})
    list.push_back({"LpNormalization_" + std::to_string(p),
                    "",
                    "LpNormalization",
                    {In::random({2, 3, 4}, -1, 1, {0})},
                    1,
                    {{"p", p}, {"axis", std::int64_t{1}}}});
  list.push_back({"LpNormalization_zero", "", "LpNormalization", {values({2, 2}, {0, 0, 3, 4})}, 1, {}, 1e-6, false});
  for (const std::int64_t size : {3, 4})
    list.push_back({"LRN_" + std::to_string(size),
                    "",
                    "LRN",
                    {In::random({2, 6, 2}, -2, 2)},
                    1,
                    {{"size", size}, {"alpha", 0.5F}, {"beta", 0.75F}, {"bias", 1.5F}}});
  list.push_back({"LRNGrad",
                  "stepscope",
                  "LRNGrad",
                  {In::random({2, 6, 2}), In::random({2, 6, 2})},
                  1,
                  {{"size", std::int64_t{3}}, {"alpha", 0.5F}}});
}

void addCtc(std::vector<OpExample>& list) {
  const auto ids = [](Dims dims, const std::vector<std::int64_t>& contents) {
    return In::of(Tensor::of<std::int64_t>(std::move(dims), std::span<const std::int64_t>(contents)));
  };
  // A repeated label needs a blank between; samples shorter than the tensors; no label at all; targets in one row.
  const In scores = In::random({5, 3, 4}, -3, -0.1), targets = ids({3, 2}, {1, 1, 2, 3, 1, 1}), one = ids({4}, {1, 1, 2, 3}),
           steps = ids({3}, {5, 4, 2}), lengths = ids({3}, {2, 2, 0});
  list.push_back({"CtcLoss_padded", "stepscope", "CtcLoss", {scores, targets, steps, lengths}});
  list.push_back({"CtcLoss_one_row", "stepscope", "CtcLoss", {scores, one, steps, lengths}});
  list.push_back({"CtcLoss_blank",
                  "stepscope",
                  "CtcLoss",
                  {scores, ids({3, 2}, {0, 1, 2, 2, 1, 0}), steps, lengths},
                  1,
                  {{"blank", std::int64_t{3}}}});
  // Two equal labels do not fit two steps.
  list.push_back({"CtcLoss_impossible",
                  "stepscope",
                  "CtcLoss",
                  {scores, targets, ids({3}, {2, 4, 0}), lengths},
                  1,
                  {{"zero_infinity", std::int64_t{1}}}});
  // With `normalized` not the slope, but what PyTorch answers: no differences.
  for (const std::int64_t normalized : {kNo, kYes})
    list.push_back({normalized ? "CtcLossGrad_normalized" : "CtcLossGrad_slope",
                    "stepscope",
                    "CtcLossGrad",
                    {In::random({3}), scores, targets, steps, lengths},
                    1,
                    {{"normalized", normalized}}});
}

void addLosses(std::vector<OpExample>& list) {
  const std::int64_t ignored = 2;
  for (const auto& [domain, op] : {std::pair{"", "SoftmaxCrossEntropyLoss"},
                                   {"", "NegativeLogLikelihoodLoss"},
                                   {"com.microsoft", "SoftmaxCrossEntropyLossInternal"},
                                   {"com.microsoft", "NegativeLogLikelihoodLossInternal"}}) {
    const std::string name = op;
    const In scores = In::random({4, 3}, -2, 2), maps = In::random({2, 3, 4}, -2, 2), weights = In::random({3}, 0.5, 2);
    const In labels = In::of(Tensor::of<std::int64_t>({4}, std::vector<std::int64_t>{0, 2, 1, 0}));
    const In mapLabels = In::integers({2, 4}, 0, 2, DType::kI32);
    for (const char* reduction : {"none", "sum", "mean"}) {
      const std::string r = reduction;
      list.push_back({name + "_" + r, domain, op, {scores, labels}, 1, {{"reduction", r}}});
      list.push_back({name + "_weights_" + r,
                      domain,
                      op,
                      {maps, mapLabels, weights},
                      1,
                      {{"reduction", r}, {"ignore_index", ignored}}});
    }
  }
  const In scores = In::random({4, 3}, -2, 2);
  const In labels = In::of(Tensor::of<std::int64_t>({4}, std::vector<std::int64_t>{0, -1, 1, 0}));
  const std::int64_t negative = -1;
  list.push_back({"SoftmaxCrossEntropyLoss_log_prob",
                  "",
                  "SoftmaxCrossEntropyLoss",
                  {scores, labels},
                  2,
                  {{"ignore_index", negative}}});
  list.push_back({"SoftmaxCrossEntropyLoss_all_ignored",
                  "",
                  "SoftmaxCrossEntropyLoss",
                  {scores, In::integers({4}, -1, -1)},
                  1,
                  {{"ignore_index", negative}},
                  1e-6,
                  false});
  list.push_back({"SoftmaxCrossEntropyLossInternal_ignore_input",
                  "com.microsoft",
                  "SoftmaxCrossEntropyLossInternal",
                  {scores, labels, In::none(), In::scalarInt(-1)},
                  2});
  list.push_back({"SoftmaxCrossEntropyLossGrad",
                  "stepscope",
                  "SoftmaxCrossEntropyLossGrad",
                  {In::random({}), In::random({4, 3}, -3, 0), labels},
                  1,
                  {{"ignore_index", negative}, {"reduction", std::string("mean")}}});
  list.push_back(
      {"SoftmaxCrossEntropyLossGrad_added",
       "stepscope",
       "SoftmaxCrossEntropyLossGrad",
       {In::random({}), In::random({4, 3}, -3, 0), labels, In::random({3}, 0.5, 2), In::scalarInt(-1), In::random({4, 3})},
       1,
       {{"reduction", std::string("mean")}}});
  list.push_back({"NegativeLogLikelihoodLossGrad",
                  "stepscope",
                  "NegativeLogLikelihoodLossGrad",
                  {In::random({}), In::ints({4, 3}), labels},
                  1,
                  {{"ignore_index", negative}, {"reduction", std::string("sum")}}});
}

std::vector<OpExample> makeExamples() {
  std::vector<OpExample> list;
  addReductions(list);
  addSoftmax(list);
  addLayerNorms(list);
  addOtherNorms(list);
  addLosses(list);
  addCtc(list);
  return list;
}

}  // namespace

std::span<const OpExample> reductionExamples() {
  static const std::vector<OpExample> all = makeExamples();
  return all;
}

}  // namespace stepscope::testing
