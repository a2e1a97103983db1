// Vectorised loops that treat every element alike, those of the optimizers among them.
#include <cmath>

#include "tests/kernels/loop_cases.h"

namespace stepscope {
namespace {

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

// A chain of steps over operands of which one is whole, one any broadcast of the result and one a mask.
auto chain(std::vector<std::string> steps) {
  return [=](Random& random, int round, Attributes& attrs) {
    attrs.set("steps", steps);
    const Dims dims = anyDims(random, round);
    const bool specials = round % 3 == 0;
    return Operands{{floats(random, dims, -3, 3, specials), floats(random, broadcastOf(random, dims), -3, 3, specials),
                     valuesOf(random, DType::kBool, round % 2 ? dims : broadcastOf(random, dims), false)},
                    {{DType::kF32, dims}}};
  };
}

// One or two of the operands are parts of larger tensors.
template <typename Make>
auto ofViews(Make make) {
  return [=](Random& random, int round, Attributes& attrs) {
    Operands operands = make(random, round, attrs);
    for (std::size_t i = 0; i < 3; ++i) {
      if (i > 0 && (round + static_cast<int>(i)) % 2 == 0) continue;
      Dims view;
      const Dims whole = wholeAround(random, operands.inputs[i].dims(), false, view);
      operands.inputs[i] = valuesOf(random, operands.inputs[i].dtype(), whole, false);
      attrs.set("view" + std::to_string(i), view);
    }
    return operands;
  };
}

// The sum of such a chain along some leading or trailing axes, or its mean.
auto chainSum(std::vector<std::string> steps) {
  return [make = chain(std::move(steps))](Random& random, int round, Attributes& attrs) {
    Operands operands = make(random, round - round % 3 + 1, attrs);  // values without infinities and NaN
    const Dims dims = operands.outputs[0].second;
    const std::int64_t rank = static_cast<std::int64_t>(dims.size()), border = below(random, rank + 1);
    Dims axes, kept;
    for (std::int64_t i = 0; i < rank; ++i)
      if ((i < border) == (round % 2 == 0))
        axes.push_back(i);
      else
        kept.push_back(dims[static_cast<std::size_t>(i)]);
    attrs.set("axes", axes);
    attrs.set("shape", kept);
    attrs.set("mean", std::int64_t{round % 4 == 1});
    operands.outputs[0].second = kept;
    return operands;
  };
}

auto geluGrad(const char* form) {
  return [=](Random& random, int round, Attributes& attrs) {
    attrs.set("approximate", std::string(form));
    const Dims dims = anyDims(random, round);
    return Operands{{floats(random, dims, -2, 2), floats(random, dims, -8, 8, round % 3 == 0)}, {{DType::kF32, dims}}};
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

auto remainder(bool truncate) {
  return [=](Random& random, int round, Attributes& attrs) {
    attrs.set("fmod", std::int64_t{truncate});
    Operands o = pairOf(DType::kF32, DType::kF32)(random, round, attrs);
    if (round % 4 == 2)  // multiples: a quotient that rounding makes whole
      for (float& x : o.inputs[0].as<float>()) x = std::round(x) * 0.1F;
    if (round % 4 == 2)
      for (float& x : o.inputs[1].as<float>()) x = x < 0 ? -0.1F : 0.1F;
    return o;
  };
}

// One scale, or one per extent of an axis.
auto quantize(DType codes, bool forward) {
  return [=](Random& random, int round, Attributes& attrs) {
    const Dims dims = anyDims(random, round);
    Dims scales = round % 2 ? Dims{} : Dims{1};
    if (round % 3 != 0) scales = {dims[static_cast<std::size_t>(setAxis(random, dims, attrs, round % 4 == 1))]};
    Tensor x = floats(random, dims, -9, 9, round % 3 == 0);
    if (!forward)
      x = codes == DType::kI32 ? convertTensor(integers<std::int64_t>(random, dims, -100000, 100000).view(), codes)
                               : convertTensor(integers<std::int64_t>(random, dims, 0, 100).view(), codes);
    Operands o{{x, floats(random, scales, 0.01F, 0.1F)}, {{forward ? codes : DType::kF32, dims}}};
    if (round % 5 > 1) o.inputs.push_back(convertTensor(integers<std::int64_t>(random, scales, 0, 50).view(), codes));
    return o;
  };
}

Operands fakeQuant(Random& random, int round, Attributes& attrs) {
  if (round % 2) attrs = {{"quant_min", std::int64_t{-128}}, {"quant_max", std::int64_t{127}}};
  const Dims dims = anyDims(random, round);
  Operands o{{floats(random, dims, -9, 9, round % 3 == 0), Tensor::scalar(DType::kF32, 0.05 + 0.01 * round),
              Tensor::scalar(DType::kF32, round % 4)},
             {{DType::kF32, dims}}};
  if (round % 3 != 2) o.outputs.push_back({DType::kBool, dims});
  return o;
}

// The bits are those of the reference kernel, so nothing is allowed between them.
auto drawn(bool like) {
  return [=](Random& random, int round, Attributes& attrs) {
    if (round % 2) attrs = {{"mean", 0.3F}, {"scale", 1.7F}, {"low", -0.1F}, {"high", 0.1F}};
    if (round % 3 == 1) attrs.set("seed", static_cast<float>(round));
    const Dims dims = round % 8 == 7 ? Dims{300000 + below(random, 99)} : anyDims(random, round);
    return Operands{like ? std::vector<Tensor>{floats(random, dims, 0, 1, round % 5 == 0)} : std::vector<Tensor>{},
                    {{DType::kF32, dims}}};
  };
}

auto stochasticRound(DType to) {
  return [=](Random& random, int round, Attributes& attrs) {
    attrs = {{"to", static_cast<std::int64_t>(to)}, {"stream", std::int64_t{round}}};
    const Dims dims = round % 8 == 7 ? Dims{300000 + below(random, 99)} : anyDims(random, round);
    const float most[] = {1, 1e-7F, 7e4F};  // numbers, those below the least, those above the largest of float16
    const float bound = most[round % 3];
    return Operands{{floats(random, dims, -bound, bound, round % 4 == 0)}, {{to, dims}}};
  };
}

auto tested(DType dtype) {
  return [=](Random& random, int round, Attributes& attrs) {
    attrs = {{"detect_positive", std::int64_t{round % 2}}, {"detect_negative", std::int64_t{round % 3 != 0}}};
    const Dims dims = anyDims(random, round);
    return Operands{{valuesOf(random, dtype, dims, true)}, {{DType::kBool, dims}}};
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
    return Operands{
        {valuesOf(random, DType::kBool, c, false), valuesOf(random, dtype, a, true), valuesOf(random, dtype, b, true)},
        {{dtype, y}}};
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

auto dropout(bool training) {
  return [=](Random& random, int round, Attributes&) {
    const Dims dims = anyDims(random, round);
    const double ratios[] = {0.1, 0.5, 0.0, 0.9999, 1.0 / 3};
    Operands o{{floats(random, dims, -3, 3), Tensor::scalar(DType::kF32, ratios[round % 5]),
                Tensor::scalar(DType::kBool, training ? 1 : 0)},
               {{DType::kF32, dims}}};
    if (round % 3 != 2) o.outputs.push_back({DType::kBool, dims});
    return o;
  };
}

// The sums around a dropout: a bias that is a row or whole, a residual, or one of them alone.
auto biasDropout(bool training) {
  return [=](Random& random, int round, Attributes&) {
    const Dims dims = round % 2 ? Dims{3, 257} : Dims{5, 4, 130}, row{dims.back()};
    const Tensor bias = round % 4 == 3 ? Tensor() : floats(random, round % 3 == 1 ? dims : row, -3, 3);
    const Tensor residual = round % 5 == 4 ? Tensor() : floats(random, dims, -3, 3);
    Operands o{{floats(random, dims, -3, 3), bias, residual, Tensor::scalar(DType::kF32, round % 3 == 2 ? 0.9 : 0.1),
                Tensor::scalar(DType::kBool, training ? 1 : 0)},
               {{DType::kF32, dims}}};
    if (round % 3 != 2) o.outputs.push_back({DType::kBool, dims});
    return o;
  };
}

// Places of an axis of 11: for all outer rows alike, or row by row.
auto dropoutPart(bool byOuter) {
  return [=](Random& random, int round, Attributes& attrs) {
    const Dims dims{3, 5, round % 2 ? 7 : 300};
    attrs.set("axis", round % 3 == 0 && !byOuter ? std::int64_t{-1} : std::int64_t{1});
    const bool last = round % 3 == 0 && !byOuter;
    const std::int64_t places = last ? dims[2] : dims[1], extent = last ? 400 : 11;
    Tensor picked(DType::kI64, byOuter ? Dims{3, places} : Dims{places});
    for (std::int64_t i = 0; i < picked.elements(); ++i)
      picked.as<std::int64_t>()[static_cast<std::size_t>(i)] = (i * 7 + round) % extent - (i % 2 ? extent : 0);
    const std::int64_t whole[] = {extent};
    const double ratios[] = {0.1, 0.5, 0.0, 1.0 / 3};
    return Operands{{floats(random, dims, -3, 3), picked, Tensor::ints(whole),
                     Tensor::scalar(DType::kF32, ratios[round % 4]), Tensor::scalar(DType::kBool, 1)},
                    {{DType::kF32, dims}, {DType::kBool, dims}}};
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

// Codes of 8 bits, as the exporter of quantised models clips them to seven.
auto clipCodes(DType codes) {
  return [=](Random& random, int round, Attributes&) {
    const Dims dims = anyDims(random, round);
    const auto of = [&](const Dims& shape, std::int64_t low, std::int64_t high) {
      return convertTensor(integers<std::int64_t>(random, shape, low, high).view(), codes);
    };
    Operands o{{of(dims, 0, 100), round % 3 == 0 ? Tensor() : of({}, 20, 40)}, {{codes, dims}}};
    if (round % 2) o.inputs.push_back(of({}, 50, 90));
    return o;
  };
}

auto castLike(DType from, DType to) {
  return [=](Random& random, int round, Attributes&) {
    const Dims dims = anyDims(random, round);
    return Operands{{convertTensor(floats(random, dims, -9, 9).view(), from), Tensor(to, {1})}, {{to, dims}}};
  };
}

// Elements of the parameter: also so many that results are written past the caches.
Dims parameterDims(Random& random, int round) {
  return round % 8 == 7 ? Dims{300000 + below(random, 99)} : anyDims(random, round);
}

Operands accumulate(Random& random, int round, Attributes&) {
  const Dims dims = parameterDims(random, round);
  Operands o{{floats(random, dims, -1, 1, round % 5 == 4), floats(random, dims, -1, 1),
              Tensor::scalar(DType::kBool, round % 3 == 0)},
             {{DType::kF32, dims}}};
  if (round % 2) o.outputs.push_back({DType::kF32, {}});
  return o;
}

auto adam(bool lamb) {
  return [=](Random& random, int round, Attributes& attrs) {
    attrs = {{"beta1", 0.9F},
             {"beta2", 0.999F},
             {"eps", 1e-8F},
             {"weight_decay", round % 2 ? 0.01F : 0.0F},
             {"decoupled", std::int64_t{lamb ? 0 : round % 3 == 1}}};
    const Dims dims = parameterDims(random, round);
    Operands o{{floats(random, dims, -1, 1), floats(random, dims, -1, 1), floats(random, dims, -1, 1),
                floats(random, dims, 0, 1), Tensor::scalar(DType::kF32, 0.01), Tensor::scalar(DType::kI64, 1 + round)},
               {{DType::kF32, dims}, {DType::kF32, dims}, {DType::kF32, dims}}};
    if (round % 4 > 1) o.inputs.push_back(Tensor::scalar(DType::kF32, 0.5));
    return o;
  };
}

// The same operands for several parameters: what they share first, then the list of each.
template <typename Case>
auto several(Case one, std::size_t own, std::size_t results) {
  return [=](Random& random, int round, Attributes& attrs) {
    Operands all;
    const Operands first = one(random, round, attrs);
    for (std::size_t i = own; i < own + 3; ++i) all.inputs.push_back(i < first.inputs.size() ? first.inputs[i] : Tensor());
    for (int member = 0; member <= round % 5; ++member) {
      const Operands other = one(random, round, attrs);
      for (std::size_t i = 0; i < own; ++i) all.inputs.push_back(other.inputs[i]);
      all.outputs.insert(all.outputs.end(), other.outputs.begin(), other.outputs.end());
      all.outputs.resize((all.inputs.size() - 3) / own * results);
    }
    return all;
  };
}

Operands sgd(Random& random, int round, Attributes& attrs) {
  const bool momentum = round % 3 != 0;
  attrs = {{"momentum", momentum ? 0.9F : 0.0F},
           {"dampening", round % 4 == 1 ? 0.1F : 0.0F},
           {"weight_decay", round % 2 ? 0.01F : 0.0F},
           {"nesterov", std::int64_t{round % 4 == 2}}};
  const Dims dims = parameterDims(random, round);
  Operands o{
      {floats(random, dims, -1, 1), floats(random, dims, -1, 1), momentum ? floats(random, dims, -1, 1) : Tensor(),
       Tensor::scalar(DType::kF32, 0.1), Tensor::scalar(DType::kF32, 0.5), Tensor::scalar(DType::kI64, 1 + round % 2)},
      {{DType::kF32, dims}}};
  if (momentum) o.outputs.push_back({DType::kF32, dims});
  return o;
}

/// The same with input `at`, the gradient, in a low type.
template <typename Case>
auto withLowGradient(Case one, std::size_t at, DType low) {
  return [=](Random& random, int round, Attributes& attrs) {
    Operands o = one(random, round, attrs);
    o.inputs[at] = convertTensor(o.inputs[at].view(), low);
    return o;
  };
}

Operands lowSquares(Random& random, int round, Attributes&) {
  const Tensor x = floats(random, parameterDims(random, round), -1, 1);
  return {{convertTensor(x.view(), round % 2 ? DType::kBF16 : DType::kF16)}, {{DType::kF32, {}}}};
}

}  // namespace

std::vector<LoopCase> elementwiseLoops() {
  std::vector<LoopCase> cases = {
      {"", "Abs", unary(-3, 3), 0, 0, ""},
      {"", "Acos", unary(-1, 1), 1e-6, 0, ""},
      {"", "Acosh", unary(0.5F, 30), 1e-6, 0, ""},
      {"", "Asin", unary(-1, 1), 1e-6, 0, ""},
      {"", "Asinh", unary(-30, 30), 1e-6, 0, ""},
      {"", "Atan", unary(-9, 9), 1e-6, 0, ""},
      {"", "Atanh", unary(-1, 1), 1e-6, 0, ""},
      {"", "Ceil", unary(-30, 30), 0, 0, ""},
      {"", "Celu", unary(-5, 5), 1e-6, 0, ""},
      {"", "Clip", clip(0), 0, 0, "Unbounded"},
      {"", "Clip", clip(1), 0, 0, "Low"},
      {"", "Clip", clip(2), 0, 0, "High"},
      {"", "Bernoulli", drawn(true), 0, -1, ""},
      {"", "CastLike", castLike(DType::kI64, DType::kF32), 0, -1, ""},
      {"", "Clip", clipCodes(DType::kI8), 0, 0, "I8"},
      {"", "Clip", clipCodes(DType::kU8), 0, 0, "U8"},
      {"", "Cos", unary(-60, 60), 1e-6, 0, ""},
      {"", "Cosh", unary(-9, 9), 1e-6, 0, ""},
      {"", "Dropout", dropout(false), 0, 0, "Inference"},
      {"", "Dropout", dropout(true), 1e-6, 0, "Training"},
      {"stepscope", "BiasDropout", biasDropout(false), 1e-6, 0, "Inference"},
      {"stepscope", "BiasDropout", biasDropout(true), 1e-6, 0, "Training"},
      {"stepscope", "DropoutPart", dropoutPart(false), 1e-6, 0, "Alike"},
      {"stepscope", "DropoutPart", dropoutPart(true), 1e-6, 0, "ByRow"},
      {"", "Elu", unary(-5, 5), 1e-6, 0, ""},
      {"", "Erf", unary(-5, 5), 1e-6, 0, ""},
      {"", "Exp", unary(-90, 90), 1e-6, 0, ""},
      {"", "Floor", unary(-30, 30), 0, 0, ""},
      {"", "Gelu", unary(-6, 6), 1e-6, 0, ""},
      {"", "IsInf", tested(DType::kF32), 0, -1, ""},
      {"", "IsNaN", tested(DType::kF32), 0, -1, ""},
      {"", "HardSigmoid", unary(-6, 6), 1e-6, 0, ""},
      {"", "HardSwish", unary(-6, 6, false), 1e-6, 0, ""},
      {"", "LeakyRelu", unary(-3, 3), 1e-6, 0, ""},
      {"", "Log", unary(0, 9), 1e-6, 0, ""},
      {"", "Max", variadic(), 0, 0, ""},
      {"", "Mean", variadic(false), 1e-6, 0, ""},
      {"", "Min", variadic(), 0, 0, ""},
      {"", "Mish", unary(-8, 8, false), 1e-6, 0, ""},
      {"", "Mod", remainder(false), 0, -1, "Floored"},
      {"", "Mod", remainder(true), 0, -1, "Truncated"},
      {"", "Neg", unary(-3, 3), 0, 0, ""},
      {"", "Not", tested(DType::kBool), 0, 0, ""},
      {"stepscope", "Pointwise", chain({"Gelu 0", "GeluGrad 3 0", "Add 4 1", "Where 2 5 0"}), 4e-6, 0, "Gelu"},
      {"stepscope", "Pointwise", chain({"GeluTanh 0", "GeluTanhGrad 3 0", "Add 4 1", "FromMask 2", "Mul 5 6"}), 4e-6, 0,
       "GeluTanh"},
      {"stepscope", "Pointwise",
       chain({"Softplus 0", "Softsign 0", "Sign 0", "ReluGrad 3 0", "Add 4 5", "Add 7 6", "Mul 8 1"}), 4e-6, 0, "Bends"},
      {"stepscope", "Pointwise",
       chain({"IsNaN 0", "Equal 0 0", "And 4 2", "Or 5 3", "Not 6", "Floor 0", "Ceil 0", "Round 0", "Where 7 8 9",
              "Add 11 10"}),
       1e-6, 0, "Masks"},
      {"stepscope", "Pointwise", chain({"ToBFloat16 0", "ToFloat16 1", "Sub 3 4"}), 1e-6, 0, "Rounded"},
      {"stepscope", "Pointwise", chain({"Where 2 1 0"}), 1e-6, 0, "OneStepInAnotherOrder"},
      {"stepscope", "Pointwise", ofViews(chain({"Sub 0 1", "Tanh 3", "Where 2 4 0"})), 1e-6, -1, "Views"},
      {"stepscope", "PointwiseSum", ofViews(chainSum({"Mul 0 1", "Where 2 3 0"})), 1e-5, -1, "Views"},
      {"stepscope", "PointwiseSum", chainSum({"Sub 0 1", "Mul 3 3", "Where 2 4 0"}), 1e-6, -1, "Squares"},
      {"stepscope", "PointwiseSum", chainSum({"Gelu 0", "GeluGrad 3 0", "Mul 4 1"}), 1e-4, -1, "Gelu"},
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
      {"", "RandomNormal", drawn(false), 0, -1, ""},
      {"", "RandomNormalLike", drawn(true), 0, -1, ""},
      {"", "RandomUniform", drawn(false), 0, -1, ""},
      {"", "RandomUniformLike", drawn(true), 0, -1, ""},
      {"", "Reciprocal", unary(-3, 3), 1e-6, 0, ""},
      {"", "Relu", unary(-3, 3), 0, 0, ""},
      {"", "Round", unary(-30, 30), 0, 0, ""},
      {"stepscope", "StochasticRound", stochasticRound(DType::kF16), 0, -1, "F16"},
      {"stepscope", "StochasticRound", stochasticRound(DType::kBF16), 0, -1, "BF16"},
      {"", "Selu", unary(-5, 5), 1e-6, 0, ""},
      {"", "Shrink", unary(-1, 1), 0, 0, ""},
      {"", "Sigmoid", unary(-20, 20), 1e-6, 0, ""},
      {"", "Sign", unary(-3, 3), 0, 0, ""},
      {"", "Sin", unary(-60, 60), 1e-6, 0, ""},
      {"", "Sinh", unary(-9, 9), 1e-6, 0, ""},
      {"", "Softplus", unary(-20, 20), 1e-6, 0, ""},
      {"", "Softsign", unary(-3, 3, false), 1e-6, 0, ""},
      {"", "Sqrt", unary(-1, 9), 1e-6, 0, ""},
      {"", "Sum", variadic(), 1e-6, 0, ""},
      {"", "Tan", unary(-60, 60), 1e-6, 0, ""},
      {"", "Tanh", unary(-12, 12), 1e-6, 0, ""},
      {"", "ThresholdedRelu", unary(-3, 3), 0, 0, ""},
      {"", "Where", where(DType::kBool), 0, 1, "Bools"},
      {"", "Where", where(DType::kF32), 0, 1, "Floats"},
      {"", "Where", where(DType::kI64), 0, 2, "Ints"},
      {"com.microsoft", "BiasGelu", pairOf(DType::kF32, DType::kF32), 2e-6, -1, ""},
      {"com.microsoft", "FakeQuant", fakeQuant, 0, 0, ""},
      {"com.microsoft", "FastGelu", unary(-6, 6), 1e-6, 0, ""},
      {"com.microsoft", "Gelu", unary(-6, 6), 1e-6, 0, ""},
      {"com.microsoft", "QuickGelu", unary(-6, 6), 1e-6, 0, ""},
      {"stepscope", "GeluGrad", geluGrad("none"), 1e-6, 1, "Erf"},
      {"stepscope", "GeluGrad", geluGrad("tanh"), 2e-6, 1, "Tanh"},
      {"stepscope", "Accumulate", accumulate, 1e-6, 0, ""},
      {"stepscope", "Accumulate", withLowGradient(accumulate, 1, DType::kBF16), 1e-6, 0, "LowGradient"},
      {"stepscope", "AdamUpdate", adam(false), 2e-6, 0, ""},
      {"stepscope", "AdamUpdate", withLowGradient(adam(false), 1, DType::kBF16), 2e-6, 0, "Bfloat16Gradient"},
      {"stepscope", "AdamUpdate", withLowGradient(adam(false), 1, DType::kF16), 2e-6, 0, "Float16Gradient"},
      {"stepscope", "AdamUpdates", several(adam(false), 4, 3), 2e-6, -1, ""},
      {"stepscope", "LambUpdate", adam(true), 2e-6, 0, ""},
      {"stepscope", "LambUpdate", withLowGradient(adam(true), 1, DType::kBF16), 2e-6, 0, "LowGradient"},
      {"stepscope", "SgdUpdate", sgd, 1e-6, 0, ""},
      {"stepscope", "SgdUpdate", withLowGradient(sgd, 1, DType::kBF16), 1e-6, 0, "LowGradient"},
      {"stepscope", "SquareSum", lowSquares, 1e-6, -1, "LowTypes"},
      {"stepscope", "SgdUpdates", several(sgd, 3, 2), 1e-6, -1, ""},
  };
  for (const char* op : {"Add", "Div", "Max", "Min", "Mul", "PRelu", "Sub"})
    cases.push_back({"", op, pairOf(DType::kF32, DType::kF32), 1e-6, -1, "Broadcast"});
  for (const char* op : {"Add", "Mul", "Sub"}) cases.push_back({"", op, pairOf(DType::kI64, DType::kI64), 0, -1, "Ints"});
  for (const char* op : {"And", "Or", "Xor"}) cases.push_back({"", op, pairOf(DType::kBool, DType::kBool), 0, -1, ""});
  for (const char* op : {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
    for (const DType dtype : {DType::kF32, DType::kI32, DType::kI64})
      cases.push_back({"", op, pairOf(dtype, DType::kBool), 0, -1, std::string(dtypeName(dtype))});
  for (const DType codes : {DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32}) {
    if (codes != DType::kI32)
      cases.push_back({"", "QuantizeLinear", quantize(codes, true), 0, -1, std::string(dtypeName(codes))});
    cases.push_back({"", "DequantizeLinear", quantize(codes, false), 0, -1, std::string(dtypeName(codes))});
  }
  for (const DType other : {DType::kBF16, DType::kBool, DType::kF16, DType::kF64}) {
    cases.push_back({"", "Cast", cast(DType::kF32, other), 0, -1, "To" + std::string(dtypeName(other))});
    cases.push_back({"", "Cast", cast(other, DType::kF32), 0, -1, "From" + std::string(dtypeName(other))});
  }
  for (const DType other : {DType::kI32, DType::kI64})
    cases.push_back({"", "Cast", cast(other, DType::kF32), 0, -1, "From" + std::string(dtypeName(other))});
  return cases;
}

}  // namespace stepscope
