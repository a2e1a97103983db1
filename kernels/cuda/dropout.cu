// Dropout with the CPU's mask: Philox by element, four elements to a draw.
#include <cmath>

#include "kernels/bias_dropout.h"
#include "kernels/cuda/philox.h"
#include "kernels/cuda/support.h"
#include "kernels/dropout_part.h"
#include "kernels/dropout_threshold.h"

namespace stepscope::cuda {
inline namespace dropout_cu {

// y = kept ? x * scale : 0 for the elements from `first` on that a thread has; mask?: what is kept.
SS_DEVICE void dropFour(Global<const float> x, Global<float> y, Global<std::uint8_t> mask, std::int64_t first,
                        std::int64_t count, const bool (&keeps)[4], float scale) {
  if (first + 4 <= count) {
    const gpu::Four<float> four = x.four(first);
    y.setFour(first, {keeps[0] ? four.x * scale : 0.0F, keeps[1] ? four.y * scale : 0.0F, keeps[2] ? four.z * scale : 0.0F,
                      keeps[3] ? four.w * scale : 0.0F});
    if (mask.present())
      mask.setFour(first, {static_cast<std::uint8_t>(keeps[0]), static_cast<std::uint8_t>(keeps[1]),
                           static_cast<std::uint8_t>(keeps[2]), static_cast<std::uint8_t>(keeps[3])});
    return;
  }
  for (std::int64_t i = first; i < count; ++i) {
    const float value = x[i] * scale;
    y[i] = keeps[i - first] ? value : 0.0F;
    if (mask.present()) mask[i] = keeps[i - first] ? 1 : 0;
  }
}

// x, y, kept?: [count]; y may lie over x. One thread draws for four elements.
SS_GLOBAL void dropElements(Global<const float> x, Global<float> y, Global<std::uint8_t> kept, std::int64_t count, Draw draw,
                            float threshold, float scale) {
  const std::int64_t block = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex(), first = block * 4;
  if (first >= count) return;
  const Words words = randomWords(keyOf(draw), static_cast<std::uint64_t>(block));
  bool keeps[4];
  for (int e = 0; e < 4; ++e) keeps[e] = uniformOf(words.word[e]) >= threshold;
  dropFour(x, y, kept, first, count, keeps, scale);
}

SS_GLOBAL void keepElements(Global<const float> x, Global<float> y, Global<std::uint8_t> kept, std::int64_t count) {
  const std::int64_t first = (gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex()) * 4;
  const bool keeps[4] = {true, true, true, true};
  if (first < count) dropFour(x, y, kept, first, count, keeps, 1.0F);
}

// x, y, kept?: [outer, K, inner] of `count` elements; places [K] or [outer, K]. One thread draws for one element.
SS_GLOBAL void dropPart(Global<const float> x, Global<const std::int64_t> places, Global<float> y, Global<std::uint8_t> kept,
                        std::int64_t count, DropoutPart part, std::int64_t extent, Draw draw, float threshold, float scale) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= count) return;
  const std::int64_t run = part.places * part.inner, outer = i / run;
  std::int64_t place = places[(part.byOuter ? outer * part.places : 0) + i % run / part.inner];
  if (place < 0) place += extent;
  const auto element = static_cast<std::uint64_t>((outer * extent + place) * part.inner + i % part.inner);
  const bool keeps = uniformOf(randomWords(keyOf(draw), element / 4).word[element % 4]) >= threshold;
  const float value = x[i] * scale;
  y[i] = keeps ? value : 0.0F;
  if (kept.present()) kept[i] = keeps ? 1 : 0;
}

// The n elements of x from `first` on, a multiple of 4; four at once where they are there.
SS_DEVICE void takeFour(Global<const float> x, std::int64_t first, int n, float (&to)[4]) {
  if (n == 4) {
    const gpu::Four<float> all = x.four(first);
    to[0] = all.x, to[1] = all.y, to[2] = all.z, to[3] = all.w;
    return;
  }
  for (int e = 0; e < n; ++e) to[e] = x[first + e];
}

