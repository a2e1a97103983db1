// LayerNormalization and its form without mean (RMS), with their gradients. One block per row; the gradients of scale and
// bias are summed in two stages: parts of 32 rows, then the parts in their order.
#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/row_parts.h"
#include "kernels/cuda/support.h"

namespace stepscope::cuda {
inline namespace norm_cu {

constexpr std::int64_t kPartRows = 32;

// x, y: [rows, width]; scale, bias?: [width]; mean?, inverse?: [rows]; y may lie over x. wide: as loadPart has it.
template <bool kCentred>
SS_GLOBAL void normRows(Global<const float> x, Global<const float> scale, Global<const float> bias, Global<float> y,
                        Global<float> mean, Global<float> inverse, std::int64_t width, float epsilon, bool wide) {
  const std::int64_t row = gpu::blockIndex(), at = row * width;
  float centre = 0;
  if (kCentred) {
    forEachPart(width, [&](std::int64_t j, auto n) {
      float part[decltype(n)::value];
      loadPart(x, at + j, wide, part);
      for (const float one : part) centre += one;
    });
    centre = joinBlock<Plus>(centre) / static_cast<float>(width);
  }
  float squares = 0;
  forEachPart(width, [&](std::int64_t j, auto n) {
    float part[decltype(n)::value];
    loadPart(x, at + j, wide, part);
    for (const float one : part) squares += (one - centre) * (one - centre);
  });
  const float factor = 1.0F / sqrtf(joinBlock<Plus>(squares) / static_cast<float>(width) + epsilon);
  forEachPart(width, [&](std::int64_t j, auto n) {
    constexpr int kCount = decltype(n)::value;
    float value[kCount], slope[kCount], shift[kCount] = {};
    loadPart(x, at + j, wide, value);
    loadPart(scale, j, wide, slope);
    if (bias.present()) loadPart(bias, j, wide, shift);
    for (int e = 0; e < kCount; ++e) {
      value[e] = (value[e] - centre) * factor * slope[e];
      if (bias.present()) value[e] += shift[e];
    }
    storePart(y, at + j, wide, value);
  });
  if (gpu::threadIndex() != 0) return;
  if (mean.present()) mean[row] = centre;
  if (inverse.present()) inverse[row] = factor;
}

// dx = inverse * (d - (sum d + (x - mean) inverse^2 sum d (x - mean)) / width) with d = dy * scale; dx may lie over dy or x.
template <bool kCentred>
SS_GLOBAL void normGradRows(Global<const float> dy, Global<const float> x, Global<const float> scale,
                            Global<const float> mean, Global<const float> inverse, Global<float> dx, std::int64_t width,
                            bool wide) {
  const std::int64_t row = gpu::blockIndex(), at = row * width;
  const float centre = kCentred ? static_cast<float>(mean[row]) : 0.0F, factor = inverse[row];
  float total = 0, dot = 0;
  forEachPart(width, [&](std::int64_t j, auto n) {
    constexpr int kCount = decltype(n)::value;
    float d[kCount], value[kCount], slope[kCount];
    loadPart(dy, at + j, wide, d);
    loadPart(x, at + j, wide, value);
    loadPart(scale, j, wide, slope);
    for (int e = 0; e < kCount; ++e) {
      total += d[e] * slope[e];
      dot += d[e] * slope[e] * (value[e] - centre);
    }
  });
  const float count = static_cast<float>(width);
  const float shift = kCentred ? joinBlock<Plus>(total) / count : 0.0F;
  const float steep = joinBlock<Plus>(dot) * factor * factor / count;
  forEachPart(width, [&](std::int64_t j, auto n) {
    constexpr int kCount = decltype(n)::value;
    float d[kCount], value[kCount], slope[kCount];
    loadPart(dy, at + j, wide, d);
    loadPart(x, at + j, wide, value);
    loadPart(scale, j, wide, slope);
    for (int e = 0; e < kCount; ++e) d[e] = factor * (d[e] * slope[e] - shift - (value[e] - centre) * steep);
    storePart(dx, at + j, wide, d);
  });
}

// scaleParts, biasParts?: [parts, width]: sums over the rows of each part. One thread per column and part.
template <bool kCentred>
SS_GLOBAL void parameterParts(Global<const float> dy, Global<const float> x, Global<const float> mean,
                              Global<const float> inverse, Global<float> scaleParts, Global<float> biasParts,
                              std::int64_t rows, std::int64_t width) {
  const std::int64_t columnBlocks = (width + gpu::blockSize() - 1) / gpu::blockSize();
  const std::int64_t part = gpu::blockIndex() / columnBlocks;
  const std::int64_t j = gpu::blockIndex() % columnBlocks * gpu::blockSize() + gpu::threadIndex();
  if (j >= width) return;
  const std::int64_t begin = part * kPartRows, end = begin + kPartRows < rows ? begin + kPartRows : rows;
  float dscale = 0, dbias = 0;
  for (std::int64_t row = begin; row < end; ++row) {
    const float d = dy[row * width + j], centre = kCentred ? static_cast<float>(mean[row]) : 0.0F;
    dscale += d * ((x[row * width + j] - centre) * inverse[row]);
    dbias += d;
  }
  if (scaleParts.present()) scaleParts[part * width + j] = dscale;
  if (biasParts.present()) biasParts[part * width + j] = dbias;
}

// y[width] = sums of parts: [count, width] in their order.
SS_GLOBAL void sumParts(Global<const float> parts, Global<float> y, std::int64_t count, std::int64_t width) {
  const std::int64_t j = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (j >= width) return;
  double sum = 0;
  for (std::int64_t part = 0; part < count; ++part) sum += static_cast<double>(parts[part * width + j]);
  y[j] = static_cast<float>(sum);
}

struct Rows {
  std::int64_t count = 0, width = 0;
};
Result<Rows> rowsOf(const KernelSpec& spec, const Dims& dims) {
  const auto axis = normalizeAxis(spec.attrs.integer("axis", -1), static_cast<std::int64_t>(dims.size()));
  if (!axis) return notTaken(spec, "an axis out of range");
  const std::span<const std::int64_t> all(dims);
  const auto at = static_cast<std::size_t>(*axis);
  return Rows{elementCount(all.first(at)), elementCount(all.subspan(at))};
}

// x, scale, bias? → y, mean?, inverse?; without bias and mean when not centred.
template <bool kCentred>
Result<std::unique_ptr<Kernel>> makeForward(const KernelSpec& spec) {
  constexpr std::size_t kInverse = kCentred ? 2 : 1;
  if (!takesInput(spec, 0) || !takesInput(spec, 1) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Rows rows, rowsOf(spec, spec.inputs[0].dims));
  const bool hasBias = kCentred && spec.inputPresent(2);
  if (elementCount(spec.inputs[1].dims) != rows.width || (hasBias && !takesOptional(spec, 2, rows.width)) ||
      !takesOptionalOutput(spec, kInverse, rows.count) || (kCentred && !takesOptionalOutput(spec, 1, rows.count)))
    return notTaken(spec, "parameters that repeat within the normalised axes");
  const float epsilon = spec.attrs.real("epsilon", 1e-5F);
  return makeLaunched("rows", [=](Launcher& gpu) {
    const auto bias = hasBias ? gpu.in<float>(2) : Global<const float>();
    const auto mean = kCentred ? gpu.out<float>(1) : Global<float>();
    const KernelCall& call = gpu.call();
    const void* const row = hasBias ? call.inputs[2].data : nullptr;
    return gpu.run("norm", gpu::function<normRows<kCentred>>, rows.count, threadsForRow(rows.width), gpu.in<float>(0),
                   gpu.in<float>(1), bias, gpu.out<float>(0), mean, gpu.out<float>(kInverse), rows.width, epsilon,
                   movesQuads(rows.width, {call.inputs[0].data, call.inputs[1].data, row, call.outputs[0].data}));
  });
}

// dy, x, scale, mean, inverse → dx?, dscale?, dbias?; without mean and dbias when not centred.
template <bool kCentred>
Result<std::unique_ptr<Kernel>> makeBackward(const KernelSpec& spec) {
  constexpr std::size_t kInverse = kCentred ? 4 : 3;
  for (std::size_t i = 0; i <= kInverse; ++i)
    if (!takesInput(spec, i)) return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Rows rows, rowsOf(spec, spec.inputs[1].dims));
  const std::int64_t total = rows.count * rows.width;
  if (!takesOptional(spec, 0, total) || !takesOptional(spec, 2, rows.width) || !takesOptional(spec, kInverse, rows.count) ||
      (kCentred && !takesOptional(spec, 3, rows.count)) || !takesOptionalOutput(spec, 0, total) ||
      !takesOptionalOutput(spec, 1, rows.width) || !takesOptionalOutput(spec, 2, rows.width))
    return notTaken(spec, "operands of other sizes");
  const bool dscale = spec.outputPresent(1), dbias = kCentred && spec.outputPresent(2), dx = spec.outputPresent(0);
  const std::int64_t parts = (rows.count + kPartRows - 1) / kPartRows;
  const std::size_t partBytes = static_cast<std::size_t>(parts * rows.width) * sizeof(float);
  const auto body = [=](Launcher& gpu) -> Status {
    const auto mean = [&] { return kCentred ? gpu.in<float>(3) : Global<const float>(); };
    if (dscale || dbias) {
      const auto scaleParts = dscale ? gpu.room<float>(0, parts * rows.width) : Global<float>();
      const auto biasParts = dbias ? gpu.room<float>(partBytes, parts * rows.width) : Global<float>();
      SS_TRY(gpu.run("norm gradient: parts", gpu::function<parameterParts<kCentred>>, parts * blocksFor(rows.width),
                     kThreads, gpu.in<float>(0), gpu.in<float>(1), mean(), gpu.in<float>(kInverse), scaleParts, biasParts,
                     rows.count, rows.width));
    }
    // dx may lie over dy or x, so it is written when the parts are done.
    if (dscale)
      SS_TRY(gpu.run("norm gradient: scale", gpu::function<sumParts>, blocksFor(rows.width), kThreads,
                     gpu.readRoom<float>(0, parts * rows.width), gpu.out<float>(1), parts, rows.width));
    if (dbias)
      SS_TRY(gpu.run("norm gradient: bias", gpu::function<sumParts>, blocksFor(rows.width), kThreads,
                     gpu.readRoom<float>(partBytes, parts * rows.width), gpu.out<float>(2), parts, rows.width));
    if (!dx) return {};
    const std::span<const TensorView> in = gpu.call().inputs;
    const bool wide = movesQuads(rows.width, {in[0].data, in[1].data, in[2].data, gpu.call().outputs[0].data});
    return gpu.run("norm gradient", gpu::function<normGradRows<kCentred>>, rows.count, threadsForRow(rows.width),
                   gpu.in<float>(0), gpu.in<float>(1), gpu.in<float>(2), mean(), gpu.in<float>(kInverse), gpu.out<float>(0),
                   rows.width, wide);
  };
  return makeLaunched("rows", body, 2 * partBytes);
}

}  // namespace norm_cu

Result<std::unique_ptr<Kernel>> makeNorm(const KernelSpec& spec) {
  return spec.op == "LayerNormalization" ? makeForward<true>(spec) : makeForward<false>(spec);
}
Result<std::unique_ptr<Kernel>> makeNormGrad(const KernelSpec& spec) {
  return spec.op == "LayerNormalizationGrad" ? makeBackward<true>(spec) : makeBackward<false>(spec);
}

}  // namespace stepscope::cuda
