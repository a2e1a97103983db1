// QuantizeLinear, DequantizeLinear and FakeQuant with one scale for all elements or one per extent of an axis; the bits are
// those of the reference kernels: a quotient of floats rounded once, and FakeQuant in double.
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/cpu/loops/support.h"
#include "kernels/cpu/loops/vector_math.h"

namespace stepscope::cpu {
namespace {

// x is [outer, count, inner] with `count` scales.
struct Scales {
  std::int64_t outer = 1, count = 1, inner = 1;
  std::int64_t elements() const { return outer * count * inner; }
};

Result<Scales> scalesOf(const KernelSpec& spec) {
  const Dims &x = spec.inputs[0].dims, &scale = spec.inputs[1].dims;
  if (spec.attrs.integer("block_size", 0) > 0) return notTaken(spec, "a scale per block");
  if (scale.size() <= 1 && elementCount(scale) == 1) return Scales{1, 1, elementCount(x)};
  const auto axis = normalizeAxis(spec.attrs.integer("axis", 1), static_cast<std::int64_t>(x.size()));
  if (!axis || scale != Dims{x[static_cast<std::size_t>(*axis)]}) return notTaken(spec, "scales that do not fit an axis");
  const std::span<const std::int64_t> all(x);
  const auto a = static_cast<std::size_t>(*axis);
  return Scales{elementCount(all.first(a)), x[a], elementCount(all.subspan(a + 1))};
}

// body(element, count, scale, step): neighbours whose scales are `step` apart, 0 or 1.
template <typename Body>
void forEachRun(const Scales& s, int threads, Body&& body) {
  if (s.count == 1)
    return parallelElements(s.elements(), threads, [&](std::int64_t begin, std::int64_t end) {
      body(begin, end - begin, std::int64_t{0}, std::int64_t{0});
    });
  const bool last = s.inner == 1;
  const std::int64_t width = last ? s.count : s.inner;
  parallelRows(s.elements() / width, width, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) body(row * width, width, last ? 0 : row % s.count, std::int64_t{last});
  });
}

// round(x / scale) + zero within the range of Q, 0 for NaN.
template <typename Q>
SS_INLINE Q quantised(float x, float scale, Q zero) {
  constexpr float low = std::numeric_limits<Q>::min(), high = std::numeric_limits<Q>::max();
  float q = std::rint(x / scale) + static_cast<float>(zero);
  q = q < low ? low : q;
  q = q > high ? high : q;
  return static_cast<Q>(static_cast<std::int32_t>(q == q ? q : 0.0F));
}

template <typename Q>
SS_CLONES void quantizeRun(const float* x, const float* scale, const Q* zero, std::int64_t step, Q* y, std::int64_t count) {
  if (step == 0) {
    const float one = *scale;
    const Q origin = *zero;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) y[i] = quantised(x[i], one, origin);
  } else {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) y[i] = quantised(x[i], scale[i], zero[i]);
  }
}

// Exact before it is rounded: 17 bits times 24 in double at most, and for codes of 32 bits as the reference kernel has it.
template <typename Q>
SS_INLINE float restored(Q x, float scale, Q zero) {
  using Wide = std::conditional_t<sizeof(Q) <= 2, float, double>;
  return static_cast<float>((static_cast<Wide>(x) - static_cast<Wide>(zero)) * static_cast<Wide>(scale));
}

template <typename Q>
SS_CLONES void dequantizeRun(const Q* x, const float* scale, const Q* zero, std::int64_t step, float* y,
                             std::int64_t count) {
  if (step == 0) {
    const float one = *scale;
    const Q origin = *zero;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) y[i] = restored(x[i], one, origin);
  } else {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) y[i] = restored(x[i], scale[i], zero[i]);
  }
}

struct FakeRule {
  double scale, zero, low, high;
};
template <bool kMask>
SS_CLONES void fakeRun(const FakeRule& rule, const float* x, float* y, std::uint8_t* mask, std::int64_t count) {
  const FakeRule r = rule;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    const double q = std::rint(static_cast<double>(x[i]) / r.scale + r.zero);
    const double above = q < r.low ? r.low : q, within = above > r.high ? r.high : above;
    if constexpr (kMask) mask[i] = static_cast<std::uint8_t>((q >= r.low ? 1 : 0) & (q <= r.high ? 1 : 0));
    y[i] = static_cast<float>((within - r.zero) * r.scale);
  }
}

