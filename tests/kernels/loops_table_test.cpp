// Every vectorised loop beside its reference kernel: random shapes, odd tails, broadcasts, special values, several threads, and
// results that lie over an operand. One line of the table is one kernel.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>

#include "kernels/kernel.h"

namespace stepscope {
namespace {

using Random = std::mt19937;

// One call: inputs (an invalid tensor is an absent one), and type and extents of the outputs.
struct Operands {
  std::vector<Tensor> inputs;
  std::vector<std::pair<DType, Dims>> outputs;
};

struct Case {
  std::string domain, op;
  std::function<Operands(Random&, int round, Attributes&)> make;
  double tolerance = 1e-6;  // relative to max(1, |expected|)
  int inPlace = -1;         // the input that output 0 may lie over
  std::string label;        // where an op stands twice
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.domain << "." << test.op << " " << test.label; }

std::int64_t below(Random& random, std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)); }

// Extents up to those that run in several threads; rank 1..4.
Dims anyDims(Random& random, int round) {
  if (round % 8 == 7) return {1 + below(random, 3), 1 + below(random, 90), 300 + below(random, 80)};
  Dims dims;
  for (std::int64_t i = 0, rank = 1 + below(random, 4); i < rank; ++i) dims.push_back(1 + below(random, rank < 3 ? 90 : 12));
  return dims;
}

Tensor floats(Random& random, Dims dims, float low, float high, bool specials = false) {
  Tensor tensor(DType::kF32, std::move(dims));
  std::uniform_real_distribution<float> value(low, high);
  for (float& x : tensor.as<float>()) {
    x = value(random);
    if (specials && random() % 16 == 0) {
      const float odd[] = {0.0F, -0.0F, INFINITY, -INFINITY, NAN, 1e-40F, -1e-40F, 3e38F};
      x = odd[random() % 8];
    }
  }
  return tensor;
}

template <typename T>
Tensor integers(Random& random, Dims dims, std::int64_t low, std::int64_t high) {
  Tensor tensor(DTypeOf<T>::value, std::move(dims));
  for (std::int64_t i = 0; i < tensor.elements(); ++i) storeElement(tensor.view(), i, static_cast<double>(low + below(random, high - low + 1)));
  return tensor;
}

Tensor valuesOf(Random& random, DType dtype, const Dims& dims, bool specials) {
  if (dtype == DType::kF32) return floats(random, dims, -3, 3, specials);
  if (dtype == DType::kBool) return integers<bool>(random, dims, 0, 1);
  if (dtype == DType::kI32) return integers<std::int32_t>(random, dims, -3, 3);
  return integers<std::int64_t>(random, dims, -3, 3);
}

// `dims` with some axes set to 1 or, in front, left out.
Dims broadcastOf(Random& random, const Dims& dims) {
  Dims result = dims;
  for (std::int64_t& extent : result)
    if (random() % 3 == 0) extent = 1;
  const auto cut = static_cast<std::ptrdiff_t>(below(random, static_cast<std::int64_t>(dims.size()) + 1));
  if (random() % 2 == 0) result.erase(result.begin(), result.begin() + cut);
  return result;
}

// --- makers

auto unary(float low, float high, bool specials = true) {
  return [=](Random& random, int round, Attributes&) {
    const Dims dims = anyDims(random, round);
    return Operands{{floats(random, dims, low, high, specials && round % 3 == 0)}, {{DType::kF32, dims}}};
  };
}

auto cast(DType from, DType to) {
  return [=](Random& random, int round, Attributes& attrs) {
    attrs.set("to", std::int64_t{1});
    const Dims dims = anyDims(random, round);
    return Operands{{convertTensor(floats(random, dims, -9, 9).view(), from)}, {{to, dims}}};
  };
}

auto pairOf(DType in, DType out) {
  return [=](Random& random, int round, Attributes&) {
    const Dims y = anyDims(random, round);
    Dims a = y, b = y;
    if (round % 2 == 1) (random() % 2 == 0 ? a : b) = broadcastOf(random, y);
    if (round % 6 == 5) (a.size() == y.size() ? b : a) = Dims{};
    const bool specials = round % 3 == 0;
    return Operands{{valuesOf(random, in, a, specials), valuesOf(random, in, b, specials)}, {{out, y}}};
  };
}

auto power(float exponent) {
  return [=](Random& random, int round, Attributes&) {
    const Dims dims = anyDims(random, round);
    Tensor e = Tensor::scalar(DType::kF32, static_cast<double>(exponent));
    if (std::isnan(exponent)) e = floats(random, broadcastOf(random, dims), -4, 4, round % 3 == 0);
    return Operands{{floats(random, dims, round % 2 ? 0.1F : -3, 3, round % 3 == 0), e}, {{DType::kF32, dims}}};
  };
}

auto where(DType dtype) {
  return [=](Random& random, int round, Attributes&) {
    const Dims y = anyDims(random, round);
    Dims c = y, a = y, b = y;
    if (round % 4 == 1) c = broadcastOf(random, y);
    if (round % 4 == 2) b = Dims{};
    if (round % 4 == 3) {
      a = broadcastOf(random, y);
      b = random() % 2 ? Dims{} : b;
    }
    return Operands{{valuesOf(random, DType::kBool, c, false), valuesOf(random, dtype, a, true), valuesOf(random, dtype, b, true)}, {{dtype, y}}};
  };
}

auto variadic(bool specials = true) {
  return [=](Random& random, int round, Attributes&) {
    const Dims dims = anyDims(random, round);
    Operands o{{}, {{DType::kF32, dims}}};
    for (int i = 0; i < 1 + round % 5; ++i) o.inputs.push_back(floats(random, dims, -3, 3, specials && round % 3 == 0));
    return o;
  };
}

