// DropoutPart (kernels/dropout_part.h): runs of the whole value's mask, row by row.
#include "kernels/dropout_part.h"

#include <array>
#include <cmath>

#include "kernels/cpu/loops/draws.h"
#include "kernels/cpu/loops/support.h"
#include "kernels/dropout_threshold.h"

namespace stepscope::cpu {
namespace {

constexpr std::int64_t kDraws = 64;  // of four elements each
constexpr std::int64_t kBlock = kDraws * 4;

// kept[i] = draw of element 4 * block + i >= ratio, for kDraws draws.
SS_CLONES void drawMask(RandomKey key, std::uint64_t block, float ratio, std::uint8_t* kept) {
  std::array<std::uint32_t, kBlock> words;
  drawWords(key, block, words);
  for (std::size_t i = 0; i < words.size(); ++i) kept[i] = uniformOf(words[i]) >= ratio ? 1 : 0;
}

// `count` elements from element `at` of the whole value on.
void dropRun(const RandomKey& key, std::int64_t at, std::int64_t count, float threshold, float scale, const float* x,
             float* y, std::uint8_t* mask) {
  std::array<std::uint8_t, kBlock> kept;
  for (std::int64_t block = at / 4, done = 0; done < count; block += kDraws) {
    drawMask(key, static_cast<std::uint64_t>(block), threshold, kept.data());
    const std::int64_t skip = at + done - block * 4, n = std::min(kBlock - skip, count - done);
    for (std::int64_t i = 0; i < n; ++i)
      y[done + i] = kept[static_cast<std::size_t>(skip + i)] != 0 ? x[done + i] * scale : 0.0F;
    if (mask != nullptr) std::copy_n(kept.begin() + skip, n, mask + done);
    done += n;
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeDropoutPart(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0)) return notTaken(spec, "elements other than float32");
  const std::int64_t count = elementCount(spec.inputs[0].dims);
  if (elementCount(spec.outputs[0].dims) != count || !takesOptionalOutput(spec, 1, count, DType::kBool))
    return notTaken(spec, "results of another size");
  if (spec.inputs[1].dtype != DType::kI64) return notTaken(spec, "places other than int64");
  for (const std::size_t i : {std::size_t{3}, std::size_t{4}})
    if (spec.inputPresent(i) && !takesScalar(spec, i)) return notTaken(spec, "a ratio or mode that is no scalar");
  SS_ASSIGN(const DropoutPart part, dropoutPart(spec.attrs, spec.inputs[0].dims, spec.inputs[1].dims));
  return makeBodyKernel(
      "vector loop",
      [=, threads = spec.threads](const KernelCall& call) -> Status {
        const double ratio = call.inputPresent(3) ? elementAsDouble(call.inputs[3], 0) : 0.5;
        if (!(ratio >= 0)) return invalid("DropoutPart: ratio " + std::to_string(ratio) + "; 0 or more");
        const bool training = call.inputPresent(4) && elementAsDouble(call.inputs[4], 0) != 0 && ratio > 0;
        const std::int64_t extent = elementAsInt(call.inputs[2], 0);
        const auto* places = input<std::int64_t>(call, 1);
        for (std::int64_t i = 0; i < call.inputs[1].elements(); ++i)
          if (places[i] < -extent || places[i] >= extent)
            return invalid("DropoutPart: place " + std::to_string(places[i]) + "; valid -" + std::to_string(extent) + ".." +
                           std::to_string(extent - 1));
        const float scale = ratio < 1 ? static_cast<float>(1 / (1 - ratio)) : 0.0F, threshold = dropoutThreshold(ratio);
        const float* x = input(call, 0);
        float* y = output(call, 0);
        auto* mask = call.outputPresent(1) ? output<std::uint8_t>(call, 1) : nullptr;
        const std::int64_t rows = part.outer * part.places;
        parallelParts(rows, partsOf(count, training ? 4 : 1, threads), 1, [&](int, std::int64_t begin, std::int64_t end) {
          if (!training) {
            const std::int64_t at = begin * part.inner, n = (end - begin) * part.inner;
            if (x != y) std::copy_n(x + at, n, y + at);
            if (mask != nullptr) std::fill_n(mask + at, n, std::uint8_t{1});
            return;
          }
          for (std::int64_t row = begin; row < end; ++row) {
            const std::int64_t at = row * part.inner;
            dropRun(call.random, static_cast<std::int64_t>(part.element(at, places[part.placeOf(at)], extent)), part.inner,
                    threshold, scale, x + at, y + at, mask != nullptr ? mask + at : nullptr);
          }
        });
        return {};
      },
      0, Determinism::keyedRandom());
}

}  // namespace stepscope::cpu
