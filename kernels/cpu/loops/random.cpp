// RandomUniform, RandomNormal and Bernoulli: bit for bit the numbers of the reference kernels, whatever the number of
// threads.
#include <array>
#include <bit>
#include <cmath>

#include "kernels/cpu/loops/draws.h"
#include "kernels/cpu/loops/support.h"
#include "kernels/cpu/loops/wide_math.h"

namespace stepscope::cpu {
namespace {

constexpr std::int64_t kBlock = 256;  // elements that are drawn at once

// Whether its product with a draw of 24 bits is exact in double: then a fused sum has the bits of the two steps of the
// reference kernel.
bool exactBesideDraw(double span) {
  int exponent = 0;
  const double digits = std::ldexp(std::frexp(span, &exponent), 29);
  return digits == std::trunc(digits);
}

SS_CLONES void uniformBlock(const RandomKey& key, std::int64_t at, double low, double span, float* y) {
  std::array<std::uint32_t, kBlock> words;
  drawWords(key, static_cast<std::uint64_t>(at / 4), words);
  for (std::size_t i = 0; i < words.size(); ++i)
    y[i] = static_cast<float>(low + span * static_cast<double>(uniformOf(words[i])));
}

SS_CLONES void bernoulliBlock(const RandomKey& key, std::int64_t at, const float* x, float* y, std::int64_t count) {
  std::array<std::uint32_t, kBlock> words;
  drawWords(key, static_cast<std::uint64_t>(at / 4), words);
  for (std::int64_t i = 0; i < count; ++i) y[i] = uniformOf(words[static_cast<std::size_t>(i)]) < x[i] ? 1.0F : 0.0F;
}

// Box-Muller with functions that differ from those of the standard library by less than kMathError of the radius. Where that
// could change the float, the element is counted as doubtful; returns whether any is.
constexpr double kMathError = 2e-12, kSumError = 1e-15;
SS_CLONES bool normalBlock(const RandomKey& key, std::int64_t at, double mean, double scale, float* y,
                           std::uint8_t* doubtful) {
  std::array<std::uint32_t, kBlock> radius, angle;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const auto four = randomBlock(key, static_cast<std::uint64_t>(at + i));
    radius[static_cast<std::size_t>(i)] = four[0];
    angle[static_cast<std::size_t>(i)] = four[1];
  }
  const double size = std::fabs(scale) * kMathError;
  int any = 0;
#pragma omp simd reduction(| : any)
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const double u1 = (static_cast<double>(radius[static_cast<std::size_t>(i)]) + 1.0) * 0x1p-32,
                 u2 = static_cast<double>(angle[static_cast<std::size_t>(i)]) * 0x1p-32;
    const double r = std::sqrt(-2.0 * logOfPositive(u1));
    const double value = mean + scale * (r * sineAndCosine(6.283185307179586 * u2).cosine);
    const double error = r * size + std::fabs(value) * kSumError;
    const int doubt = static_cast<float>(value - error) != static_cast<float>(value + error) ? 1 : 0;
    y[i] = static_cast<float>(value);
    doubtful[i] = static_cast<std::uint8_t>(doubt);
    any |= doubt;
  }
  return any != 0;
}

// fill(element, result): kBlock elements.
template <typename Fill>
void forEachBlock(std::int64_t count, std::int64_t cost, float* y, int threads, Fill&& fill) {
  parallelParts((count + kBlock - 1) / kBlock, partsOf(count, cost, threads), 1,
                [&](int, std::int64_t begin, std::int64_t end) {
                  std::array<float, kBlock> rest;
                  for (std::int64_t block = begin; block < end; ++block) {
                    const std::int64_t at = block * kBlock, n = std::min(kBlock, count - at);
                    fill(at, n < kBlock ? rest.data() : y + at);
                    if (n < kBlock) std::copy_n(rest.begin(), n, y + at);
                  }
                });
}

// A seed in the model tells nodes apart.
std::uint64_t seedOf(const KernelSpec& spec) {
  return std::uint64_t{std::bit_cast<std::uint32_t>(spec.attrs.real("seed", 0.0F))} << 32;
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeRandomUniform(const KernelSpec& spec) {
  if (!takesOutput(spec, 0)) return notTaken(spec, "a result other than float32");
  const double low = static_cast<double>(spec.attrs.real("low", 0.0F)),
               span = static_cast<double>(spec.attrs.real("high", 1.0F)) - low;
  if (!exactBesideDraw(span)) return notTaken(spec, "a range of so many digits");
  return makeBodyKernel(
      "vector loop",
      [=, seed = seedOf(spec), count = elementCount(spec.outputs[0].dims),
       threads = spec.threads](const KernelCall& call) -> Status {
        RandomKey key = call.random;
        key.seed ^= seed;
        forEachBlock(count, 4, output(call, 0), threads,
                     [&](std::int64_t at, float* y) { uniformBlock(key, at, low, span, y); });
        return {};
      },
      0, Determinism::keyedRandom());
}

Result<std::unique_ptr<Kernel>> makeRandomNormal(const KernelSpec& spec) {
  if (!takesOutput(spec, 0)) return notTaken(spec, "a result other than float32");
  const double mean = static_cast<double>(spec.attrs.real("mean", 0.0F)),
               scale = static_cast<double>(spec.attrs.real("scale", 1.0F));
  return makeBodyKernel(
      "vector loop",
      [=, seed = seedOf(spec), count = elementCount(spec.outputs[0].dims),
       threads = spec.threads](const KernelCall& call) -> Status {
        RandomKey key = call.random;
        key.seed ^= seed;
        forEachBlock(count, 16, output(call, 0), threads, [&](std::int64_t at, float* y) {
          std::array<std::uint8_t, kBlock> doubtful;
          if (!normalBlock(key, at, mean, scale, y, doubtful.data())) return;
          for (std::int64_t i = 0; i < kBlock; ++i)
            if (doubtful[static_cast<std::size_t>(i)] != 0)
              y[i] = static_cast<float>(mean + scale * normal01(key, static_cast<std::uint64_t>(at + i)));
        });
        return {};
      },
      0, Determinism::keyedRandom());
}

Result<std::unique_ptr<Kernel>> makeBernoulli(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0)) return notTaken(spec, "elements other than float32");
  const std::int64_t count = elementCount(spec.inputs[0].dims);
  if (elementCount(spec.outputs[0].dims) != count) return notTaken(spec, "a result of another size");
  return makeBodyKernel(
      "vector loop",
      [=, seed = seedOf(spec), threads = spec.threads](const KernelCall& call) -> Status {
        RandomKey key = call.random;
        key.seed ^= seed;
        forEachBlock(count, 4, output(call, 0), threads, [&](std::int64_t at, float* y) {
          bernoulliBlock(key, at, input(call, 0) + at, y, std::min(kBlock, count - at));
        });
        return {};
      },
      0, Determinism::keyedRandom());
}

}  // namespace stepscope::cpu