// x, residual?, y, kept?: [count]; bias?: [width] along the last axis, or [count]. One thread draws for four elements;
// without `drops` all stay. y may lie over x or residual.
SS_GLOBAL void dropSums(Global<const float> x, Global<const float> bias, Global<const float> residual, Global<float> y,
                        Global<std::uint8_t> kept, std::int64_t count, std::int64_t width, Draw draw, bool drops,
                        float threshold, float scale) {
  const std::int64_t block = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex(), first = block * 4;
  if (first >= count) return;
  const int n = static_cast<int>(count - first < 4 ? count - first : 4);
  const Words words = drops ? randomWords(keyOf(draw), static_cast<std::uint64_t>(block)) : Words{};
  float value[4] = {}, added[4] = {}, behind[4] = {};
  takeFour(x, first, n, value);
  // Four elements are of one row where rows are multiples of four.
  if (bias.present() && width % 4 == 0)
    takeFour(bias, first % width, n, added);
  else if (bias.present())
    for (int e = 0; e < n; ++e) added[e] = bias[(first + e) % width];
  if (residual.present()) takeFour(residual, first, n, behind);
  bool keeps[4];
  for (int e = 0; e < 4; ++e) {
    keeps[e] = !drops || uniformOf(words.word[e]) >= threshold;
    value[e] = keeps[e] ? (bias.present() ? value[e] + added[e] : value[e]) * scale : 0.0F;
    if (residual.present()) value[e] += behind[e];
  }
  if (n == 4) {
    y.setFour(first, {value[0], value[1], value[2], value[3]});
    if (kept.present())
      kept.setFour(first, {static_cast<std::uint8_t>(keeps[0]), static_cast<std::uint8_t>(keeps[1]),
                           static_cast<std::uint8_t>(keeps[2]), static_cast<std::uint8_t>(keeps[3])});
    return;
  }
  for (int e = 0; e < n; ++e) {
    y[first + e] = value[e];
    if (kept.present()) kept[first + e] = keeps[e] ? 1 : 0;
  }
}

}  // namespace dropout_cu

// x, ratio?, training?; the last two are read on the host.
Result<std::unique_ptr<Kernel>> makeDropout(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0)) return notTaken(spec, "elements other than float32");
  const std::int64_t count = elementCount(spec.inputs[0].dims);
  if (elementCount(spec.outputs[0].dims) != count || !takesOptionalOutput(spec, 1, count, DType::kBool))
    return notTaken(spec, "results of another size");
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
    if (spec.inputPresent(i) && (!takesScalar(spec, i) || spec.inputs[i].space != Space::kHost))
      return notTaken(spec, "a ratio or mode that is no scalar of the host");
  const auto body = [=](Launcher& gpu) -> Status {
    const KernelCall& call = gpu.call();
    const double ratio = call.inputPresent(1) ? elementAsDouble(call.inputs[1], 0) : 0.5;
    if (!(ratio >= 0)) return invalid("Dropout: ratio " + std::to_string(ratio) + "; 0 or more");
    if (ratio == 0 || !call.inputPresent(2) || elementAsDouble(call.inputs[2], 0) == 0)
      return gpu.run("dropout: keep", gpu::function<keepElements>, blocksFor(count, kThreads * 4), kThreads,
                     gpu.in<float>(0), gpu.out<float>(0), gpu.out<std::uint8_t>(1), count);
    const float scale = ratio < 1 ? static_cast<float>(1 / (1 - ratio)) : 0.0F;
    return gpu.run("dropout", gpu::function<dropElements>, blocksFor(count, kThreads * 4), kThreads, gpu.in<float>(0),
                   gpu.out<float>(0), gpu.out<std::uint8_t>(1), count, drawOf(gpu), dropoutThreshold(ratio), scale);
  };
  return makeLaunched("dropout", body, 0, Determinism::keyedRandom());
}

