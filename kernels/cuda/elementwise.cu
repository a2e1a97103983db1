// Everything that treats each element alike, floats and masks: single ops, and the chains of stepscope.Pointwise. One
// thread computes four neighbouring elements. A single step of float32 is compiled on its own; a chain, and what reads or
// writes a low type, is interpreted where the device has no compiler, else compiled when it first runs.
#include <memory>
#include <optional>

#include "kernels/cuda/chain.h"
#include "kernels/cuda/integers.h"

namespace stepscope::cuda {
inline namespace elementwise_cu {

constexpr int kEach = 4;  // elements of a thread
constexpr int kChain = -1;

// x[total] … → y[total]; Y: float, of a mask std::uint8_t, of a low type its bits
template <int kStep, int kInputs, typename Y>
SS_GLOBAL void elementwise(ChainInputs<kInputs> in, Chain chain, Global<Y> y, std::int64_t total) {
  const std::int64_t first = (gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex()) * kEach;
  if (first >= total) return;
  const int n = static_cast<int>(total - first < kEach ? total - first : kEach);
  constexpr int kValues = kStep == kChain ? kInputs + kMostSteps : kInputs;
  float x[kInputs][kEach], result[kEach] = {};
  for (int i = 0; i < kInputs; ++i) {
    if (kStep == kChain && i >= chain.inputs) break;
    if (in.forms[i] == InputForm::kWhole && n == kEach && in.types[i] == ChainType::kFloat) {
      const gpu::Four<float> four = in.values[i].four(first);
      x[i][0] = four.x;
      x[i][1] = four.y;
      x[i][2] = four.z;
      x[i][3] = four.w;
    } else if (kInputs == kMostInputs && in.forms[i] == InputForm::kWhole && n == kEach && in.types[i] != ChainType::kBool) {
      const gpu::Four<std::uint16_t> four = in.lows[kInputs == kMostInputs ? i : 0].four(first);
      x[i][0] = widenedBits(four.x, in.types[i]);
      x[i][1] = widenedBits(four.y, in.types[i]);
      x[i][2] = widenedBits(four.z, in.types[i]);
      x[i][3] = widenedBits(four.w, in.types[i]);
    } else if (in.forms[i] == InputForm::kScalar) {
      const float value = inputAt(in, i, 0);
      for (int e = 0; e < kEach; ++e) x[i][e] = value;
    } else if (in.forms[i] == InputForm::kWhole) {
      for (int e = 0; e < n; ++e) x[i][e] = inputAt(in, i, first + e);
    }
  }
  if (in.walked)
    for (int e = 0; e < n; ++e) {
      std::int64_t at[kInputs];
      in.walk.offsets(first + e, at);
      for (int i = 0; i < kInputs; ++i)
        if (!(kStep == kChain && i >= chain.inputs) && in.forms[i] == InputForm::kWalked) x[i][e] = inputAt(in, i, at[i]);
    }
  for (int e = 0; e < n; ++e) {
    if constexpr (kStep != kChain) {
      result[e] =
          stepOf(static_cast<Step>(kStep), x[0][e], x[kInputs > 1 ? 1 : 0][e], x[kInputs > 2 ? 2 : 0][e], chain.p, chain.q);
    } else {
      float values[kValues];
      for (int i = 0; i < kInputs && i < chain.inputs; ++i) values[i] = x[i][e];
      result[e] = runSteps(chain, values);
    }
  }
  if constexpr (sizeof(Y) == sizeof(float)) {
    if (n == kEach) {
      y.setFour(first, {result[0], result[1], result[2], result[3]});
      return;
    }
  }
  if constexpr (sizeof(Y) == 2) {
    std::uint16_t low[kEach];
    for (int e = 0; e < kEach; ++e) low[e] = roundedBits(result[e], chain.result);
    if (n == kEach) {
      y.setFour(first, {low[0], low[1], low[2], low[3]});
      return;
    }
    for (int e = 0; e < n; ++e) y[first + e] = low[e];
  } else {
    for (int e = 0; e < n; ++e) y[first + e] = static_cast<Y>(result[e]);
  }
}

// --- host

template <int kInputs, typename Y>
using Function = gpu::KernelFunction<ChainInputs<kInputs>, Chain, Global<Y>, std::int64_t>;

constexpr int arityOf(Step step) {
  switch (step) {
    case Step::kWhere: return 3;
    case Step::kAnd:
    case Step::kFromMask:
    case Step::kOr:
    case Step::kToBFloat16:
    case Step::kToFloat16: return 0;  // of chains alone
    case Step::kAdd:
    case Step::kClipHigh:
    case Step::kClipLow:
    case Step::kDiv:
    case Step::kEqual:
    case Step::kGeluErfGrad:
    case Step::kGeluTanhGrad:
    case Step::kGreater:
    case Step::kGreaterOrEqual:
    case Step::kLess:
    case Step::kLessOrEqual:
    case Step::kMax:
    case Step::kMin:
    case Step::kMul:
    case Step::kPRelu:
    case Step::kPow:
    case Step::kReluGrad:
    case Step::kSub:
    case Step::kXor: return 2;
    default: return 1;
  }
}

// Whether a step alone gives a mask; the smaller and the larger of two masks are their And and Or.
constexpr bool givesMask(Step step) {
  return step == Step::kEqual || step == Step::kIsInf || step == Step::kIsNan || step == Step::kGreater ||
         step == Step::kGreaterOrEqual || step == Step::kLess || step == Step::kLessOrEqual || step == Step::kMax ||
         step == Step::kMin || step == Step::kNot || step == Step::kXor;
}
constexpr bool givesNumber(Step step) { return !givesMask(step) || step == Step::kMax || step == Step::kMin; }

// Empty where nothing asks for the step alone with so many operands and this result.
template <int kStep, int kInputs, typename Y>
constexpr Function<kInputs, Y> functionOf() {
  constexpr auto kOf = static_cast<Step>(kStep);
  if constexpr (arityOf(kOf) == kInputs && (sizeof(Y) == 1 ? givesMask(kOf) : givesNumber(kOf)))
    return gpu::function<elementwise<kStep, kInputs, Y>>;
  else
    return {};
}

// The kernel of one step, by its number.
template <int kInputs, typename Y, int... kSteps>
Function<kInputs, Y> singleOf(Step step, std::integer_sequence<int, kSteps...>) {
  static constexpr Function<kInputs, Y> kFunctions[] = {functionOf<kSteps, kInputs, Y>()...};
  return kFunctions[static_cast<int>(step)];
}
using AllSteps = std::make_integer_sequence<int, static_cast<int>(Step::kCount)>;

struct Plan {
  Chain chain;
  Dims y;
  bool maskResult = false;
  std::vector<std::size_t> inputs;  // of the spec
  std::vector<ChainType> types;
};

template <int kInputs, typename Y>
Result<std::unique_ptr<Kernel>> makeOf(const KernelSpec& spec, const Plan& plan, Function<kInputs, Y> function,
                                       std::string name) {
  const std::int64_t total = elementCount(plan.y);
  SS_ASSIGN(const ChainInputs<kInputs> shape, inputsBeside<kInputs>(spec, plan.y, plan.inputs, plan.types));
  std::shared_ptr<const std::string> source;  // of a chain
  if (kInputs == kMostInputs) source = std::make_shared<const std::string>(chainSource(formOf(plan.chain, shape, total)));
  return makeLaunched(std::move(name), [=, inputs = plan.inputs, chain = plan.chain](Launcher& gpu) -> Status {
    if (source) {
      SS_ASSIGN(const bool done,
                runGenerated(*source, "elementwise, compiled", gpu.call(), inputs, gpu.call().outputs[0].data,
                             blocksFor(total, kGeneratedThreads * kGeneratedEach), kGeneratedThreads));
      if (done) return {};
    }
    return gpu.run("elementwise", function, blocksFor(total, kThreads * kEach), kThreads, inputsOf(gpu, shape, inputs),
                   chain, gpu.out<Y>(0), total);
  });
}

// Nothing where the step has no kernel of its own: it is a chain of one then.
template <int kInputs, typename Y>
Result<std::unique_ptr<Kernel>> makeSingle(const KernelSpec& spec, const Plan& plan) {
  const auto function = singleOf<kInputs, Y>(static_cast<Step>(plan.chain.steps[0].step), AllSteps{});
  if (function.entry == nullptr) return std::unique_ptr<Kernel>();
  return makeOf<kInputs, Y>(spec, plan, function, "elementwise");
}

template <typename Y>
Result<std::unique_ptr<Kernel>> makeSingleOf(const KernelSpec& spec, const Plan& plan) {
  // A step alone reads float32, its operands as they are given; a chain of one step may have them in another order.
  bool asGiven = plan.chain.count == 1 && plan.inputs.size() <= 3;
  for (std::size_t i = 0; asGiven && i < plan.inputs.size(); ++i)
    asGiven = plan.chain.steps[0].operands[i] == i && !isLow(plan.types[i]);
  if (!asGiven) return std::unique_ptr<Kernel>();
  return plan.inputs.size() == 1   ? makeSingle<1, Y>(spec, plan)
         : plan.inputs.size() == 2 ? makeSingle<2, Y>(spec, plan)
                                   : makeSingle<3, Y>(spec, plan);
}

template <typename Y>
Result<std::unique_ptr<Kernel>> makeElementwiseOf(const KernelSpec& spec, const Plan& plan) {
  if constexpr (sizeof(Y) != sizeof(std::uint16_t)) {
    auto single = makeSingleOf<Y>(spec, plan);
    if (!single || *single) return single;
  }
  return makeOf<kMostInputs, Y>(spec, plan, gpu::function<elementwise<kChain, kMostInputs, Y>>,
                                "elementwise, " + std::to_string(plan.chain.count) + " steps, or compiled by NVRTC");
}

// An op of one step: how many operands it has, whether its result is a mask, and its attributes.
struct Single {
  std::string_view op;
  Step step;
  int arity = 1;
  bool mask = false;
  std::string_view p{}, q{};
  float defaultP = 0, defaultQ = 0;
};
inline constexpr Single kSingles[] = {
    {"Abs", Step::kAbs},
    {"Add", Step::kAdd, 2},
    {"And", Step::kMin, 2, true},
    {"Ceil", Step::kCeil},
    {"Celu", Step::kCelu, 1, false, "alpha", "", 1.0F},
    {"Cos", Step::kCos},
    {"Div", Step::kDiv, 2},
    {"Elu", Step::kElu, 1, false, "alpha", "", 1.0F, 1.0F},
    {"Equal", Step::kEqual, 2, true},
    {"Erf", Step::kErf},
    {"Exp", Step::kExp},
    {"Floor", Step::kFloor},
    {"Greater", Step::kGreater, 2, true},
    {"GreaterOrEqual", Step::kGreaterOrEqual, 2, true},
    {"HardSigmoid", Step::kHardSigmoid, 1, false, "alpha", "beta", 0.2F, 0.5F},
    {"HardSwish", Step::kHardSwish},
    {"IsInf", Step::kIsInf, 1, true},
    {"IsNaN", Step::kIsNan, 1, true},
    {"LeakyRelu", Step::kLeakyRelu, 1, false, "alpha", "", 0.01F},
    {"Less", Step::kLess, 2, true},
    {"LessOrEqual", Step::kLessOrEqual, 2, true},
    {"Log", Step::kLog},
    {"Mish", Step::kMish},
    {"Mul", Step::kMul, 2},
    {"Neg", Step::kNeg},
    {"Not", Step::kNot, 1, true},
    {"Or", Step::kMax, 2, true},
    {"PRelu", Step::kPRelu, 2},
    {"Pow", Step::kPow, 2},
    {"QuickGelu", Step::kQuickGelu, 1, false, "alpha", "", 1.702F},
    {"Reciprocal", Step::kReciprocal},
    {"Relu", Step::kRelu},
    {"ReluGrad", Step::kReluGrad, 2},
    {"Round", Step::kRound},
    {"Selu", Step::kElu, 1, false, "alpha", "gamma", 1.67326319217681884765625F, 1.05070102214813232421875F},
    {"Sigmoid", Step::kSigmoid},
    {"Sign", Step::kSign},
    {"Sin", Step::kSin},
    {"Softplus", Step::kSoftplus},
    {"Softsign", Step::kSoftsign},
    {"Sqrt", Step::kSqrt},
    {"Sub", Step::kSub, 2},
    {"Tanh", Step::kTanh},
    {"ThresholdedRelu", Step::kThresholdedRelu, 1, false, "alpha", "", 1.0F},
    {"Where", Step::kWhere, 3},
    {"Xor", Step::kXor, 2, true},
};

// What the op computes, of the inputs that are there. False: not by steps.
bool writeChain(const KernelSpec& spec, Plan& plan) {
  Chain& chain = plan.chain;
  const std::size_t inputs = plan.inputs.size();
  const auto repeated = [&](Step step) {
    std::size_t last = 0;
    for (std::size_t i = 1; i < inputs; ++i) {
      appendStep(chain, step, last, i, i);
      last = inputs + i - 1;
    }
    return last;
  };
  for (const Single& single : kSingles)
    if (single.op == spec.op) {
      if (inputs != static_cast<std::size_t>(single.arity)) return false;
      if (!single.p.empty()) chain.p = spec.attrs.real(single.p, single.defaultP);
      chain.q = single.q.empty() ? single.defaultQ : spec.attrs.real(single.q, single.defaultQ);
      plan.maskResult = single.mask;
      if (single.step == Step::kIsInf) {
        chain.p = spec.attrs.integer("detect_positive", 1) != 0 ? 1.0F : 0.0F;
        chain.q = spec.attrs.integer("detect_negative", 1) != 0 ? 1.0F : 0.0F;
      }
      appendStep(chain, single.step, 0, inputs > 1 ? 1 : 0, inputs > 2 ? 2 : 0);
      return true;
    }
  if (spec.op == "Gelu" || spec.op == "FastGelu" || spec.op == "BiasGelu") {
    const bool byTanh = spec.op == "FastGelu" || (spec.domain.empty() && spec.attrs.text("approximate", "none") == "tanh");
    const std::size_t x = repeated(Step::kAdd);  // the bias
    appendStep(chain, byTanh ? Step::kGeluTanh : Step::kGeluErf, x, x, x);
    return inputs <= 2;
  }
  if (spec.op == "GeluGrad") {
    appendStep(chain, spec.attrs.text("approximate", "none") == "tanh" ? Step::kGeluTanhGrad : Step::kGeluErfGrad, 0, 1, 1);
    return inputs == 2;
  }
  if (spec.op == "Clip") {
    std::size_t x = 0, next = inputs;
    if (spec.inputPresent(1)) appendStep(chain, Step::kClipLow, 0, 1, 1), x = next++;
    if (spec.inputPresent(2)) appendStep(chain, Step::kClipHigh, x, inputs - 1, inputs - 1), x = next++;
    return x != 0;
  }
  if (spec.op == "Sum" || spec.op == "Mean" || spec.op == "Max" || spec.op == "Min") {
    if (inputs < 2 || inputs > kMostPointwiseInputs) return false;
    const std::size_t last = repeated(spec.op == "Max" ? Step::kMax : spec.op == "Min" ? Step::kMin : Step::kAdd);
    chain.p = 1.0F / static_cast<float>(inputs);
    if (spec.op == "Mean") appendStep(chain, Step::kScale, last, last, last);
    return true;
  }
  return spec.op == "Pointwise" && appendProgram(chain, spec.attrs, masksOf(plan.types));
}

}  // namespace elementwise_cu

Result<std::unique_ptr<Kernel>> makeElementwise(const KernelSpec& spec) {
  if (isOfIntegers(spec)) return makeIntegers(spec);
  Plan plan;
  const auto result = spec.outputs.size() == 1 ? chainTypeOf(spec.outputs[0]) : std::nullopt;
  if (!result) return notTaken(spec, "a result other than a float or bool");
  plan.y = spec.outputs[0].dims;
  plan.chain.result = *result;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    if (!spec.inputPresent(i)) continue;
    const auto type = chainTypeOf(spec.inputs[i]);
    if (!type) return notTaken(spec, "operands other than floats and bool");
    plan.inputs.push_back(i);
    plan.types.push_back(*type);
  }
  if (plan.inputs.empty() || plan.inputs.size() > kMostPointwiseInputs) return notTaken(spec, "too many operands");
  if (!writeChain(spec, plan)) return notTaken(spec, "no form by steps");
  plan.chain.inputs = static_cast<int>(plan.inputs.size());
  if (plan.maskResult != (result == ChainType::kBool)) return notTaken(spec, "a result of another type");
  // Comparisons of masks and sums of masks are left to the CPU, but for the logic of masks.
  const bool logic = spec.op == "And" || spec.op == "Or" || spec.op == "Xor" || spec.op == "Not";
  for (std::size_t i = 0; i < plan.types.size(); ++i) {
    const bool readsMask = logic || (spec.op == "Where" && i == 0);
    if (spec.op != "Pointwise" && (plan.types[i] == ChainType::kBool) != readsMask)
      return notTaken(spec, "operands of other types");
  }
  if (isLow(*result)) return makeElementwiseOf<std::uint16_t>(spec, plan);
  return plan.maskResult ? makeElementwiseOf<std::uint8_t>(spec, plan) : makeElementwiseOf<float>(spec, plan);
}

}  // namespace stepscope::cuda
