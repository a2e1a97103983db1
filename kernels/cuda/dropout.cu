// Dropout with the CPU's mask: Philox by element, four elements to a draw.
#include <cmath>

#include "kernels/cuda/philox.h"
#include "kernels/cuda/support.h"
#include "kernels/dropout_threshold.h"

namespace stepscope::cuda {
namespace {

// x, y, kept?: [count]; y may lie over x. One thread draws for four elements.
SS_GLOBAL void dropElements(Global<const float> x, Global<float> y, Global<std::uint8_t> kept, std::int64_t count,
                            RandomKey key, float threshold, float scale) {
  const std::int64_t block = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex(), first = block * 4;
  if (first >= count) return;
  const Words words = randomWords(key, static_cast<std::uint64_t>(block));
  for (std::int64_t i = first; i < first + 4 && i < count; ++i) {
    const bool keeps = uniformOf(words.word[i - first]) >= threshold;
    const float value = x[i] * scale;
    y[i] = keeps ? value : 0.0F;
    if (kept.present()) kept[i] = keeps ? 1 : 0;
  }
}

SS_GLOBAL void keepElements(Global<const float> x, Global<float> y, Global<std::uint8_t> kept, std::int64_t count) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= count) return;
  const float value = x[i];
  y[i] = value;
  if (kept.present()) kept[i] = 1;
}

}  // namespace

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
      return gpu.run("dropout: keep", keepElements, blocksFor(count), kThreads, gpu.in<float>(0), gpu.out<float>(0),
                     gpu.out<std::uint8_t>(1), count);
    const float scale = ratio < 1 ? static_cast<float>(1 / (1 - ratio)) : 0.0F;
    return gpu.run("dropout", dropElements, blocksFor(count, kThreads * 4), kThreads, gpu.in<float>(0), gpu.out<float>(0),
                   gpu.out<std::uint8_t>(1), count, call.random, dropoutThreshold(ratio), scale);
  };
  return makeLaunched("dropout", body, 0, Determinism::keyedRandom());
}

}  // namespace stepscope::cuda