// The two directions for codes of type Q.
template <typename Q>
Result<std::unique_ptr<Kernel>> makeOf(const KernelSpec& spec, const Scales& s, DType codes) {
  if (!takesOptional(spec, 2, s.count, codes)) return notTaken(spec, "a zero point of another type");
  const bool forward = spec.op == "QuantizeLinear";
  return makeBodyKernel(
      "vector loop",
      [=, none = std::vector<Q>(static_cast<std::size_t>(s.count)),
       threads = spec.threads](const KernelCall& call) -> Status {
        const float* scale = input(call, 1);
        const Q* zero = call.inputPresent(2) ? input<Q>(call, 2) : none.data();
        forEachRun(s, threads, [&](std::int64_t at, std::int64_t count, std::int64_t first, std::int64_t step) {
          if (forward)
            quantizeRun<Q>(input(call, 0) + at, scale + first, zero + first, step, output<Q>(call, 0) + at, count);
          else
            dequantizeRun<Q>(input<Q>(call, 0) + at, scale + first, zero + first, step, output(call, 0) + at, count);
        });
        return {};
      });
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeQuantize(const KernelSpec& spec) {
  if (!spec.inputPresent(0) || !spec.outputPresent(0) || !takesInput(spec, 1))
    return notTaken(spec, "scales other than float32");
  const bool forward = spec.op == "QuantizeLinear";
  const OperandSpec &floats = forward ? spec.inputs[0] : spec.outputs[0],
                    &codes = forward ? spec.outputs[0] : spec.inputs[0];
  if (!takes(floats) || !takes(codes, codes.dtype) || elementCount(floats.dims) != elementCount(codes.dims))
    return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Scales s, scalesOf(spec));
  if (codes.dtype == DType::kI8) return makeOf<std::int8_t>(spec, s, codes.dtype);
  if (codes.dtype == DType::kU8) return makeOf<std::uint8_t>(spec, s, codes.dtype);
  if (codes.dtype == DType::kI16) return makeOf<std::int16_t>(spec, s, codes.dtype);
  if (codes.dtype == DType::kU16) return makeOf<std::uint16_t>(spec, s, codes.dtype);
  if (codes.dtype == DType::kI32 && !forward) return makeOf<std::int32_t>(spec, s, codes.dtype);
  return notTaken(spec, "codes of another type");
}

Result<std::unique_ptr<Kernel>> makeFakeQuant(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0) || !takesOptional(spec, 1, 1) || !takesOptional(spec, 2, 1) ||
      !spec.inputPresent(2))
    return notTaken(spec, "elements other than float32");
  const std::int64_t count = elementCount(spec.inputs[0].dims);
  if (elementCount(spec.outputs[0].dims) != count || !takesOptionalOutput(spec, 1, count, DType::kBool))
    return notTaken(spec, "results of another size");
  const auto low = static_cast<double>(spec.attrs.integer("quant_min", 0)),
             high = static_cast<double>(spec.attrs.integer("quant_max", 255));
  if (!(low <= high)) return notTaken(spec, "an empty range");
  return makeBodyKernel("vector loop", [=, threads = spec.threads](const KernelCall& call) -> Status {
    const FakeRule rule{static_cast<double>(*input(call, 1)), static_cast<double>(*input(call, 2)), low, high};
    auto* mask = call.outputPresent(1) ? output<std::uint8_t>(call, 1) : nullptr;
    parallelElements(count, threads, [&](std::int64_t begin, std::int64_t end) {
      const float* x = input(call, 0) + begin;
      float* y = output(call, 0) + begin;
      if (mask != nullptr)
        fakeRun<true>(rule, x, y, mask + begin, end - begin);
      else
        fakeRun<false>(rule, x, y, nullptr, end - begin);
    });
    return {};
  });
}

}  // namespace stepscope::cpu
