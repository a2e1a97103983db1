// Conversion between numbers and their quantised forms.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/elementwise/families.h"
#include "kernels/reference/elementwise/loops.h"

namespace stepscope::reference {
namespace {

// Which scale belongs to element i of x: one for all, one per extent of `axis`, or one per block along it.
class ScaleIndex {
 public:
  static Result<ScaleIndex> make(const KernelSpec& spec, const KernelCall& call) {
    const Dims &x = call.inputs[0].dims, &scale = call.inputs[1].dims;
    ScaleIndex index;
    const std::int64_t block = spec.attrs.integer("block_size", 0);
    if (block <= 0 && call.inputs[1].elements() == 1 && scale.size() <= 1) return index;
    const auto axis = normalizeAxis(spec.attrs.integer("axis", 1), static_cast<std::int64_t>(x.size()));
    const auto mismatch = [&] {
      return invalid(spec.op + ": scale has shape " + dimsText(scale) + "; one that fits x " + dimsText(x));
    };
    if (!axis) return mismatch();
    const auto at = static_cast<std::size_t>(*axis);
    index.single_ = false;
    index.extent_ = x[at];
    index.inner_ = elementCount(std::span(x).subspan(at + 1));
    if (block <= 0) {
      if (scale.size() != 1 || scale[0] != x[at]) return mismatch();
      return index;
    }
    Dims expected = x;
    index.block_ = block;
    index.blocks_ = x[at] == 0 ? 0 : (x[at] - 1) / block + 1;
    expected[at] = index.blocks_;
    if (scale != expected) return mismatch();
    return index;
  }
  std::int64_t operator()(std::int64_t i) const {
    if (single_) return 0;
    const std::int64_t along = i / inner_ % extent_;
    if (block_ == 0) return along;
    return (i / inner_ / extent_ * blocks_ + along / block_) * inner_ + i % inner_;
  }