// x, bias?, residual?, ratio?, training?; the last two are read on the host.
Result<std::unique_ptr<Kernel>> makeBiasDropout(const KernelSpec& spec) {
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}, std::size_t{2}})
    if ((i == 0 || spec.inputPresent(i)) && !takesInput(spec, i)) return notTaken(spec, "elements other than float32");
  if (!takesOutput(spec, 0)) return notTaken(spec, "elements other than float32");
  const std::int64_t count = elementCount(spec.inputs[0].dims);
  if (elementCount(spec.outputs[0].dims) != count || !takesOptionalOutput(spec, 1, count, DType::kBool))
    return notTaken(spec, "results of another size");
  for (const std::size_t i : {std::size_t{3}, std::size_t{4}})
    if (spec.inputPresent(i) && (!takesScalar(spec, i) || spec.inputs[i].space != Space::kHost))
      return notTaken(spec, "a ratio or mode that is no scalar of the host");
  const auto dimsOf = [&](std::size_t i) { return spec.inputPresent(i) ? &spec.inputs[i].dims : nullptr; };
  SS_TRY(checkBiasDropout(spec.inputs[0].dims, dimsOf(1), dimsOf(2)));
  const std::int64_t width = spec.inputPresent(1) ? elementCount(spec.inputs[1].dims) : 1;
  const auto body = [=](Launcher& gpu) -> Status {
    const KernelCall& call = gpu.call();
    const double ratio = call.inputPresent(3) ? elementAsDouble(call.inputs[3], 0) : 0.5;
    if (!(ratio >= 0)) return invalid("BiasDropout: ratio " + std::to_string(ratio) + "; 0 or more");
    const bool drops = ratio > 0 && call.inputPresent(4) && elementAsDouble(call.inputs[4], 0) != 0;
    const float scale = !drops ? 1.0F : ratio < 1 ? static_cast<float>(1 / (1 - ratio)) : 0.0F;
    return gpu.run("dropout of a sum", gpu::function<dropSums>, blocksFor(count, kThreads * 4), kThreads, gpu.in<float>(0),
                   gpu.in<float>(1), gpu.in<float>(2), gpu.out<float>(0), gpu.out<std::uint8_t>(1), count, width,
                   drawOf(gpu), drops, dropoutThreshold(ratio), scale);
  };
  return makeLaunched("bias_dropout", body, 0, Determinism::keyedRandom());
}

// x, places, extent, ratio?, training?; the last three are read on the host.
Result<std::unique_ptr<Kernel>> makeDropoutPart(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0)) return notTaken(spec, "elements other than float32");
  const std::int64_t count = elementCount(spec.inputs[0].dims);
  if (elementCount(spec.outputs[0].dims) != count || !takesOptionalOutput(spec, 1, count, DType::kBool))
    return notTaken(spec, "results of another size");
  if (spec.inputs[1].dtype != DType::kI64) return notTaken(spec, "places other than int64");
  if (spec.inputs[2].space != Space::kHost) return notTaken(spec, "an extent that is not on the host");
  for (const std::size_t i : {std::size_t{3}, std::size_t{4}})
    if (spec.inputPresent(i) && (!takesScalar(spec, i) || spec.inputs[i].space != Space::kHost))
      return notTaken(spec, "a ratio or mode that is no scalar of the host");
  SS_ASSIGN(const DropoutPart part, dropoutPart(spec.attrs, spec.inputs[0].dims, spec.inputs[1].dims));
  const auto body = [=](Launcher& gpu) -> Status {
    const KernelCall& call = gpu.call();
    const double ratio = call.inputPresent(3) ? elementAsDouble(call.inputs[3], 0) : 0.5;
    if (!(ratio >= 0)) return invalid("DropoutPart: ratio " + std::to_string(ratio) + "; 0 or more");
    if (ratio == 0 || !call.inputPresent(4) || elementAsDouble(call.inputs[4], 0) == 0)
      return gpu.run("dropout: keep", gpu::function<keepElements>, blocksFor(count, kThreads * 4), kThreads,
                     gpu.in<float>(0), gpu.out<float>(0), gpu.out<std::uint8_t>(1), count);
    const float scale = ratio < 1 ? static_cast<float>(1 / (1 - ratio)) : 0.0F;
    return gpu.run("dropout of a part", gpu::function<dropPart>, blocksFor(count, kThreads), kThreads, gpu.in<float>(0),
                   gpu.in<std::int64_t>(1), gpu.out<float>(0), gpu.out<std::uint8_t>(1), count, part,
                   elementAsInt(call.inputs[2], 0), drawOf(gpu), dropoutThreshold(ratio), scale);
  };
  return makeLaunched("dropout_part", body, 0, Determinism::keyedRandom());
}

}  // namespace stepscope::cuda
