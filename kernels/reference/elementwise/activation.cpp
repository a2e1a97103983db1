// Functions of one number that read attributes or small operands.
#include <cmath>
#include <numbers>

#include "kernels/reference/elementwise/families.h"
#include "kernels/reference/elementwise/loops.h"
#include "kernels/reference/gelu.h"

namespace stepscope::reference {
namespace {

// F is made from the attributes of the node.
template <typename F>
Status withAttributes(const KernelSpec& spec, const KernelCall& call) {
  return mapFloat(spec, call, F(spec.attrs));
}

struct Elu {
  double alpha;
  explicit Elu(const Attributes& attrs) : alpha(attrs.real("alpha", 1.0f)) {}
  double operator()(double x) const { return x > 0 ? x : alpha * std::expm1(x); }
};

struct Celu {
  double alpha;
  explicit Celu(const Attributes& attrs) : alpha(attrs.real("alpha", 1.0f)) {}
  double operator()(double x) const { return x > 0 ? x : alpha * std::expm1(x / alpha); }
};

struct Selu {
  double alpha, gamma;
  explicit Selu(const Attributes& attrs)
      : alpha(attrs.real("alpha", 1.67326319217681884765625f)), gamma(attrs.real("gamma", 1.05070102214813232421875f)) {}
  double operator()(double x) const { return gamma * (x > 0 ? x : alpha * std::expm1(x)); }
};

struct HardSigmoid {
  double alpha, beta;
  explicit HardSigmoid(const Attributes& attrs) : alpha(attrs.real("alpha", 0.2f)), beta(attrs.real("beta", 0.5f)) {}
  double operator()(double x) const {
    const double line = alpha * x + beta;
    return line < 0 ? 0 : line > 1 ? 1 : line;
  }
};

struct LeakyRelu {
  double alpha;
  explicit LeakyRelu(const Attributes& attrs) : alpha(attrs.real("alpha", 0.01f)) {}
  double operator()(double x) const { return x < 0 ? alpha * x : x; }
};

struct ThresholdedRelu {
  double alpha;
  explicit ThresholdedRelu(const Attributes& attrs) : alpha(attrs.real("alpha", 1.0f)) {}
  double operator()(double x) const { return x <= alpha ? 0 : x; }
};

double geluErf(double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }

struct Gelu {
  bool tanhForm;
  explicit Gelu(const Attributes& attrs) : tanhForm(attrs.text("approximate", "none") == "tanh") {}
  double operator()(double x) const { return tanhForm ? geluTanh(x) : geluErf(x); }
};

// Slopes; at the infinities their limits.
double geluErfSlope(double x) {
  const double bell = std::isinf(x) ? 0 : x * std::exp(-0.5 * x * x);
  return 0.5 * std::erfc(-x / std::numbers::sqrt2) + bell * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}

// dy, x → dx
Status geluGrad(const KernelSpec& spec, const KernelCall& call) {
  SS_TRY(checkSameElements(spec, call, 0));
  SS_TRY(checkSameElements(spec, call, 1));
  SS_TRY(checkType(spec, call, 1, call.inputs[0].dtype));
  SS_TRY(checkOutputType(spec, call, 0, call.inputs[0].dtype));
  const bool tanhForm = spec.attrs.text("approximate", "none") == "tanh";
  const bool done = dispatchFloat(call.inputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    broadcastLoop<T, T>(call.inputs[0], call.inputs[1], call.outputs[0],
                        [&](double dy, double x) { return dy * (tanhForm ? geluTanhSlope(x) : geluErfSlope(x)); });
  });
  if (!done) return wrongType(spec, call.inputs[0].dtype);
  return {};
}

struct QuickGelu {
  double alpha;
  explicit QuickGelu(const Attributes& attrs) : alpha(attrs.real("alpha", 1.702f)) {}
  double operator()(double x) const { return x / (1 + std::exp(-alpha * x)); }
};

Status shrink(const KernelSpec& spec, const KernelCall& call) {
  const double bias = spec.attrs.real("bias", 0.0f), lambd = spec.attrs.real("lambd", 0.5f);
  return mapNumeric(spec, call, [&](auto x) -> decltype(x) {
    const auto value = static_cast<double>(x);
    const double y = value < -lambd ? value + bias : value > lambd ? value - bias : 0;
    if constexpr (std::is_floating_point_v<decltype(x)>)
      return y;
    else
      return y >= -0x1p62 && y <= 0x1p62 ? static_cast<decltype(x)>(static_cast<std::int64_t>(y)) : x;
  });
}

// y = kForm(x + bias), bias optional and broadcast to x.
template <double (*kForm)(double)>
Status biasedGelu(const KernelSpec& spec, const KernelCall& call) {
  if (!call.inputPresent(1)) return mapFloat(spec, call, kForm);
  SS_TRY(checkType(spec, call, 1, call.inputs[0].dtype));
  SS_TRY(checkOutputType(spec, call, 0, call.inputs[0].dtype));
  SS_TRY(checkBroadcasts(spec, call, 0));
  SS_TRY(checkBroadcasts(spec, call, 1));
  const bool done = dispatchFloat(call.inputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    broadcastLoop<T, T>(call.inputs[0], call.inputs[1], call.outputs[0], [](double x, double b) { return kForm(x + b); });
  });
  if (!done) return wrongType(spec, call.inputs[0].dtype);
  return {};
}

Status clip(const KernelSpec& spec, const KernelCall& call) {
  for (std::size_t bound = 1; bound <= 2; ++bound) {
    if (!call.inputPresent(bound)) continue;
    SS_TRY(checkType(spec, call, bound, call.inputs[0].dtype));
    if (call.inputs[bound].elements() != 1)
      return invalid("Clip: bound has shape " + dimsText(call.inputs[bound].dims) + "; a scalar");
  }
  return mapNumeric(spec, call, [&](auto x) {
    using W = decltype(x);
    const auto bound = [&](std::size_t i) {
      if constexpr (std::is_same_v<W, double>)
        return elementAsDouble(call.inputs[i], 0);
      else
        return static_cast<const W*>(call.inputs[i].data)[0];
    };
    if (call.inputPresent(1) && x < bound(1)) x = bound(1);
    if (call.inputPresent(2) && x > bound(2)) x = bound(2);
    return x;
  });
}

}  // namespace

std::span<const KernelEntry> activationKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"", "Celu", reading<1, withAttributes<Celu>>},
      {"", "Clip", reading<1, clip>},
      {"", "Elu", reading<1, withAttributes<Elu>>},
      {"", "Gelu", reading<1, withAttributes<Gelu>>},
      {"", "HardSigmoid", reading<1, withAttributes<HardSigmoid>>},
      {"", "LeakyRelu", reading<1, withAttributes<LeakyRelu>>},
      {"", "Selu", reading<1, withAttributes<Selu>>},
      {"", "Shrink", reading<1, shrink>},
      {"", "ThresholdedRelu", reading<1, withAttributes<ThresholdedRelu>>},
      {"com.microsoft", "BiasGelu", reading<1, biasedGelu<geluErf>>},
      {"com.microsoft", "FastGelu", reading<1, biasedGelu<geluTanh>>},
      {"com.microsoft", "Gelu", reading<1, biasedGelu<geluErf>>},
      {"com.microsoft", "QuickGelu", reading<1, withAttributes<QuickGelu>>},
      {"stepscope", "GeluGrad", reading<2, geluGrad>},
  };
  return kEntries;
}

}  // namespace stepscope::reference
