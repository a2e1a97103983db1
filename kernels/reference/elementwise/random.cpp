// Ops that draw random numbers. Element i of the result depends on the key of the call and on i alone.
#include <bit>
#include <cmath>

#include "kernels/bias_dropout.h"
#include "kernels/dropout_part.h"
#include "kernels/reference/elementwise/families.h"
#include "kernels/reference/elementwise/loops.h"

namespace stepscope::reference {
namespace {

// A seed in the model tells nodes apart; runs, steps and elements still come from the key.
RandomKey keyOf(const KernelSpec& spec, const KernelCall& call) {
  RandomKey key = call.random;
  key.seed ^= std::uint64_t{std::bit_cast<std::uint32_t>(spec.attrs.real("seed", 0.0f))} << 32;
  return key;
}

// y[i] = x[i] kept by the number of element elementOf(i); `share`: the input that says the share that goes, `share + 1` the
// mode. `sums`: inputs 1 and 2, where they are there, are added before and after.
template <typename F>
Status drop(const KernelSpec& spec, const KernelCall& call, std::size_t share, F elementOf, bool sums = false) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  SS_TRY(checkSameElements(spec, call, 0));
  SS_TRY(checkOutputType(spec, call, 0, x.dtype));
  for (std::size_t i = share; i <= share + 1; ++i)
    if (call.inputPresent(i) && (call.inputs[i].elements() != 1 || call.inputs[i].dtype == DType::kString))
      return invalid(spec.op + ": input " + std::to_string(i) + " has shape " + dimsText(call.inputs[i].dims) +
                     "; a scalar");
  const bool hasMask = call.outputPresent(1);
  if (hasMask) {
    SS_TRY(checkOutputType(spec, call, 1, DType::kBool));
    SS_TRY(checkSameElements(spec, call, 0, 1));
  }
  const double ratio = call.inputPresent(share) ? elementAsDouble(call.inputs[share], 0) : 0.5;
  if (!(ratio >= 0)) return invalid(spec.op + ": ratio " + std::to_string(ratio) + "; 0 or more");
  const bool training = call.inputPresent(share + 1) && elementAsDouble(call.inputs[share + 1], 0) != 0 && ratio > 0;
  const double scale = training ? (ratio < 1 ? 1 / (1 - ratio) : 0) : 1;
  bool* mask = hasMask ? static_cast<bool*>(call.outputs[1].data) : nullptr;
  const TensorView* bias = sums && call.inputPresent(1) ? &call.inputs[1] : nullptr;
  const TensorView* residual = sums && call.inputPresent(2) ? &call.inputs[2] : nullptr;
  const bool done = dispatchFloat(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto in = x.as<const T>();
    const auto out = y.as<T>();
    for (std::size_t i = 0; i < in.size(); ++i) {
      const bool kept = !training || uniform01(call.random, elementOf(i)) >= ratio;
      const auto element = static_cast<std::int64_t>(i);
      const double before = bias ? elementAsDouble(*bias, element % bias->elements()) : 0;
      const double after = residual ? elementAsDouble(*residual, element) : 0;
      const double x = bias ? widen(in[i]) + before : static_cast<double>(widen(in[i]));
      out[i] = residual ? narrow<T>((kept ? x * scale : 0) + after) : kept ? narrow<T>(x * scale) : T(0.0f);
      if (hasMask) mask[i] = kept;
    }
  });
  if (!done) return wrongType(spec, x.dtype);
  return {};
}

Status dropout(const KernelSpec& spec, const KernelCall& call) {
  return drop(spec, call, 1, [](std::size_t i) { return static_cast<std::uint64_t>(i); });
}

Status biasDropout(const KernelSpec& spec, const KernelCall& call) {
  const auto dimsOf = [&](std::size_t i) { return call.inputPresent(i) ? &call.inputs[i].dims.get() : nullptr; };
  SS_TRY(checkBiasDropout(call.inputs[0].dims, dimsOf(1), dimsOf(2)));
  for (const std::size_t i : {1u, 2u})
    if (call.inputPresent(i) && call.inputs[i].dtype != call.inputs[0].dtype) return wrongType(spec, call.inputs[i].dtype);
  return drop(
      spec, call, 3, [](std::size_t i) { return static_cast<std::uint64_t>(i); }, true);
}

Status dropoutPart(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const DropoutPart part, dropoutPart(spec.attrs, call.inputs[0].dims, call.inputs[1].dims));
  const std::int64_t extent = elementAsInt(call.inputs[2], 0);
  for (std::int64_t i = 0; i < call.inputs[1].elements(); ++i)
    if (const std::int64_t place = elementAsInt(call.inputs[1], i); place < -extent || place >= extent)
      return invalid(spec.op + ": place " + std::to_string(place) + "; valid -" + std::to_string(extent) + ".." +
                     std::to_string(extent - 1));
  return drop(spec, call, 3, [&](std::size_t i) {
    const auto at = static_cast<std::int64_t>(i);
    return part.element(at, elementAsInt(call.inputs[1], part.placeOf(at)), extent);
  });
}

// y[i] = draw(i) for a floating output.
template <typename F>
Status generate(const KernelSpec& spec, const KernelCall& call, F draw) {
  const bool done = dispatchFloat(call.outputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto out = call.outputs[0].as<T>();
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = narrow<T>(draw(i));
  });
  if (!done) return wrongType(spec, call.outputs[0].dtype);
  return {};
}

