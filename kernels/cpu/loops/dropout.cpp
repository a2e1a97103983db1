// Dropout and BiasDropout (kernels/bias_dropout.h): the mask of the reference kernel (Philox by element), four elements to a
// draw.
#include <array>
#include <cmath>

#include "kernels/bias_dropout.h"
#include "kernels/cpu/loops/draws.h"
#include "kernels/cpu/loops/support.h"
#include "kernels/dropout_threshold.h"

namespace stepscope::cpu {
namespace {

constexpr std::int64_t kDraws = 64;  // of four elements each

// kept[i] = draw of element 4 * block + i >= ratio, for kDraws draws.
SS_CLONES void drawMask(RandomKey key, std::uint64_t block, float ratio, std::uint8_t* kept) {
  std::array<std::uint32_t, kDraws * 4> words;
  drawWords(key, block, words);
  for (std::size_t i = 0; i < words.size(); ++i) kept[i] = uniformOf(words[i]) >= ratio ? 1 : 0;
}

SS_CLONES void maskLoop(const float* x, const std::uint8_t* kept, float scale, float* y, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    const float scaled = x[i] * scale;
    y[i] = kept[i] != 0 ? scaled : 0.0F;
  }
}

// y = a + b; y may be either.
SS_CLONES void addLoop(const float* a, const float* b, float* y, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
}

// x + bias for the elements from `at` on, in `block` where there is a bias; it is a row of `width`, or as x.
const float* withBias(const float* x, const float* bias, std::int64_t width, std::int64_t at, std::int64_t n, float* block) {
  if (bias == nullptr) return x + at;
  for (std::int64_t done = 0; done < n;) {
    const std::int64_t column = (at + done) % width, run = std::min(n - done, width - column);
    addLoop(x + at + done, bias + column, block + done, run);
    done += run;
  }
  return block;
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeDropout(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0)) return notTaken(spec, "elements other than float32");
  const std::int64_t count = elementCount(spec.inputs[0].dims);
  if (elementCount(spec.outputs[0].dims) != count || !takesOptionalOutput(spec, 1, count, DType::kBool))
    return notTaken(spec, "results of another size");
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
    if (spec.inputPresent(i) && !takesScalar(spec, i)) return notTaken(spec, "a ratio or mode that is no scalar");
  return makeBodyKernel(
      "vector loop",
      [=, threads = spec.threads](const KernelCall& call) -> Status {
        const double ratio = call.inputPresent(1) ? elementAsDouble(call.inputs[1], 0) : 0.5;
        if (!(ratio >= 0)) return invalid("Dropout: ratio " + std::to_string(ratio) + "; 0 or more");
        const bool training = call.inputPresent(2) && elementAsDouble(call.inputs[2], 0) != 0 && ratio > 0;
        const float scale = ratio < 1 ? static_cast<float>(1 / (1 - ratio)) : 0.0F, threshold = dropoutThreshold(ratio);
        const float* x = input(call, 0);
        float* y = output(call, 0);
        auto* mask = call.outputPresent(1) ? output<std::uint8_t>(call, 1) : nullptr;
        constexpr std::int64_t kBlock = kDraws * 4;
        parallelParts((count + kBlock - 1) / kBlock, partsOf(count, training ? 4 : 1, threads), 1,
                      [&](int, std::int64_t begin, std::int64_t end) {
                        if (!training) {
                          const std::int64_t at = begin * kBlock, n = std::min(end * kBlock, count) - at;
                          if (x != y) std::copy_n(x + at, n, y + at);
                          if (mask != nullptr) std::fill_n(mask + at, n, std::uint8_t{1});
                          return;
                        }
                        std::array<std::uint8_t, kBlock> kept;
                        for (std::int64_t block = begin; block < end; ++block) {
                          const std::int64_t at = block * kBlock, n = std::min(kBlock, count - at);
                          drawMask(call.random, static_cast<std::uint64_t>(block * kDraws), threshold, kept.data());
                          maskLoop(x + at, kept.data(), scale, y + at, n);
                          if (mask != nullptr) std::copy_n(kept.begin(), n, mask + at);
                        }
                      });
        return {};
      },
      0, Determinism::keyedRandom());
}

Result<std::unique_ptr<Kernel>> makeBiasDropout(const KernelSpec& spec) {
  for (const std::size_t i : {0u, 1u, 2u})
    if ((i == 0 || spec.inputPresent(i)) && !takesInput(spec, i)) return notTaken(spec, "elements other than float32");
  if (!takesOutput(spec, 0)) return notTaken(spec, "elements other than float32");
  const std::int64_t count = elementCount(spec.inputs[0].dims);
  if (elementCount(spec.outputs[0].dims) != count || !takesOptionalOutput(spec, 1, count, DType::kBool))
    return notTaken(spec, "results of another size");
  for (const std::size_t i : {3u, 4u})
    if (spec.inputPresent(i) && !takesScalar(spec, i)) return notTaken(spec, "a ratio or mode that is no scalar");
  const auto dimsOf = [&](std::size_t i) { return spec.inputPresent(i) ? &spec.inputs[i].dims : nullptr; };
  SS_TRY(checkBiasDropout(spec.inputs[0].dims, dimsOf(1), dimsOf(2)));
  const std::int64_t width = spec.inputPresent(1) ? elementCount(spec.inputs[1].dims) : 1;
  return makeBodyKernel(
      "vector loop",
      [=, threads = spec.threads](const KernelCall& call) -> Status {
        const double ratio = call.inputPresent(3) ? elementAsDouble(call.inputs[3], 0) : 0.5;
        if (!(ratio >= 0)) return invalid("BiasDropout: ratio " + std::to_string(ratio) + "; 0 or more");
        const bool training = call.inputPresent(4) && elementAsDouble(call.inputs[4], 0) != 0 && ratio > 0;
        const float scale = ratio < 1 ? static_cast<float>(1 / (1 - ratio)) : 0.0F, threshold = dropoutThreshold(ratio);
        const float* x = input(call, 0);
        const float* bias = call.inputPresent(1) ? input(call, 1) : nullptr;
        const float* residual = call.inputPresent(2) ? input(call, 2) : nullptr;
        float* y = output(call, 0);
        auto* mask = call.outputPresent(1) ? output<std::uint8_t>(call, 1) : nullptr;
        constexpr std::int64_t kBlock = kDraws * 4;
        parallelParts((count + kBlock - 1) / kBlock, partsOf(count, training ? 4 : 1, threads), 1,
                      [&](int, std::int64_t begin, std::int64_t end) {
                        std::array<std::uint8_t, kBlock> kept;
                        std::array<float, kBlock> block;
                        for (std::int64_t b = begin; b < end; ++b) {
                          const std::int64_t at = b * kBlock, n = std::min(kBlock, count - at);
                          const float* sum = withBias(x, bias, width, at, n, block.data());
                          if (training) {
                            drawMask(call.random, static_cast<std::uint64_t>(b * kDraws), threshold, kept.data());
                            maskLoop(sum, kept.data(), scale, block.data(), n);
                            sum = block.data();
                          } else {
                            kept.fill(1);
                          }
                          if (residual != nullptr)
                            addLoop(sum, residual + at, y + at, n);
                          else if (sum != y + at)
                            std::copy_n(sum, n, y + at);
                          if (mask != nullptr) std::copy_n(kept.begin(), n, mask + at);
                        }
                      });
        return {};
      },
      0, Determinism::keyedRandom());
}

}  // namespace stepscope::cpu
