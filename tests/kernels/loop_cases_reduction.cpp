// Vectorised loops that go over an axis: sums, softmax, losses, normalisations, sorting.
#include <algorithm>
#include <cmath>

#include "tests/kernels/loop_cases.h"

namespace stepscope {
namespace {

Operands softmax(Random& random, int round, Attributes& attrs) {
  const Dims dims = anyDims(random, round);
  setAxis(random, dims, attrs, round % 2 == 0);
  Tensor x = floats(random, dims, -20, 20);
  if (round % 5 == 4)
    for (float& v : x.as<float>())
      if (random() % 4 == 0) v = -INFINITY;
  return {{x}, {{DType::kF32, dims}}};
}

Operands softmaxGrad(Random& random, int round, Attributes& attrs) {
  const Dims dims = anyDims(random, round);
  setAxis(random, dims, attrs, round % 2 == 0);
  return {{floats(random, dims, -1, 1), floats(random, dims, -3, 0.5F)}, {{DType::kF32, dims}}};
}

struct LossShape {
  Dims scores, labels;
  Tensor targets, weights, ignore;
};
LossShape lossShape(Random& random, int round, Attributes& attrs) {
  const char* reductions[] = {"mean", "sum", "none"};
  attrs.set("reduction", std::string(reductions[round % 3]));
  const std::int64_t rows = 1 + below(random, 40), classes = 2 + below(random, round % 8 == 7 ? 3000 : 70);
  LossShape s{{rows, classes}, {rows}, {}, {}, {}};
  if (round / 3 % 2 == 1) {  // as in segmentation
    s.scores = {1 + below(random, 3), classes, 1 + below(random, 12), 1 + below(random, 19)};
    s.labels = {s.scores[0], s.scores[2], s.scores[3]};
    if (round % 4 == 1) s.scores.pop_back(), s.labels.pop_back();
  }
  s.targets = round % 2 ? integers<std::int32_t>(random, s.labels, 0, classes - 1)
                        : integers<std::int64_t>(random, s.labels, 0, classes - 1);
  if (round % 4 >= 2) s.weights = floats(random, {classes}, 0.1F, 2);
  if (round % 5 >= 3) {
    attrs.set("ignore_index", std::int64_t{-100});
    for (std::int64_t i = 1; i < s.targets.elements(); i += 3) storeElement(s.targets.view(), i, -100);
  }
  return s;
}
std::pair<DType, Dims> lossOutput(const LossShape& s, int round) {
  return {DType::kF32, round % 3 == 2 ? s.labels : Dims{}};
}

auto crossEntropy(bool withLogProbability) {
  return [=](Random& random, int round, Attributes& attrs) {
    const LossShape s = lossShape(random, round, attrs);
    Operands o{{floats(random, s.scores, -9, 9), s.targets, s.weights}, {lossOutput(s, round)}};
    if (withLogProbability && round % 7 != 0) o.outputs.push_back({DType::kF32, s.scores});
    return o;
  };
}

auto crossEntropyGrad(bool likelihood) {
  return [=](Random& random, int round, Attributes& attrs) {
    const LossShape s = lossShape(random, round, attrs);
    const Tensor dy = floats(random, lossOutput(s, round).second, -1, 1);
    const Tensor second = likelihood ? Tensor::ints(s.scores) : floats(random, s.scores, -9, 0);
    return Operands{{dy, second, s.targets, s.weights}, {{DType::kF32, s.scores}}};
  };
}

// With another gradient of the scores, where the classes are the last axis.
Operands crossEntropyGradAdded(Random& random, int round, Attributes& attrs) {
  Operands o = crossEntropyGrad(false)(random, round, attrs);
  if (o.outputs[0].second.size() != 2) return o;
  o.inputs.push_back(Tensor());
  o.inputs.push_back(floats(random, o.outputs[0].second, -1, 1));
  return o;
}

std::pair<std::int64_t, Dims> normShape(Random& random, int round, Attributes& attrs) {
  const Dims dims = anyDims(random, round);
  attrs.set("epsilon", 1e-5F);
  return {setAxis(random, dims, attrs, round % 2 == 0), dims};
}

auto norm(bool centred) {
  return [=](Random& random, int round, Attributes& attrs) {
    const auto [axis, dims] = normShape(random, round, attrs);
    const Dims tail(dims.begin() + axis, dims.end());
    Dims statistics = dims;
    std::fill(statistics.begin() + axis, statistics.end(), 1);
    Operands o{{floats(random, dims, -1, 3), floats(random, tail, 0.5F, 2)}, {{DType::kF32, dims}}};
    if (centred && round % 3 != 2) o.inputs.push_back(floats(random, tail, -1, 1));
    for (int i = 0; i < (centred ? 2 : 1) && round % 4 != 3; ++i) o.outputs.push_back({DType::kF32, statistics});
    return o;
  };
}

auto normGrad(bool centred) {
  return [=](Random& random, int round, Attributes& attrs) {
    const auto [axis, dims] = normShape(random, round, attrs);
    const Dims tail(dims.begin() + axis, dims.end());
    Dims statistics = dims;
    std::fill(statistics.begin() + axis, statistics.end(), 1);
    Operands o{{floats(random, dims, -1, 1), floats(random, dims, -1, 3), floats(random, tail, 0.5F, 2)},
               {{DType::kF32, dims}, {DType::kF32, tail}}};
    if (centred) o.inputs.push_back(floats(random, statistics, 0.5F, 1.5F));
    o.inputs.push_back(floats(random, statistics, 0.5F, 2));
    if (centred) o.outputs.push_back({DType::kF32, tail});
    return o;
  };
}

auto skipNorm(bool centred) {
  return [=](Random& random, int round, Attributes& attrs) {
    attrs.set("epsilon", 1e-5F);
    const Dims dims{1 + below(random, 4), 1 + below(random, 30), 1 + below(random, round % 8 == 7 ? 700 : 70)},
        tail{dims[2]}, statistics{dims[0], dims[1], 1};
    Operands o{{floats(random, dims, -1, 1), floats(random, round % 2 ? dims : Dims{dims[1], dims[2]}, -1, 1),
                floats(random, tail, 0.5F, 2)},
               {{DType::kF32, dims}, {DType::kF32, statistics}, {DType::kF32, statistics}}};
    if (centred) o.inputs.push_back(round % 3 ? floats(random, tail, -1, 1) : Tensor());
    if (round % 4 > 1) o.inputs.push_back(floats(random, tail, -1, 1));
    if (round % 5 > 2) o.outputs.push_back({DType::kF32, dims});
    return o;
  };
}

Operands reduce(Random& random, int round, Attributes& attrs) {
  const Dims dims = round % 8 == 5 ? Dims{60000 + below(random, 100)} : anyDims(random, round);
  std::vector<std::int64_t> axes;
  Dims out = dims;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (random() % 2 == 0) {
      axes.push_back(random() % 2 ? static_cast<std::int64_t>(i)
                                  : static_cast<std::int64_t>(i) - static_cast<std::int64_t>(dims.size()));
      out[i] = 1;
    }
  if (axes.empty()) out.assign(dims.size(), 1);
  attrs.set("keepdims", std::int64_t{1});
  return {{floats(random, dims, -2, 3, round % 6 == 0), axes.empty() ? Tensor() : Tensor::ints(axes)}, {{DType::kF32, out}}};
}

// dy, x, axes?; some results have zeros among their elements.
Operands reduceProdGrad(Random& random, int round, Attributes& attrs) {
  Operands o = reduce(random, round, attrs);
  Tensor x = floats(random, o.inputs[0].dims(), 0.5F, 1.5F);
  if (round % 2)
    for (float& v : x.as<float>())
      if (random() % 20 == 0) v = 0;
  return {{floats(random, o.outputs[0].second, -1, 1), x, o.inputs[1]}, {{DType::kF32, x.dims()}}};
}

Operands meanVariance(Random& random, int round, Attributes& attrs) {
  const Dims dims = anyDims(random, round);
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (random() % 2 == 0) axes.push_back(static_cast<std::int64_t>(i));
  if (axes.empty()) axes.push_back(-1);
  attrs.set("axes", axes);
  return {{floats(random, dims, -1, 3)}, {{DType::kF32, dims}}};
}

Operands lpNormalization(Random& random, int round, Attributes& attrs) {
  const Dims dims = anyDims(random, round);
  setAxis(random, dims, attrs, round % 2 == 0);
  attrs.set("p", std::int64_t{1 + round % 3 % 2});
  Tensor x = floats(random, dims, -2, 2, round % 7 == 6);
  if (round % 5 == 4)
    for (float& v : x.as<float>()) v = 0;
  return {{x}, {{DType::kF32, dims}}};
}

auto lrn(bool grad) {
  return [=](Random& random, int round, Attributes& attrs) {
    attrs = {{"size", std::int64_t{1 + round % 7}},
             {"alpha", 0.1F + 0.1F * static_cast<float>(round % 3)},
             {"beta", round % 2 ? 0.75F : 0.6F},
             {"bias", 1.0F + 0.5F * static_cast<float>(round % 2)}};
    const Dims dims{1 + below(random, 3), 1 + below(random, 20), 1 + below(random, 9),
                    1 + below(random, round % 8 == 7 ? 90 : 12)};
    Operands o{{floats(random, dims, -2, 2)}, {{DType::kF32, dims}}};
    if (grad) o.inputs.insert(o.inputs.begin(), floats(random, dims, -1, 1));
    return o;
  };
}

// With equal elements, which only the first of counts.
Operands hardmax(Random& random, int round, Attributes& attrs) {
  const Dims dims = anyDims(random, round);
  setAxis(random, dims, attrs, round % 2 == 0);
  const Tensor x = round % 5 == 0 ? floats(random, dims, -1, 1, true)
                                  : convertTensor(integers<std::int64_t>(random, dims, -4, 4).view(), DType::kF32);
  return {{x}, {{DType::kF32, dims}}};
}

auto globalPool(bool grad) {
  return [=](Random& random, int round, Attributes& attrs) {
    if (round % 2) attrs.set("p", std::int64_t{1});
    Dims dims{1 + below(random, 3), 1 + below(random, 5)}, one = dims;
    for (int i = 0; i <= round % 3; ++i) dims.push_back(1 + below(random, round % 8 == 7 ? 70 : 9)), one.push_back(1);
    const Tensor x = floats(random, dims, -2, 2, round % 4 == 3);
    return grad ? Operands{{floats(random, one, -1, 1), x}, {{DType::kF32, dims}}} : Operands{{x}, {{DType::kF32, one}}};
  };
}

Operands reduceToShape(Random& random, int round, Attributes&) {
  const Dims dims = anyDims(random, round);
  const Dims target = broadcastOf(random, dims);
  return {{floats(random, dims, -2, 3), Tensor::ints(target)}, {{DType::kF32, target}}};
}

Operands squareSum(Random& random, int round, Attributes&) {
  return {{floats(random, round % 4 == 3 ? Dims{100000 + below(random, 50)} : anyDims(random, round), -2, 3)},
          {{DType::kF32, {}}}};
}

Operands argReduce(Random& random, int round, Attributes& attrs) {
  const Dims dims = anyDims(random, round);
  const auto axis = static_cast<std::size_t>(setAxis(random, dims, attrs, round % 2 == 0));
  attrs.set("select_last_index", std::int64_t{round % 3 == 0});
  Tensor x = integers<std::int64_t>(random, dims, -4, 4);  // with equal elements
  Tensor y = convertTensor(x.view(), DType::kF32);
  if (round % 5 == 0) y = floats(random, dims, -1, 1, true);
  Dims out = dims;
  out[axis] = 1;
  return {{y}, {{DType::kI64, out}}};
}

Operands cumSum(Random& random, int round, Attributes& attrs) {
  const Dims dims = anyDims(random, round);
  attrs.set("exclusive", std::int64_t{round % 2});
  attrs.set("reverse", std::int64_t{round % 3 == 0});
  return {{floats(random, dims, -1, 1),
           Tensor::scalar(DType::kI64, static_cast<double>(below(random, static_cast<std::int64_t>(dims.size()))))},
          {{DType::kF32, dims}}};
}

// Groups of channels: round % 3 == 0 one per channel, as InstanceNormalization has them; % 5 == 4 one scale per group.
struct GroupShape {
  Dims dims, scales;
};
GroupShape groupShape(Random& random, int round, Attributes& attrs, bool instance) {
  attrs.set("epsilon", 1e-5F);
  const std::int64_t groups = 1 + below(random, 5), perGroup = instance ? 1 : 1 + below(random, 4);
  GroupShape s{{1 + below(random, 3), groups * perGroup}, {groups * perGroup}};
  for (int i = 0; i < round % 4; ++i) s.dims.push_back(1 + below(random, round % 8 == 7 ? 40 : 7));
  if (s.dims.size() == 2) s.dims.push_back(1500);
  if (!instance && round % 5 == 4) s.scales = {groups};
  if (!instance) attrs.set("num_groups", groups);
  return s;
}

auto groupNorm(bool instance) {
  return [=](Random& random, int round, Attributes& attrs) {
    const GroupShape s = groupShape(random, round, attrs, instance);
    return Operands{{floats(random, s.dims, -1, 3), floats(random, s.scales, 0.5F, 2), floats(random, s.scales, -1, 1)},
                    {{DType::kF32, s.dims}}};
  };
}

Operands groupNormGrad(Random& random, int round, Attributes& attrs) {
  const GroupShape s = groupShape(random, round, attrs, round % 3 == 0);
  if (round % 3 == 0) attrs.set("num_groups", std::int64_t{0});
  return {{floats(random, s.dims, -1, 1), floats(random, s.dims, -1, 3), floats(random, s.scales, 0.5F, 2)},
          {{DType::kF32, s.dims}, {DType::kF32, s.scales}, {DType::kF32, s.scales}}};
}

Operands topK(Random& random, int round, Attributes& attrs) {
  const Dims dims = anyDims(random, round);
  const auto axis = static_cast<std::size_t>(setAxis(random, dims, attrs, round % 2 == 0));
  attrs.set("largest", std::int64_t{round % 3 != 0});
  Tensor x = convertTensor(integers<std::int64_t>(random, dims, -4, 4).view(), DType::kF32);  // with equal elements
  if (round % 4 == 0) x = floats(random, dims, -1, 1, true);
  Dims out = dims;
  out[axis] = 1 + below(random, dims[axis]);
  return {{x, Tensor::ints(std::vector<std::int64_t>{out[axis]})}, {{DType::kF32, out}, {DType::kI64, out}}};
}

}  // namespace

std::vector<LoopCase> reductionLoops() {
  return {
      {"", "ArgMax", argReduce, 0, -1, ""},
      {"", "ArgMin", argReduce, 0, -1, ""},
      {"", "CumSum", cumSum, 1e-6, 0, ""},
      {"", "GlobalLpPool", globalPool(false), 1e-6, -1, ""},
      {"", "GlobalMaxPool", globalPool(false), 0, -1, ""},
      {"", "GroupNormalization", groupNorm(false), 1e-5, 0, ""},
      {"", "Hardmax", hardmax, 0, 0, ""},
      {"", "InstanceNormalization", groupNorm(true), 1e-5, 0, ""},
      {"", "LRN", lrn(false), 1e-6, -1, ""},
      {"", "LayerNormalization", norm(true), 1e-5, 0, ""},
      {"", "LogSoftmax", softmax, 5e-6, 0, ""},
      {"", "LpNormalization", lpNormalization, 1e-6, 0, ""},
      {"", "MeanVarianceNormalization", meanVariance, 1e-6, 0, ""},
      {"", "NegativeLogLikelihoodLoss", crossEntropy(false), 1e-6, -1, ""},
      {"", "RMSNormalization", norm(false), 1e-5, 0, ""},
      {"", "ReduceL1", reduce, 1e-6, -1, ""},
      {"", "ReduceL2", reduce, 1e-6, -1, ""},
      {"", "ReduceLogSum", reduce, 1e-5, -1, ""},
      {"", "ReduceLogSumExp", reduce, 1e-6, -1, ""},
      {"", "ReduceMax", reduce, 0, -1, ""},
      {"", "ReduceMean", reduce, 1e-6, -1, ""},
      {"", "ReduceMin", reduce, 0, -1, ""},
      {"", "ReduceProd", reduce, 1e-6, -1, ""},
      {"", "ReduceSum", reduce, 1e-6, -1, ""},
      {"", "ReduceSumSquare", reduce, 1e-6, -1, ""},
      {"", "SimplifiedLayerNormalization", norm(false), 1e-5, 0, ""},
      {"", "Softmax", softmax, 2e-6, 0, ""},
      {"", "SoftmaxCrossEntropyLoss", crossEntropy(true), 5e-6, -1, ""},
      {"", "TopK", topK, 0, -1, ""},
      {"com.microsoft", "SkipLayerNormalization", skipNorm(true), 1e-5, -1, ""},
      {"com.microsoft", "SkipSimplifiedLayerNormalization", skipNorm(false), 1e-5, -1, ""},
      {"com.microsoft", "SoftmaxCrossEntropyLossInternal", crossEntropy(true), 5e-6, -1, ""},
      {"stepscope", "GlobalMaxPoolGrad", globalPool(true), 0, -1, ""},
      {"stepscope", "GroupNormalizationGrad", groupNormGrad, 2e-5, -1, ""},
      {"stepscope", "LRNGrad", lrn(true), 2e-6, -1, ""},
      {"stepscope", "LayerNormalizationGrad", normGrad(true), 2e-5, 0, "OverDy"},
      {"stepscope", "LayerNormalizationGrad", normGrad(true), 2e-5, 1, "OverX"},
      {"stepscope", "LogSoftmaxGrad", softmaxGrad, 1e-5, 1, ""},
      {"stepscope", "NegativeLogLikelihoodLossGrad", crossEntropyGrad(true), 1e-6, -1, ""},
      {"stepscope", "ReduceProdGrad", reduceProdGrad, 1e-6, -1, ""},
      {"stepscope", "ReduceToShape", reduceToShape, 1e-6, -1, ""},
      {"stepscope", "SimplifiedLayerNormalizationGrad", normGrad(false), 2e-5, 0, ""},
      {"stepscope", "SoftmaxCrossEntropyLossGrad", crossEntropyGrad(false), 1e-6, 1, ""},
      {"stepscope", "SoftmaxCrossEntropyLossGrad", crossEntropyGradAdded, 1e-6, -1, "Added"},
      {"stepscope", "SoftmaxGrad", softmaxGrad, 2e-5, 1, ""},
      {"stepscope", "SquareSum", squareSum, 1e-6, -1, ""},
  };
}

}  // namespace stepscope