Status randomNormal(const KernelSpec& spec, const KernelCall& call) {
  const RandomKey key = keyOf(spec, call);
  const double mean = spec.attrs.real("mean", 0.0f), scale = spec.attrs.real("scale", 1.0f);
  return generate(spec, call, [&](std::size_t i) { return mean + scale * normal01(key, i); });
}

Status randomUniform(const KernelSpec& spec, const KernelCall& call) {
  const RandomKey key = keyOf(spec, call);
  const double low = spec.attrs.real("low", 0.0f), high = spec.attrs.real("high", 1.0f);
  return generate(spec, call, [&](std::size_t i) { return low + (high - low) * uniform01(key, i); });
}

Status bernoulli(const KernelSpec& spec, const KernelCall& call) {
  SS_TRY(checkSameElements(spec, call, 0));
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  if (!isFloating(x.dtype)) return wrongType(spec, x.dtype);
  if (y.dtype == DType::kString) return wrongType(spec, y.dtype);
  const RandomKey key = keyOf(spec, call);
  const std::int64_t count = x.elements();
  for (std::int64_t i = 0; i < count; ++i)
    storeElement(y, i, uniform01(key, static_cast<std::uint64_t>(i)) < elementAsDouble(x, i) ? 1 : 0);
  return {};
}

// The neighbour of |x| towards 0, and the part of the way from it to the next one, exactly.
struct Truncated {
  double low = 0, ulp = 0, part = 0;
};
Truncated truncated(double magnitude, int digits, int leastExponent) {
  int exponent = 0;
  (void)std::frexp(magnitude, &exponent);  // magnitude in [2^(exponent-1), 2^exponent)
  const double ulp = std::ldexp(1.0, std::max(exponent - digits, leastExponent));
  const double low = std::floor(magnitude / ulp) * ulp;
  return {low, ulp, (magnitude - low) / ulp};
}

Status stochasticRound(const KernelSpec& spec, const KernelCall& call) {
  SS_TRY(checkSameElements(spec, call, 0));
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  if (!isFloating(x.dtype)) return wrongType(spec, x.dtype);
  if (y.dtype != DType::kF16 && y.dtype != DType::kBF16) return wrongType(spec, y.dtype);
  RandomKey key = call.random;
  key.node = streamOfRounding(spec.attrs.integer("stream", 0));
  const bool half = y.dtype == DType::kF16;
  const std::int64_t count = x.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = elementAsDouble(x, i), magnitude = std::fabs(value);
    double rounded = value;
    if (std::isfinite(value) && magnitude > 0) {
      const Truncated t = half ? truncated(magnitude, 11, -24) : truncated(magnitude, 8, -133);
      const bool up = static_cast<double>(uniform01(key, static_cast<std::uint64_t>(i))) < t.part;
      rounded = std::copysign(t.low + (up ? t.ulp : 0), value);
    }
    storeElement(y, i, rounded);
  }
  return {};
}

// Inverts the cumulative distribution of each row.
Status multinomial(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  if (!isFloating(x.dtype)) return wrongType(spec, x.dtype);
  if (!isInteger(y.dtype)) return wrongType(spec, y.dtype);
  if (x.dims.size() != 2 || y.dims.size() != 2 || x.dims[0] != y.dims[0])
    return invalid("Multinomial: input has shape " + dimsText(x.dims) + "; [batch, classes]");
  const std::int64_t batch = x.dims[0], classes = x.dims[1], samples = y.dims[1];
  if (classes == 0 && batch * samples > 0) return invalid("Multinomial: no classes; at least one");
  const RandomKey key = keyOf(spec, call);
  for (std::int64_t b = 0; b < batch; ++b) {
    double largest = -HUGE_VAL, total = 0;
    for (std::int64_t k = 0; k < classes; ++k) largest = std::fmax(largest, elementAsDouble(x, b * classes + k));
    const auto weight = [&](std::int64_t k) { return std::exp(elementAsDouble(x, b * classes + k) - largest); };
    for (std::int64_t k = 0; k < classes; ++k) total += weight(k);
    for (std::int64_t s = 0; s < samples; ++s) {
      const std::int64_t element = b * samples + s;
      const double target = uniform01(key, static_cast<std::uint64_t>(element)) * total;
      std::int64_t chosen = 0;
      double sum = 0;
      for (std::int64_t k = 0; k < classes; ++k) {
        const double w = weight(k);
        if (w > 0) chosen = k;  // rounding at the end must not reach a class of weight 0
        sum += w;
        if (target < sum) break;
      }
      storeElement(y, element, static_cast<double>(chosen));
    }
  }
  return {};
}

}  // namespace

std::span<const KernelEntry> randomKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"", "Bernoulli", drawing<1, bernoulli>},
      {"", "Dropout", drawing<1, dropout>},
      {"", "Multinomial", drawing<1, multinomial>},
      {"", "RandomNormal", drawing<0, randomNormal>},
      {"", "RandomNormalLike", drawing<1, randomNormal>},
      {"", "RandomUniform", drawing<0, randomUniform>},
      {"", "RandomUniformLike", drawing<1, randomUniform>},
      {"stepscope", "BiasDropout", drawing<1, biasDropout>},
      {"stepscope", "DropoutPart", drawing<3, dropoutPart>},
      {"stepscope", "StochasticRound", drawing<1, stochasticRound>},
  };
  return kEntries;
}

}  // namespace stepscope::reference
