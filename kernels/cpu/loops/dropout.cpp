// Dropout: the mask of the reference kernel (Philox by element), four elements to a draw.
#include <array>
#include <cmath>

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

}  // namespace stepscope::cpu
