#include "kernels/reference/elementwise/optimizer.h"

#include <charconv>
#include <cmath>

#include "kernels/reference/elementwise/families.h"
#include "kernels/reference/elementwise/loops.h"

namespace stepscope {

double decimalOf(float value) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
  double decimal = value;
  std::from_chars(text.data(), end.ptr, decimal);
  return decimal;
}

SgdParams::SgdParams(const Attributes& attrs)
    : momentum(decimalOf(attrs.real("momentum", 0.0f))),
      dampening(decimalOf(attrs.real("dampening", 0.0f))),
      weightDecay(decimalOf(attrs.real("weight_decay", 0.0f))),
      nesterov(attrs.integer("nesterov", 0) != 0) {}

AdamParams::AdamParams(const Attributes& attrs)
    : beta1(decimalOf(attrs.real("beta1", 0.9f))),
      beta2(decimalOf(attrs.real("beta2", 0.999f))),
      eps(decimalOf(attrs.real("eps", 1e-8f))),
      weightDecay(decimalOf(attrs.real("weight_decay", 0.0f))),
      decoupled(attrs.integer("decoupled", 0) != 0) {}

namespace reference {
namespace {

Result<double> scalarInput(const KernelSpec& spec, const KernelCall& call, std::size_t input) {
  const TensorView& x = call.inputs[input];
  if (x.elements() == 1 && x.dtype != DType::kString) return elementAsDouble(x, 0);
  return invalid(spec.op + ": input " + std::to_string(input) + " has shape " + dimsText(x.dims) + "; a scalar number");
}

// Inputs and outputs that all are as large as the parameter; tensors may have different floating types.
Status checkOperands(const KernelSpec& spec, const KernelCall& call, std::size_t required,
                     std::initializer_list<std::size_t> like) {
  for (std::size_t i = 0; i < required; ++i)
    if (!call.inputPresent(i) && !(spec.op.starts_with("SgdUpdate") && i == 2))
      return invalid(spec.op + ": input " + std::to_string(i) + " is absent; it is required");
  for (const std::size_t i : like) {
    if (!call.inputPresent(i)) continue;
    SS_TRY(checkSameElements(spec, call, i));
    if (!isFloating(call.inputs[i].dtype)) return wrongType(spec, call.inputs[i].dtype);
  }
  for (const TensorView& y : call.outputs) {
    if (!y.present()) continue;
    if (!isFloating(y.dtype)) return wrongType(spec, y.dtype);
    if (y.elements() != call.inputs[0].elements())
      return invalid(spec.op + ": output has shape " + dimsText(y.dims) + "; that of the parameter");
  }
  return {};
}

// Access to elements: of one type known at compile time, or of whatever type each operand has.
template <typename T>
struct Uniform {
  static double load(const TensorView& x, std::int64_t i) { return widen(static_cast<const T*>(x.data)[i]); }
  static void store(const TensorView& y, std::int64_t i, double value) { static_cast<T*>(y.data)[i] = narrow<T>(value); }
};
struct Mixed {
  static double load(const TensorView& x, std::int64_t i) { return elementAsDouble(x, i); }
  static void store(const TensorView& y, std::int64_t i, double value) { storeElement(y, i, value); }
};

// Calls `update` with Uniform<T> when the first `tensors` inputs and all outputs share their type, else with Mixed.
template <typename F>
void withElements(const KernelCall& call, std::size_t tensors, F update) {
  const DType dtype = call.inputs[0].dtype;
  bool uniform = true;
  for (std::size_t i = 0; i < tensors; ++i) uniform &= !call.inputPresent(i) || call.inputs[i].dtype == dtype;
  for (const TensorView& y : call.outputs) uniform &= !y.present() || y.dtype == dtype;
  if (uniform)
    dispatchFloat(dtype, [&](auto tag) { update(Uniform<decltype(tag)>{}); });
  else
    update(Mixed{});
}

template <typename E>
void storeOutput(const KernelCall& call, std::size_t output, std::int64_t i, double value) {
  if (call.outputPresent(output)) E::store(call.outputs[output], i, value);
}

// The parameter as it was stored, rounded once more.
void storeCopy(const KernelCall& call, std::size_t output, std::int64_t i) {
  if (call.outputPresent(output)) storeElement(call.outputs[output], i, elementAsDouble(call.outputs[0], i));
}

Status sgdUpdate(const KernelSpec& spec, const KernelCall& call) {
  SS_TRY(checkOperands(spec, call, 4, {0, 1, 2}));
  const SgdParams params(spec.attrs);
  SS_ASSIGN(const double lr, scalarInput(spec, call, 3));
  double scale = 1;
  if (call.inputPresent(4)) {
    SS_ASSIGN(scale, scalarInput(spec, call, 4));
  }
  bool first = false;
  if (call.inputPresent(5)) {
    SS_ASSIGN(const double step, scalarInput(spec, call, 5));
    first = step <= 1;
  }
  withElements(call, 3, [&](auto elements) {
    using E = decltype(elements);
    const std::int64_t count = call.inputs[0].elements();
    for (std::int64_t i = 0; i < count; ++i) {
      const double p = E::load(call.inputs[0], i);
      double g = E::load(call.inputs[1], i) * scale + params.weightDecay * p;
      if (call.inputPresent(2)) {
        const double old = E::load(call.inputs[2], i);
        const double buffer = first ? g : params.momentum * old + (1 - params.dampening) * g;
        storeOutput<E>(call, 1, i, buffer);
        g = params.nesterov ? g + params.momentum * buffer : buffer;
      }
      E::store(call.outputs[0], i, p - lr * g);
      storeCopy(call, 2, i);
    }
  });
  return {};
}

struct AdamInputs {
  double lr = 0, scale = 1, correction1 = 1, correction2 = 1;
};

Result<AdamInputs> adamInputs(const KernelSpec& spec, const KernelCall& call, const AdamParams& params) {
  SS_TRY(checkOperands(spec, call, 6, {0, 1, 2, 3}));
  AdamInputs inputs;
  SS_ASSIGN(inputs.lr, scalarInput(spec, call, 4));
  SS_ASSIGN(const double step, scalarInput(spec, call, 5));
  if (call.inputPresent(6)) {
    SS_ASSIGN(inputs.scale, scalarInput(spec, call, 6));
  }
  inputs.correction1 = 1 - std::pow(params.beta1, step);
  inputs.correction2 = 1 - std::pow(params.beta2, step);
  return inputs;
}

Status adamUpdate(const KernelSpec& spec, const KernelCall& call) {
  const AdamParams params(spec.attrs);
  SS_ASSIGN(const AdamInputs in, adamInputs(spec, call, params));
  withElements(call, 4, [&](auto elements) {
    using E = decltype(elements);
    const std::int64_t count = call.inputs[0].elements();
    for (std::int64_t i = 0; i < count; ++i) {
      double p = E::load(call.inputs[0], i);
      double g = E::load(call.inputs[1], i) * in.scale;
      if (params.decoupled)
        p *= 1 - in.lr * params.weightDecay;
      else
        g += params.weightDecay * p;
      const double m = params.beta1 * E::load(call.inputs[2], i) + (1 - params.beta1) * g;
      const double v = params.beta2 * E::load(call.inputs[3], i) + (1 - params.beta2) * g * g;
      const double denominator = std::sqrt(v) / std::sqrt(in.correction2) + params.eps;
      E::store(call.outputs[0], i, p - in.lr / in.correction1 * m / denominator);
      storeCopy(call, 3, i);
      storeOutput<E>(call, 1, i, m);
      storeOutput<E>(call, 2, i, v);
    }
  });
  return {};
}

Status lambUpdate(const KernelSpec& spec, const KernelCall& call) {
  const AdamParams params(spec.attrs);
  SS_ASSIGN(const AdamInputs in, adamInputs(spec, call, params));
  withElements(call, 4, [&](auto elements) {
    using E = decltype(elements);
    const std::int64_t count = call.inputs[0].elements();
    double m = 0, v = 0, p = 0;
    const auto update = [&](std::int64_t i) {
      p = E::load(call.inputs[0], i);
      const double g = E::load(call.inputs[1], i) * in.scale;
      m = params.beta1 * E::load(call.inputs[2], i) + (1 - params.beta1) * g;
      v = params.beta2 * E::load(call.inputs[3], i) + (1 - params.beta2) * g * g;
      return m / in.correction1 / (std::sqrt(v / in.correction2) + params.eps) + params.weightDecay * p;
    };
    double parameterSquares = 0, updateSquares = 0;
    // Nothing is written before both norms are known: outputs may lie over inputs.
    for (std::int64_t i = 0; i < count; ++i) {
      const double u = update(i);
      parameterSquares += p * p;
      updateSquares += u * u;
    }
    const double trust = parameterSquares > 0 && updateSquares > 0 ? std::sqrt(parameterSquares / updateSquares) : 1;
    for (std::int64_t i = 0; i < count; ++i) {
      const double u = update(i);
      E::store(call.outputs[0], i, p - in.lr * trust * u);
      storeCopy(call, 3, i);
      storeOutput<E>(call, 1, i, m);
      storeOutput<E>(call, 2, i, v);
    }
  });
  return {};
}

// Several parameters in one call: what they share comes first, then a list of each.
Status updates(const KernelSpec& spec, const KernelCall& call, std::size_t own, std::size_t results, ReferenceFunction one) {
  constexpr std::size_t kShared = 3;
  const auto input = [&](std::size_t i) { return i < call.inputs.size() ? call.inputs[i] : TensorView{}; };
  std::vector<TensorView> inputs(own + kShared), outputs(results);
  for (std::size_t i = 0; i < kShared; ++i) inputs[own + i] = input(i);
  for (std::size_t in = kShared, out = 0; in < call.inputs.size(); in += own, out += results) {
    for (std::size_t i = 0; i < own; ++i) inputs[i] = input(in + i);
    for (std::size_t o = 0; o < results; ++o)
      outputs[o] = out + o < call.outputs.size() ? call.outputs[out + o] : TensorView{};
    SS_TRY(one(spec, {inputs, outputs, {}, call.random, {}}));
  }
  return {};
}
Status adamUpdates(const KernelSpec& spec, const KernelCall& call) {
  return updates(spec, call, 4, writesCopies(spec.attrs) ? 4 : 3, adamUpdate);
}
Status sgdUpdates(const KernelSpec& spec, const KernelCall& call) {
  return updates(spec, call, 3, writesCopies(spec.attrs) ? 3 : 2, sgdUpdate);
}

Status squareSum(const KernelSpec& spec, const KernelCall& call) {
  const bool low = call.inputs[0].dtype == DType::kF16 || call.inputs[0].dtype == DType::kBF16;
  SS_TRY(checkOutputType(spec, call, 0, low ? DType::kF32 : call.inputs[0].dtype));
  if (call.outputs[0].elements() != 1)
    return invalid("SquareSum: output has shape " + dimsText(call.outputs[0].dims) + "; a scalar");
  const bool done = dispatchFloat(call.inputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    double sum = 0;
    for (const T& x : call.inputs[0].as<const T>()) sum += widen(x) * widen(x);
    storeElement(call.outputs[0], 0, sum);
  });
  if (!done) return wrongType(spec, call.inputs[0].dtype);
  return {};
}

Status accumulate(const KernelSpec& spec, const KernelCall& call) {
  for (std::size_t i = 0; i < 3; ++i)
    if (!call.inputPresent(i)) return invalid("Accumulate: input " + std::to_string(i) + " is absent; it is required");
  const TensorView &sum = call.inputs[0], &gradient = call.inputs[1], &next = call.outputs[0];
  SS_TRY(checkSameElements(spec, call, 1));
  for (const TensorView* x : {&sum, &gradient, &next})
    if (!isFloating(x->dtype)) return wrongType(spec, x->dtype);
  if (next.elements() != sum.elements())
    return invalid("Accumulate: output has shape " + dimsText(next.dims) + "; that of the sum");
  if (call.outputPresent(1) && call.outputs[1].elements() != 1)
    return invalid("Accumulate: square_sum has shape " + dimsText(call.outputs[1].dims) + "; a scalar");
  SS_ASSIGN(const double first, scalarInput(spec, call, 2));
  double squares = 0;
  for (std::int64_t i = 0; i < sum.elements(); ++i) {
    storeElement(next, i, elementAsDouble(gradient, i) + (first != 0 ? 0 : elementAsDouble(sum, i)));
    const double stored = elementAsDouble(next, i);
    squares += stored * stored;
  }
  if (call.outputPresent(1)) storeElement(call.outputs[1], 0, squares);
  return {};
}

}  // namespace

std::span<const KernelEntry> optimizerKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"stepscope", "Accumulate", reading<1, accumulate>},   {"stepscope", "AdamUpdate", reading<1, adamUpdate>},
      {"stepscope", "AdamUpdates", reading<1, adamUpdates>}, {"stepscope", "LambUpdate", reading<1, lambUpdate>},
      {"stepscope", "SgdUpdate", reading<1, sgdUpdate>},     {"stepscope", "SgdUpdates", reading<1, sgdUpdates>},
      {"stepscope", "SquareSum", reading<1, squareSum>},
  };
  return kEntries;
}

}  // namespace reference
}  // namespace stepscope