std::int64_t setAxis(Random& random, const Dims& dims, Attributes& attrs, bool last) {
  const auto rank = static_cast<std::int64_t>(dims.size());
  const std::int64_t axis = last ? rank - 1 : below(random, rank);
  attrs.set("axis", random() % 2 ? axis : axis - rank);
  return axis;
}

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
  s.targets = round % 2 ? integers<std::int32_t>(random, s.labels, 0, classes - 1) : integers<std::int64_t>(random, s.labels, 0, classes - 1);
  if (round % 4 >= 2) s.weights = floats(random, {classes}, 0.1F, 2);
  if (round % 5 >= 3) {
    attrs.set("ignore_index", std::int64_t{-100});
    for (std::int64_t i = 1; i < rows; i += 3) storeElement(s.targets.view(), i, -100);
  }
  return s;
}
std::pair<DType, Dims> lossOutput(const LossShape& s, int round) { return {DType::kF32, round % 3 == 2 ? s.labels : Dims{}}; }

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
    Operands o{{floats(random, dims, -1, 1), floats(random, dims, -1, 3), floats(random, tail, 0.5F, 2)}, {{DType::kF32, dims}, {DType::kF32, tail}}};
    if (centred) o.inputs.push_back(floats(random, statistics, 0.5F, 1.5F));
    o.inputs.push_back(floats(random, statistics, 0.5F, 2));
    if (centred) o.outputs.push_back({DType::kF32, tail});
    return o;
  };
}