 private:
  bool single_ = true;
  std::int64_t extent_ = 1, inner_ = 1, block_ = 0, blocks_ = 0;
};

Status checkZeroPoint(const KernelSpec& spec, const KernelCall& call) {
  if (!call.inputPresent(2)) return {};
  if (!isInteger(call.inputs[2].dtype)) return wrongType(spec, call.inputs[2].dtype);
  if (call.inputs[2].elements() == call.inputs[1].elements()) return {};
  return invalid(spec.op + ": zero point has shape " + dimsText(call.inputs[2].dims) + "; that of the scale " +
                 dimsText(call.inputs[1].dims));
}

// x / scale in float32, as ONNX computes it: in double, halves that float32 meets exactly would round the other way. Float64
// operands divide in float64.
double scaled(const TensorView& x, std::int64_t i, double scale) {
  const double quotient = elementAsDouble(x, i) / scale;
  return x.dtype == DType::kF64 ? quotient : static_cast<float>(quotient);
}

// round(quotient) + zero, halves to even, within the range of Q.
template <typename Q>
Q saturate(double quotient, std::int64_t zero) {
  const double low = std::numeric_limits<Q>::min(), high = std::numeric_limits<Q>::max();
  const double value = std::nearbyint(quotient) + static_cast<double>(zero);
  return std::isnan(value) ? Q{0} : static_cast<Q>(std::clamp(value, low, high));
}

template <typename F>
bool dispatchQuantised(DType dtype, F&& f) {
  return isInteger(dtype) && dtypeSize(dtype) <= 2 && dispatchInteger(dtype, f);
}

Status quantizeLinear(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &scale = call.inputs[1], &y = call.outputs[0];
  SS_TRY(checkSameElements(spec, call, 0));
  SS_TRY(checkZeroPoint(spec, call));
  if (!isFloating(x.dtype) && x.dtype != DType::kI32) return wrongType(spec, x.dtype);
  if (!isFloating(scale.dtype) && scale.dtype != DType::kI32) return wrongType(spec, scale.dtype);
  SS_ASSIGN(const ScaleIndex index, ScaleIndex::make(spec, call));
  const bool done = dispatchQuantised(y.dtype, [&](auto tag) {
    using Q = decltype(tag);
    const auto out = y.as<Q>();
    for (std::size_t k = 0; k < out.size(); ++k) {
      const auto i = static_cast<std::int64_t>(k);
      const std::int64_t zero = call.inputPresent(2) ? elementAsInt(call.inputs[2], index(i)) : 0;
      out[k] = saturate<Q>(scaled(x, i, elementAsDouble(scale, index(i))), zero);
    }
  });
  if (!done) return wrongType(spec, y.dtype);
  return {};
}

Status dequantizeLinear(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &scale = call.inputs[1], &y = call.outputs[0];
  SS_TRY(checkSameElements(spec, call, 0));
  SS_TRY(checkZeroPoint(spec, call));
  SS_TRY(checkOutputType(spec, call, 0, scale.dtype));
  if (!isInteger(x.dtype)) return wrongType(spec, x.dtype);
  SS_ASSIGN(const ScaleIndex index, ScaleIndex::make(spec, call));
  const bool done = dispatchFloat(scale.dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto scales = scale.as<const T>();
    const auto out = y.as<T>();
    for (std::size_t k = 0; k < out.size(); ++k) {
      const auto i = static_cast<std::int64_t>(k);
      const double zero = call.inputPresent(2) ? elementAsDouble(call.inputs[2], index(i)) : 0;
      out[k] = narrow<T>((elementAsDouble(x, i) - zero) * widen(scales[static_cast<std::size_t>(index(i))]));
    }
  });
  if (!done) return wrongType(spec, scale.dtype);
  return {};
}

// The scale is rounded to its stored float32 before it is used, so that y agrees with what a reader computes from the
// outputs.
Status dynamicQuantizeLinear(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  SS_TRY(checkSameElements(spec, call, 0));
  SS_TRY(checkOutputType(spec, call, 0, DType::kU8));
  if (!isFloating(x.dtype)) return wrongType(spec, x.dtype);
  double low = 0, high = 0;
  const std::int64_t count = x.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    low = std::fmin(low, elementAsDouble(x, i));
    high = std::fmax(high, elementAsDouble(x, i));
  }
  auto scale = static_cast<float>((high - low) / 255);
  if (scale == 0) scale = 1;  // all zeros
  const auto zero = saturate<std::uint8_t>(-low / scale, 0);
  const auto out = call.outputs[0].as<std::uint8_t>();
  for (std::int64_t i = 0; i < count; ++i)
    out[static_cast<std::size_t>(i)] = saturate<std::uint8_t>(scaled(x, i, scale), zero);
  if (call.outputPresent(1)) storeElement(call.outputs[1], 0, scale);
  if (call.outputPresent(2)) storeElement(call.outputs[2], 0, zero);
  return {};
}

Status fakeQuant(const KernelSpec& spec, const KernelCall& call) {
  for (std::size_t i = 1; i <= 2; ++i)
    if (!call.inputPresent(i) || call.inputs[i].elements() != 1 || !isFloating(call.inputs[i].dtype))
      return invalid("FakeQuant: input " + std::to_string(i) + " is no floating scalar; scale and zero point are");
  const bool hasMask = call.outputPresent(1);
  if (hasMask) {
    SS_TRY(checkOutputType(spec, call, 1, DType::kBool));
    SS_TRY(checkSameElements(spec, call, 0, 1));
  }
  const double scale = elementAsDouble(call.inputs[1], 0), zero = elementAsDouble(call.inputs[2], 0);
  const auto low = static_cast<double>(spec.attrs.integer("quant_min", 0));
  const auto high = static_cast<double>(spec.attrs.integer("quant_max", 255));
  if (!(low <= high)) return invalid("FakeQuant: quant_min is above quant_max; the other way round");
  bool* mask = hasMask ? static_cast<bool*>(call.outputs[1].data) : nullptr;
  return mapFloat(spec, call, [&, i = std::size_t{0}](double x) mutable {
    const double q = std::nearbyint(x / scale + zero);
    if (hasMask) mask[i++] = q >= low && q <= high;
    return (std::clamp(q, low, high) - zero) * scale;
  });
}

}  // namespace

std::span<const KernelEntry> quantizeKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"", "DequantizeLinear", reading<2, dequantizeLinear>},
      {"", "DynamicQuantizeLinear", reading<1, dynamicQuantizeLinear>},
      {"", "QuantizeLinear", reading<2, quantizeLinear>},
      {"com.microsoft", "FakeQuant", reading<3, fakeQuant>},
  };
  return kEntries;
}

}  // namespace stepscope::reference
