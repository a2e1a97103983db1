// StochasticRound from float32: bit for bit the numbers of the reference kernel, whatever the number of threads.
#include <array>
#include <bit>
#include <cmath>

#include "kernels/cpu/loops/draws.h"
#include "kernels/cpu/loops/support.h"

namespace stepscope::cpu {
namespace {

constexpr std::int64_t kBlock = 256;  // elements that are drawn at once

// A draw is 24 bits of its word; the part that is cut off, in units of 2^-24, is compared with it.
SS_CLONES void toBFloat16(const RandomKey& key, std::int64_t at, const float* x, BFloat16* y, std::int64_t count) {
  std::array<std::uint32_t, kBlock> words;
  drawWords(key, static_cast<std::uint64_t>(at / 4), words);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(x[i]);
    const std::uint32_t up = (words[static_cast<std::size_t>(i)] >> 8) < (bits & 0xffffU) << 8 ? 1U : 0U;
    const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
    y[i].bits = static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40U : (bits >> 16) + up);
  }
}

SS_CLONES void toFloat16(const RandomKey& key, std::int64_t at, const float* x, Float16* y, std::int64_t count) {
  std::array<std::uint32_t, kBlock> words;
  drawWords(key, static_cast<std::uint64_t>(at / 4), words);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x[i]), sign = bits & 0x80000000U;
    const float magnitude = std::bit_cast<float>(bits & 0x7fffffffU);
    // Powers of two, so that every product is exact: the distance of neighbours, and one by it. From 2^16 on all is
    // infinite.
    const float power = std::bit_cast<float>(bits & 0x7f800000U);
    const float ulp = std::fmin(std::fmax(power * 0x1p-10F, 0x1p-24F), 0x1p6F);
    const float units = std::fmin(magnitude, 0x1p17F) * (1.0F / ulp), low = std::floor(units);
    const float up = uniformOf(words[static_cast<std::size_t>(i)]) < units - low ? 1.0F : 0.0F;
    const float rounded = (low + up) * ulp;
    const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
    y[i] = Float16(nan ? x[i] : std::bit_cast<float>(std::bit_cast<std::uint32_t>(rounded) | sign));
  }
}

template <typename To>
Result<std::unique_ptr<Kernel>> roundingTo(const KernelSpec& spec,
                                           void (*block)(const RandomKey&, std::int64_t, const float*, To*, std::int64_t)) {
  const std::int64_t count = elementCount(spec.inputs[0].dims);
  const std::uint32_t node = streamOfRounding(spec.attrs.integer("stream", 0));
  return makeBodyKernel(
      "vector loop",
      [=, threads = spec.threads](const KernelCall& call) -> Status {
        RandomKey key = call.random;
        key.node = node;
        const float* x = input(call, 0);
        To* y = output<To>(call, 0);
        parallelParts((count + kBlock - 1) / kBlock, partsOf(count, 8, threads), 1,
                      [&](int, std::int64_t begin, std::int64_t end) {
                        for (std::int64_t at = begin * kBlock; at < std::min(end * kBlock, count); at += kBlock)
                          block(key, at, x + at, y + at, std::min(kBlock, count - at));
                      });
        return {};
      },
      0, Determinism::keyedRandom());
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeStochasticRound(const KernelSpec& spec) {
  if (!takesInput(spec, 0)) return notTaken(spec, "elements other than float32");
  if (elementCount(spec.outputs[0].dims) != elementCount(spec.inputs[0].dims))
    return notTaken(spec, "a result of another size");
  if (spec.outputs[0].dtype == DType::kBF16) return roundingTo<BFloat16>(spec, toBFloat16);
  if (spec.outputs[0].dtype == DType::kF16) return roundingTo<Float16>(spec, toFloat16);
  return notTaken(spec, "a result other than float16 and bfloat16");
}

}  // namespace stepscope::cpu