auto skipNorm(bool centred) {
  return [=](Random& random, int round, Attributes& attrs) {
    attrs.set("epsilon", 1e-5F);
    const Dims dims{1 + below(random, 4), 1 + below(random, 30), 1 + below(random, round % 8 == 7 ? 700 : 70)}, tail{dims[2]}, statistics{dims[0], dims[1], 1};
    Operands o{{floats(random, dims, -1, 1), floats(random, round % 2 ? dims : Dims{dims[1], dims[2]}, -1, 1), floats(random, tail, 0.5F, 2)},
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
      axes.push_back(random() % 2 ? static_cast<std::int64_t>(i) : static_cast<std::int64_t>(i) - static_cast<std::int64_t>(dims.size()));
      out[i] = 1;
    }
  if (axes.empty()) out.assign(dims.size(), 1);
  attrs.set("keepdims", std::int64_t{1});
  return {{floats(random, dims, -2, 3, round % 6 == 0), axes.empty() ? Tensor() : Tensor::ints(axes)}, {{DType::kF32, out}}};
}

Operands reduceToShape(Random& random, int round, Attributes&) {
  const Dims dims = anyDims(random, round);
  const Dims target = broadcastOf(random, dims);
  return {{floats(random, dims, -2, 3), Tensor::ints(target)}, {{DType::kF32, target}}};
}

Operands squareSum(Random& random, int round, Attributes&) {
  return {{floats(random, round % 4 == 3 ? Dims{100000 + below(random, 50)} : anyDims(random, round), -2, 3)}, {{DType::kF32, {}}}};
}

auto gather(bool grad, bool added = false) {
  return [=](Random& random, int round, Attributes& attrs) {
    const Dims data = anyDims(random, round);
    const auto axis = static_cast<std::size_t>(setAxis(random, data, attrs, round % 3 == 1));
    const Dims indices = round % 2 ? Dims{1 + below(random, 20)} : Dims{2, 1 + below(random, 9)};
    Dims picked(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(axis));
    picked.insert(picked.end(), indices.begin(), indices.end());
    picked.insert(picked.end(), data.begin() + static_cast<std::ptrdiff_t>(axis) + 1, data.end());
    const Tensor index = round % 4 < 2 ? integers<std::int64_t>(random, indices, -data[axis], data[axis] - 1)
                                       : integers<std::int32_t>(random, indices, -data[axis], data[axis] - 1);
    if (added) return Operands{{floats(random, picked, -1, 1), index, Tensor::ints(data), floats(random, data, -1, 1)}, {{DType::kF32, data}}};
    if (grad) return Operands{{floats(random, picked, -1, 1), index}, {{DType::kF32, data}}};
    return Operands{{floats(random, data, -1, 1), index}, {{DType::kF32, picked}}};
  };
}

auto dropout(bool training) {
  return [=](Random& random, int round, Attributes&) {
    const Dims dims = anyDims(random, round);
    const double ratios[] = {0.1, 0.5, 0.0, 0.9999, 1.0 / 3};
    Operands o{{floats(random, dims, -3, 3), Tensor::scalar(DType::kF32, ratios[round % 5]), Tensor::scalar(DType::kBool, training ? 1 : 0)},
               {{DType::kF32, dims}}};
    if (round % 3 != 2) o.outputs.push_back({DType::kBool, dims});
    return o;
  };
}

auto clip(int bounds) {
  return [=](Random& random, int round, Attributes&) {
    const Dims dims = anyDims(random, round);
    Operands o{{floats(random, dims, -3, 3, round % 3 == 0)}, {{DType::kF32, dims}}};
    if (bounds > 0) o.inputs.push_back(bounds == 2 ? Tensor() : Tensor::scalar(DType::kF32, -1));
    if (bounds > 1) o.inputs.push_back(Tensor::scalar(DType::kF32, 1.5));
    return o;
  };
}

// Elements of the parameter: also so many that results are written past the caches.
Dims parameterDims(Random& random, int round) { return round % 8 == 7 ? Dims{300000 + below(random, 99)} : anyDims(random, round); }

Operands accumulate(Random& random, int round, Attributes&) {
  const Dims dims = parameterDims(random, round);
  Operands o{{floats(random, dims, -1, 1, round % 5 == 4), floats(random, dims, -1, 1), Tensor::scalar(DType::kBool, round % 3 == 0)}, {{DType::kF32, dims}}};
  if (round % 2) o.outputs.push_back({DType::kF32, {}});
  return o;
}

auto adam(bool lamb) {
  return [=](Random& random, int round, Attributes& attrs) {
    attrs = {
        {"beta1", 0.9F}, {"beta2", 0.999F}, {"eps", 1e-8F}, {"weight_decay", round % 2 ? 0.01F : 0.0F}, {"decoupled", std::int64_t{lamb ? 0 : round % 3 == 1}}};
    const Dims dims = parameterDims(random, round);
    Operands o{{floats(random, dims, -1, 1), floats(random, dims, -1, 1), floats(random, dims, -1, 1), floats(random, dims, 0, 1),
                Tensor::scalar(DType::kF32, 0.01), Tensor::scalar(DType::kI64, 1 + round)},
               {{DType::kF32, dims}, {DType::kF32, dims}, {DType::kF32, dims}}};
    if (round % 4 > 1) o.inputs.push_back(Tensor::scalar(DType::kF32, 0.5));
    return o;
  };
}

Operands sgd(Random& random, int round, Attributes& attrs) {
  const bool momentum = round % 3 != 0;
  attrs = {{"momentum", momentum ? 0.9F : 0.0F},
           {"dampening", round % 4 == 1 ? 0.1F : 0.0F},
           {"weight_decay", round % 2 ? 0.01F : 0.0F},
           {"nesterov", std::int64_t{round % 4 == 2}}};
  const Dims dims = parameterDims(random, round);
  Operands o{{floats(random, dims, -1, 1), floats(random, dims, -1, 1), momentum ? floats(random, dims, -1, 1) : Tensor(), Tensor::scalar(DType::kF32, 0.1),
              Tensor::scalar(DType::kF32, 0.5), Tensor::scalar(DType::kI64, 1 + round % 2)},
             {{DType::kF32, dims}}};
  if (momentum) o.outputs.push_back({DType::kF32, dims});
  return o;
}

Operands expand(Random& random, int round, Attributes&) {
  const Dims y = anyDims(random, round), x = broadcastOf(random, y);
  return {{floats(random, x, -1, 1), Tensor::ints(y)}, {{DType::kF32, y}}};
}

auto tile(bool grad) {
  return [=](Random& random, int round, Attributes&) {
    const Dims one = anyDims(random, round);
    Dims all = one, repeats;
    for (std::int64_t& extent : all) {
      repeats.push_back(1 + below(random, 3));
      extent *= repeats.back();
    }
    return grad ? Operands{{floats(random, all, -1, 1), Tensor::ints(repeats)}, {{DType::kF32, one}}}
                : Operands{{floats(random, one, -1, 1), Tensor::ints(repeats)}, {{DType::kF32, all}}};
  };
}

// Windows of some axes, with steps that may be negative; `grad`: written into their place.
auto slice(bool grad) {
  return [=](Random& random, int round, Attributes&) {
    const Dims whole = anyDims(random, round);
    Dims part = whole;
    std::vector<std::int64_t> starts, ends, axes, steps;
    for (std::size_t a = 0; a < whole.size(); ++a) {
      if (random() % 2 == 0) continue;
      const std::int64_t length = 1 + below(random, whole[a]), step = round % 2 == 0 ? 1 : 1 + below(random, 3), first = below(random, whole[a] - length + 1);
      const bool back = step > 1 && random() % 2 == 0;
      axes.push_back(static_cast<std::int64_t>(a));
      starts.push_back(back ? first + length - 1 : first);
      ends.push_back(back ? (first == 0 ? INT64_MIN + 1 : first - 1) : first + length);
      steps.push_back(back ? -step : step);
      part[a] = (length - 1) / step + 1;
    }
    Operands o{{floats(random, grad ? part : whole, -1, 1)}, {{DType::kF32, grad ? whole : part}}};
    if (grad) o.inputs.push_back(Tensor::ints(whole));
    for (const auto& list : {starts, ends, axes, steps}) o.inputs.push_back(Tensor::ints(list));
    return o;
  };
}

auto pad(bool grad) {
  return [=](Random& random, int round, Attributes& attrs) {
    attrs.set("mode", std::string("constant"));
    const Dims data = anyDims(random, round);
    Dims padded = data;
    std::vector<std::int64_t> pads(2 * data.size());
    for (std::size_t a = 0; a < data.size(); ++a)
      if (random() % 2 == 0)
        for (const std::size_t side : {a, a + data.size()}) padded[a] += pads[side] = below(random, 4);
    if (grad) return Operands{{floats(random, padded, -1, 1), Tensor::ints(data), Tensor::ints(pads)}, {{DType::kF32, data}}};
    Operands o{{floats(random, data, -1, 1), Tensor::ints(pads)}, {{DType::kF32, padded}}};
    if (round % 2) o.inputs.push_back(Tensor::scalar(DType::kF32, 1.5));
    return o;
  };
}

// Parts of one axis, some of them empty.
std::vector<Dims> partsOf(Random& random, const Dims& whole, std::int64_t axis) {
  std::vector<Dims> parts;
  for (std::int64_t left = whole[static_cast<std::size_t>(axis)]; left > 0 || parts.empty();) {
    Dims part = whole;
    part[static_cast<std::size_t>(axis)] = parts.size() == 4 ? left : below(random, left + 1);
    left -= part[static_cast<std::size_t>(axis)];
    parts.push_back(part);
  }
  return parts;
}

Operands concat(Random& random, int round, Attributes& attrs) {
  const Dims whole = anyDims(random, round);
  Operands o{{}, {{DType::kF32, whole}}};
  for (const Dims& part : partsOf(random, whole, setAxis(random, whole, attrs, round % 3 == 1))) o.inputs.push_back(floats(random, part, -1, 1));
  return o;
}

Operands split(Random& random, int round, Attributes& attrs) {
  const Dims whole = anyDims(random, round);
  const std::int64_t axis = setAxis(random, whole, attrs, round % 3 == 1);
  std::vector<std::int64_t> sizes;
  Operands o{{floats(random, whole, -1, 1)}, {}};
  for (const Dims& part : partsOf(random, whole, axis)) {
    sizes.push_back(part[static_cast<std::size_t>(axis)]);
    o.outputs.push_back({DType::kF32, part});
  }
  o.inputs.push_back(Tensor::ints(sizes));
  return o;
}

auto gatherElements(bool grad) {
  return [=](Random& random, int round, Attributes& attrs) {
    const Dims data = anyDims(random, round);
    const auto axis = static_cast<std::size_t>(setAxis(random, data, attrs, round % 3 == 1));
    Dims picked = data;
    picked[axis] = 1 + below(random, 9);
    const Tensor indices = integers<std::int64_t>(random, picked, -data[axis], data[axis] - 1);
    if (grad) return Operands{{floats(random, picked, -1, 1), indices}, {{DType::kF32, data}}};
    return Operands{{floats(random, data, -1, 1), indices}, {{DType::kF32, picked}}};
  };
}

Operands oneHot(Random& random, int round, Attributes& attrs) {
  const Dims indices = round % 2 ? Dims{1 + below(random, 30)} : Dims{2, 1 + below(random, 20)};
  const std::int64_t depth = 2 + below(random, 700), axis = below(random, static_cast<std::int64_t>(indices.size()) + 1);
  attrs.set("axis", axis);
  Dims y = indices;
  y.insert(y.begin() + axis, depth);
  return {{integers<std::int64_t>(random, indices, -depth - 2, depth + 1), Tensor::scalar(DType::kI64, static_cast<double>(depth)), floats(random, {2}, -1, 1)},
          {{DType::kF32, y}}};
}

Operands trilu(Random& random, int round, Attributes& attrs) {
  Dims dims = anyDims(random, round);
  if (dims.size() == 1) dims.push_back(7);
  attrs.set("upper", std::int64_t{round % 2});
  Operands o{{floats(random, dims, -1, 1)}, {{DType::kF32, dims}}};
  if (round % 3) o.inputs.push_back(Tensor::scalar(DType::kI64, static_cast<double>(below(random, 200) - 100)));
  return o;
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
  return {{floats(random, dims, -1, 1), Tensor::scalar(DType::kI64, static_cast<double>(below(random, static_cast<std::int64_t>(dims.size()))))},
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
    return Operands{{floats(random, s.dims, -1, 3), floats(random, s.scales, 0.5F, 2), floats(random, s.scales, -1, 1)}, {{DType::kF32, s.dims}}};
  };
}

Operands groupNormGrad(Random& random, int round, Attributes& attrs) {
  const GroupShape s = groupShape(random, round, attrs, round % 3 == 0);
  if (round % 3 == 0) attrs.set("num_groups", std::int64_t{0});
  return {{floats(random, s.dims, -1, 1), floats(random, s.dims, -1, 3), floats(random, s.scales, 0.5F, 2)},
          {{DType::kF32, s.dims}, {DType::kF32, s.scales}, {DType::kF32, s.scales}}};
}

// Index tuples that name runs of `data`, after batch axes that both share; int32 now and then.
struct TupleShape {
  Dims data, picked;
  Tensor indices;
};
TupleShape tupleShape(Random& random, int round, std::int64_t batchDims) {
  TupleShape s;
  s.data = round % 8 == 7 ? Dims{3, 60, 300} : anyDims(random, round);
  while (static_cast<std::int64_t>(s.data.size()) <= batchDims) s.data.push_back(1 + below(random, 9));
  const auto skip = static_cast<std::size_t>(batchDims), length = 1 + static_cast<std::size_t>(below(random, static_cast<std::int64_t>(s.data.size() - skip)));
  Dims outer(s.data.begin(), s.data.begin() + batchDims);
  for (std::int64_t i = 0, more = 1 + below(random, 2); i < more; ++i) outer.push_back(1 + below(random, round % 8 == 7 ? 90 : 9));
  s.picked = outer;
  s.picked.insert(s.picked.end(), s.data.begin() + static_cast<std::ptrdiff_t>(skip + length), s.data.end());
  Dims shape = outer;
  shape.push_back(static_cast<std::int64_t>(length));
  s.indices = Tensor(round % 4 < 2 ? DType::kI64 : DType::kI32, shape);
  for (std::int64_t i = 0; i < s.indices.elements(); ++i) {
    const std::int64_t extent = s.data[skip + static_cast<std::size_t>(i) % length];
    storeElement(s.indices.view(), i, static_cast<double>(below(random, 2 * extent) - extent));
  }
  return s;
}

auto gatherNd(bool grad, DType dtype = DType::kF32) {
  return [=](Random& random, int round, Attributes& attrs) {
    const std::int64_t batchDims = round % 3 == 2 ? 1 : 0;
    attrs.set("batch_dims", batchDims);
    const TupleShape s = tupleShape(random, round, batchDims);
    if (grad) return Operands{{floats(random, s.picked, -1, 1), s.indices, Tensor::ints(s.data)}, {{DType::kF32, s.data}}};
    return Operands{{valuesOf(random, dtype, s.data, false), s.indices}, {{dtype, s.picked}}};
  };
}

auto scatterNd(const char* reduction, DType dtype = DType::kF32) {
  return [=](Random& random, int round, Attributes& attrs) {
    attrs.set("reduction", std::string(reduction));
    const TupleShape s = tupleShape(random, round, 0);
    return Operands{{valuesOf(random, dtype, s.data, false), s.indices, valuesOf(random, dtype, s.picked, round % 3 == 0)}, {{dtype, s.data}}};
  };
}

auto scatterElements(const char* reduction, DType dtype = DType::kF32) {
  return [=](Random& random, int round, Attributes& attrs) {
    attrs.set("reduction", std::string(reduction));
    const Dims data = anyDims(random, round);
    const auto axis = static_cast<std::size_t>(setAxis(random, data, attrs, round % 3 == 1));
    Dims picked = data;
    picked[axis] = 1 + below(random, 9);
    const Tensor indices = integers<std::int64_t>(random, picked, -data[axis], data[axis] - 1);
    return Operands{{valuesOf(random, dtype, data, false), indices, valuesOf(random, dtype, picked, round % 3 == 0)}, {{dtype, data}}};
  };
}

// The last axis or the last two, larger and smaller, in every mode.
auto resize(bool grad) {
  return [=](Random& random, int round, Attributes& attrs) {
    Dims x{1 + below(random, 3), 1 + below(random, round % 8 == 7 ? 40 : 5), 1 + below(random, 20), 1 + below(random, 20)}, y = x;
    if (round % 6 == 5) x.erase(x.begin());
    y = x;
    if (round % 5 != 4) y[y.size() - 2] = round % 3 == 0 ? 2 * x[x.size() - 2] : 1 + below(random, 40);
    y.back() = round % 3 == 0 ? 2 * x.back() : 1 + below(random, 40);
    const char *modes[] = {"nearest", "linear", "cubic"}, *places[] = {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"};
    attrs.set("mode", std::string(modes[round % 3 == 0 ? round / 3 % 2 : below(random, 3)]));
    attrs.set("coordinate_transformation_mode", std::string(places[below(random, 4)]));
    if (round % 7 == 6) attrs.set("antialias", std::int64_t{attrs.text("mode", "") != "nearest"});
    const Tensor sizes = Tensor::ints(y);
    if (grad) return Operands{{floats(random, y, -1, 1), Tensor::ints(x), Tensor(), Tensor(), sizes}, {{DType::kF32, x}}};
    return Operands{{floats(random, x, -1, 1), Tensor(), Tensor(), sizes}, {{DType::kF32, y}}};
  };
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

std::vector<Case> table() {
  std::vector<Case> cases = {
      {"", "Abs", unary(-3, 3), 0, 0, ""},
      {"", "Acos", unary(-1, 1), 1e-6, 0, ""},
      {"", "Acosh", unary(0.5F, 30), 1e-6, 0, ""},
      {"", "ArgMax", argReduce, 0, -1, ""},
      {"", "ArgMin", argReduce, 0, -1, ""},
      {"", "Asin", unary(-1, 1), 1e-6, 0, ""},
      {"", "Asinh", unary(-30, 30), 1e-6, 0, ""},
      {"", "Atan", unary(-9, 9), 1e-6, 0, ""},
      {"", "Atanh", unary(-1, 1), 1e-6, 0, ""},
      {"", "Ceil", unary(-30, 30), 0, 0, ""},
      {"", "Celu", unary(-5, 5), 1e-6, 0, ""},
      {"", "Clip", clip(0), 0, 0, "Unbounded"},
      {"", "Clip", clip(1), 0, 0, "Low"},
      {"", "Clip", clip(2), 0, 0, "High"},
      {"", "Concat", concat, 0, -1, ""},
      {"", "Cos", unary(-60, 60), 1e-6, 0, ""},
      {"", "Cosh", unary(-9, 9), 1e-6, 0, ""},
      {"", "CumSum", cumSum, 1e-6, 0, ""},
      {"", "Dropout", dropout(false), 0, 0, "Inference"},
      {"", "Dropout", dropout(true), 1e-6, 0, "Training"},
      {"", "Elu", unary(-5, 5), 1e-6, 0, ""},
      {"", "Erf", unary(-5, 5), 1e-6, 0, ""},
      {"", "Exp", unary(-90, 90), 1e-6, 0, ""},
      {"", "Expand", expand, 0, -1, ""},
      {"", "Floor", unary(-30, 30), 0, 0, ""},
      {"", "Gather", gather(false), 0, -1, ""},
      {"", "GatherElements", gatherElements(false), 0, -1, ""},
      {"", "GatherND", gatherNd(false), 0, -1, ""},
      {"", "GatherND", gatherNd(false, DType::kI64), 0, -1, "Ints"},
      {"", "GatherND", gatherNd(false, DType::kBool), 0, -1, "Bools"},
      {"", "Gelu", unary(-6, 6), 1e-6, 0, ""},
      {"", "GroupNormalization", groupNorm(false), 1e-5, 0, ""},
      {"", "HardSigmoid", unary(-6, 6), 1e-6, 0, ""},
      {"", "HardSwish", unary(-6, 6, false), 1e-6, 0, ""},
      {"", "InstanceNormalization", groupNorm(true), 1e-5, 0, ""},
      {"", "LayerNormalization", norm(true), 1e-5, 0, ""},
      {"", "LeakyRelu", unary(-3, 3), 1e-6, 0, ""},
      {"", "Log", unary(0, 9), 1e-6, 0, ""},
      {"", "LogSoftmax", softmax, 5e-6, 0, ""},
      {"", "Max", variadic(), 0, 0, ""},
      {"", "Mean", variadic(false), 1e-6, 0, ""},
      {"", "Min", variadic(), 0, 0, ""},
      {"", "Mish", unary(-8, 8, false), 1e-6, 0, ""},
      {"", "Neg", unary(-3, 3), 0, 0, ""},
      {"", "NegativeLogLikelihoodLoss", crossEntropy(false), 1e-6, -1, ""},
      {"", "OneHot", oneHot, 0, -1, ""},
      {"", "Pad", pad(false), 0, -1, ""},
      {"", "Pow", power(0.5F), 1e-6, 0, "Half"},
      {"", "Pow", power(-0.5F), 1e-6, 0, "MinusHalf"},
      {"", "Pow", power(0), 0, 0, "Zero"},
      {"", "Pow", power(1), 0, 0, "One"},
      {"", "Pow", power(2), 1e-6, 0, "Two"},
      {"", "Pow", power(3), 1e-6, 0, "Three"},
      {"", "Pow", power(4), 1e-6, 0, "Four"},
      {"", "Pow", power(-1), 1e-6, 0, "MinusOne"},
      {"", "Pow", power(2.7F), 1e-6, 0, "Any"},
      {"", "Pow", power(NAN), 1e-6, 0, "Broadcast"},
      {"", "RMSNormalization", norm(false), 1e-5, 0, ""},
      {"", "Reciprocal", unary(-3, 3), 1e-6, 0, ""},
      {"", "ReduceL1", reduce, 1e-6, -1, ""},
      {"", "ReduceL2", reduce, 1e-6, -1, ""},
      {"", "ReduceLogSum", reduce, 1e-5, -1, ""},
      {"", "ReduceMax", reduce, 0, -1, ""},
      {"", "ReduceMean", reduce, 1e-6, -1, ""},
      {"", "ReduceMin", reduce, 0, -1, ""},
      {"", "ReduceSum", reduce, 1e-6, -1, ""},
      {"", "ReduceSumSquare", reduce, 1e-6, -1, ""},
      {"", "Relu", unary(-3, 3), 0, 0, ""},
      {"", "Resize", resize(false), 2e-6, -1, ""},
      {"", "Round", unary(-30, 30), 0, 0, ""},
      {"", "ScatterElements", scatterElements("none", DType::kI64), 0, 0, "Ints"},
      {"", "ScatterND", scatterNd("none", DType::kI64), 0, 0, "Ints"},
      {"", "Selu", unary(-5, 5), 1e-6, 0, ""},
      {"", "Sigmoid", unary(-20, 20), 1e-6, 0, ""},
      {"", "Sign", unary(-3, 3), 0, 0, ""},
      {"", "Sin", unary(-60, 60), 1e-6, 0, ""},
      {"", "Sinh", unary(-9, 9), 1e-6, 0, ""},
      {"", "SimplifiedLayerNormalization", norm(false), 1e-5, 0, ""},
      {"", "Slice", slice(false), 0, -1, ""},
      {"", "Softmax", softmax, 2e-6, 0, ""},
      {"", "SoftmaxCrossEntropyLoss", crossEntropy(true), 5e-6, -1, ""},
      {"", "Softplus", unary(-20, 20), 1e-6, 0, ""},
      {"", "Softsign", unary(-3, 3, false), 1e-6, 0, ""},
      {"", "Split", split, 0, -1, ""},
      {"", "Sqrt", unary(-1, 9), 1e-6, 0, ""},
      {"", "Sum", variadic(), 1e-6, 0, ""},
      {"", "Tan", unary(-60, 60), 1e-6, 0, ""},
      {"", "Tanh", unary(-12, 12), 1e-6, 0, ""},
      {"", "ThresholdedRelu", unary(-3, 3), 0, 0, ""},
      {"", "Tile", tile(false), 0, -1, ""},
      {"", "TopK", topK, 0, -1, ""},
      {"", "Trilu", trilu, 0, 0, ""},
      {"", "Where", where(DType::kBool), 0, 1, "Bools"},
      {"", "Where", where(DType::kF32), 0, 1, "Floats"},
      {"", "Where", where(DType::kI64), 0, 2, "Ints"},
      {"com.microsoft", "BiasGelu", pairOf(DType::kF32, DType::kF32), 2e-6, -1, ""},
      {"com.microsoft", "FastGelu", unary(-6, 6), 1e-6, 0, ""},
      {"com.microsoft", "Gelu", unary(-6, 6), 1e-6, 0, ""},
      {"com.microsoft", "QuickGelu", unary(-6, 6), 1e-6, 0, ""},
      {"com.microsoft", "ShrunkenGather", gather(false), 0, -1, ""},
      {"com.microsoft", "SkipLayerNormalization", skipNorm(true), 1e-5, -1, ""},
      {"com.microsoft", "SkipSimplifiedLayerNormalization", skipNorm(false), 1e-5, -1, ""},
      {"com.microsoft", "SoftmaxCrossEntropyLossInternal", crossEntropy(true), 5e-6, -1, ""},
      {"stepscope", "Accumulate", accumulate, 1e-6, 0, ""},
      {"stepscope", "AdamUpdate", adam(false), 2e-6, 0, ""},
      {"stepscope", "GatherElementsGrad", gatherElements(true), 1e-6, -1, ""},
      {"stepscope", "GatherGrad", gather(true), 1e-6, -1, ""},
      {"stepscope", "GatherGrad", gather(true, true), 1e-6, 3, "Added"},
      {"stepscope", "GatherNDGrad", gatherNd(true), 1e-6, -1, ""},
      {"stepscope", "GroupNormalizationGrad", groupNormGrad, 2e-5, -1, ""},
      {"stepscope", "LambUpdate", adam(true), 2e-6, 0, ""},
      {"stepscope", "LayerNormalizationGrad", normGrad(true), 2e-5, 0, "OverDy"},
      {"stepscope", "LayerNormalizationGrad", normGrad(true), 2e-5, 1, "OverX"},
      {"stepscope", "LogSoftmaxGrad", softmaxGrad, 1e-5, 1, ""},
      {"stepscope", "NegativeLogLikelihoodLossGrad", crossEntropyGrad(true), 1e-6, -1, ""},
      {"stepscope", "PadGrad", pad(true), 0, -1, ""},
      {"stepscope", "ReduceToShape", reduceToShape, 1e-6, -1, ""},
      {"stepscope", "ResizeGrad", resize(true), 1e-5, -1, ""},
      {"stepscope", "SgdUpdate", sgd, 1e-6, 0, ""},
      {"stepscope", "SimplifiedLayerNormalizationGrad", normGrad(false), 2e-5, 0, ""},
      {"stepscope", "SliceGrad", slice(true), 0, -1, ""},
      {"stepscope", "SoftmaxCrossEntropyLossGrad", crossEntropyGrad(false), 1e-6, 1, ""},
      {"stepscope", "SoftmaxGrad", softmaxGrad, 2e-5, 1, ""},
      {"stepscope", "SquareSum", squareSum, 1e-6, -1, ""},
      {"stepscope", "TileGrad", tile(true), 5e-6, -1, ""},
  };
  for (const char* op : {"Add", "Div", "Max", "Min", "Mul", "PRelu", "Sub"}) cases.push_back({"", op, pairOf(DType::kF32, DType::kF32), 1e-6, -1, "Broadcast"});
  for (const char* op : {"Add", "Mul", "Sub"}) cases.push_back({"", op, pairOf(DType::kI64, DType::kI64), 0, -1, "Ints"});
  for (const char* how : {"none", "add", "mul", "min", "max"}) {
    cases.push_back({"", "ScatterElements", scatterElements(how), 1e-6, 0, std::string("By_") + how});
    cases.push_back({"", "ScatterND", scatterNd(how), 1e-6, 0, std::string("By_") + how});
  }
  for (const char* op : {"And", "Or", "Xor"}) cases.push_back({"", op, pairOf(DType::kBool, DType::kBool), 0, -1, ""});
  for (const char* op : {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
    for (const DType dtype : {DType::kF32, DType::kI32, DType::kI64})
      cases.push_back({"", op, pairOf(dtype, DType::kBool), 0, -1, std::string(dtypeName(dtype))});
  for (const DType other : {DType::kBF16, DType::kBool, DType::kF16, DType::kF64}) {
    cases.push_back({"", "Cast", cast(DType::kF32, other), 0, -1, "To" + std::string(dtypeName(other))});
    cases.push_back({"", "Cast", cast(other, DType::kF32), 0, -1, "From" + std::string(dtypeName(other))});
  }
  for (const DType other : {DType::kI32, DType::kI64}) cases.push_back({"", "Cast", cast(other, DType::kF32), 0, -1, "From" + std::string(dtypeName(other))});
  return cases;
}

// --- running

enum class Place { kBeside, kOverInput };

std::vector<Tensor> runKernel(const Case& test, Backend backend, const Attributes& attrs, const Operands& operands, int threads, Place place,
                              std::string* implementation) {
  KernelSpec spec;
  spec.domain = test.domain;
  spec.op = test.op;
  spec.attrs = attrs;
  spec.threads = threads;
  std::vector<TensorView> in, out;
  std::vector<Tensor> inputs, results;
  for (const Tensor& tensor : operands.inputs) {
    inputs.push_back(tensor.valid() ? tensor.clone() : Tensor());
    spec.inputs.push_back(tensor.valid() ? OperandSpec{tensor.dtype(), tensor.dims(), false, tensor.dtype() == DType::kI64 ? tensor : Tensor()}
                                         : OperandSpec{});
    in.push_back(inputs.back().view());
  }
  for (const auto& [dtype, dims] : operands.outputs) {
    spec.outputs.push_back({dtype, dims, false, {}});
    results.emplace_back(dtype, dims);
    std::memset(results.back().data(), 0xFF, results.back().bytes());  // NaN: an element that is left out shows
    out.push_back(results.back().view());
  }
  const auto over = static_cast<std::size_t>(test.inPlace);
  if (place == Place::kOverInput) {
    EXPECT_EQ(inputs[over].bytes(), results[0].bytes());
    results[0] = inputs[over].reshaped(operands.outputs[0].second);
    out[0].data = results[0].data();
  }
  const auto kernel = makeKernel(backend, spec);
  EXPECT_TRUE(kernel.has_value());
  if (!kernel) return {};
  *implementation = (*kernel)->implementation();
  std::vector<std::byte> memory((*kernel)->workspaceBytes() + 64);
  std::byte* aligned = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
  const Status status = (*kernel)->run({in, out, {aligned, (*kernel)->workspaceBytes()}, {7, 3, 11}, {}});
  EXPECT_TRUE(status.has_value()) << (status ? "" : status.error().message);
  return results;
}

void expectEqual(const Case& test, const std::vector<Tensor>& fast, const std::vector<Tensor>& slow, const std::string& what) {
  ASSERT_EQ(fast.size(), slow.size());
  for (std::size_t o = 0; o < fast.size(); ++o)
    for (std::int64_t i = 0; i < fast[o].elements(); ++i) {
      const double a = elementAsDouble(fast[o].view(), i), b = elementAsDouble(slow[o].view(), i);
      if (std::isnan(b)) {
        ASSERT_TRUE(std::isnan(a)) << test.op << " output " << o << " element " << i << ": " << a << ", expected NaN; " << what;
        continue;
      }
      if (a == b) continue;
      ASSERT_LE(std::abs(a - b), test.tolerance * std::max(1.0, std::abs(b)))
          << test.op << " output " << o << " element " << i << " expected " << b << "; " << what;
    }
}

class LoopTable : public testing::TestWithParam<Case> {};

TEST_P(LoopTable, AgreesWithTheReferenceKernel) {
  const Case& test = GetParam();
  Random random(static_cast<unsigned>(std::hash<std::string>{}(test.op + test.label)));
  for (int round = 0; round < 48; ++round) {
    Attributes attrs;
    const Operands operands = test.make(random, round, attrs);
    std::string what, name;
    for (const Tensor& x : operands.inputs) what += x.valid() ? dimsText(x.dims()) + " " : "- ";
    what += "round " + std::to_string(round);
    const auto slow = runKernel(test, Backend::kReference, attrs, operands, 1, Place::kBeside, &name);
    std::vector<Tensor> first;
    for (const int threads : {1, 2, 3}) {
      const auto fast = runKernel(test, Backend::kCpu, attrs, operands, threads, Place::kBeside, &name);
      ASSERT_NE(name, "reference") << test.op << " " << what;
      expectEqual(test, fast, slow, what + ", threads " + std::to_string(threads));
      if (testing::Test::HasFatalFailure()) return;
      // The same bits from run to run.
      const auto again = runKernel(test, Backend::kCpu, attrs, operands, threads, Place::kBeside, &name);
      for (std::size_t o = 0; o < fast.size(); ++o) ASSERT_EQ(std::memcmp(fast[o].data(), again[o].data(), fast[o].bytes()), 0) << test.op << " " << what;
    }
    if (test.inPlace < 0 ||
        operands.inputs[static_cast<std::size_t>(test.inPlace)].bytes() != Tensor(operands.outputs[0].first, operands.outputs[0].second).bytes())
      continue;
    expectEqual(test, runKernel(test, Backend::kCpu, attrs, operands, 2, Place::kOverInput, &name), slow, what + ", in place");
    if (testing::Test::HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, LoopTable, testing::ValuesIn(table()),
                         [](const auto& info) { return (info.param.domain == "com.microsoft" ? "Microsoft" : "") + info.param.op + info.param.label; });

// What a loop does not take is the reference kernel's: nothing at all, and mistakes, which it names.
TEST(LoopEdges, EmptyOperandsAreServed) {
  for (const char* op : {"Add", "Exp", "Relu", "Sin", "Softmax", "Where", "Sum", "ReduceSum", "LayerNormalization"}) {
    const Case test{"", op, {}, 0, -1, ""};
    Operands operands{{Tensor(DType::kF32, {3, 0})}, {{DType::kF32, {3, 0}}}};
    if (std::string(op) == "Add" || std::string(op) == "Sum") operands.inputs.push_back(Tensor(DType::kF32, {3, 0}));
    if (std::string(op) == "LayerNormalization") operands.inputs.push_back(Tensor(DType::kF32, {0}));
    if (std::string(op) == "Where") operands.inputs = {Tensor(DType::kBool, {3, 0}), Tensor(DType::kF32, {3, 0}), Tensor(DType::kF32, {3, 0})};
    if (std::string(op) == "ReduceSum") operands.outputs = {{DType::kF32, {1, 1}}};
    std::string name;
    const auto results = runKernel(test, Backend::kCpu, {}, operands, 2, Place::kBeside, &name);
    ASSERT_EQ(results.size(), 1U) << op;
    for (const float x : results[0].as<float>()) EXPECT_EQ(x, 0.0F) << op;
  }
}

TEST(LoopEdges, AScatterWithoutUpdatesIsACopy) {
  Random random(1);
  const Tensor data = floats(random, {4, 3}, -1, 1);
  for (const char* op : {"ScatterND", "ScatterElements"}) {
    const Dims none = std::string(op) == "ScatterND" ? Dims{0, 1} : Dims{0, 3};
    const Operands operands{{data, Tensor(DType::kI64, none), Tensor(DType::kF32, {0, 3})}, {{DType::kF32, {4, 3}}}};
    std::string name;
    const auto results = runKernel({"", op, {}, 0, -1, ""}, Backend::kCpu, {}, operands, 2, Place::kBeside, &name);
    ASSERT_EQ(results.size(), 1U) << op;
    EXPECT_EQ(std::memcmp(results[0].data(), data.data(), data.bytes()), 0) << op;
  }
}

TEST(LoopEdges, AnIndexOutOfRangeIsNamed) {
  struct Mistake {
    const char* op;
    std::vector<Tensor> inputs;
    std::pair<DType, Dims> output;
    const char* message;
  };
  const std::int64_t nine[] = {9};
  const Tensor rows(DType::kF32, {4, 3}), index = Tensor::ints(nine), one(DType::kF32, {1, 3});
  const Tensor tuple = index.reshaped({1, 1}), plane(DType::kI64, {1, 3});
  plane.as<std::int64_t>()[1] = -5;
  const Mistake mistakes[] = {{"Gather", {rows, index}, {DType::kF32, {1, 3}}, "index 9"},
                              {"GatherND", {rows, tuple}, {DType::kF32, {1, 3}}, "index 9"},
                              {"ScatterElements", {rows, plane, one}, {DType::kF32, {4, 3}}, "index -5"},
                              {"ScatterND", {rows, tuple, one}, {DType::kF32, {4, 3}}, "index 9"},
                              {"SoftmaxCrossEntropyLoss", {one, index}, {DType::kF32, {}}, "label 9"}};
  for (const Mistake& mistake : mistakes) {
    KernelSpec spec;
    spec.op = mistake.op;
    std::vector<TensorView> in;
    for (const Tensor& x : mistake.inputs) {
      spec.inputs.push_back({x.dtype(), x.dims(), false, {}});
      in.push_back(x.view());
    }
    spec.outputs = {{mistake.output.first, mistake.output.second, false, {}}};
    Tensor y(mistake.output.first, mistake.output.second);
    std::vector<TensorView> out{y.view()};
    const auto kernel = makeKernel(Backend::kCpu, spec);
    ASSERT_TRUE(kernel.has_value());
    EXPECT_NE((*kernel)->implementation(), "reference");
    std::vector<std::byte> memory((*kernel)->workspaceBytes() + 64);
    const Status status = (*kernel)->run({in, out, memory, {}, {}});
    ASSERT_FALSE(status.has_value());
    EXPECT_NE(status.error().message.find(mistake.message), std::string::npos) << status.error().message;
  }
}

}  // namespace
}  // namespace stepscope
