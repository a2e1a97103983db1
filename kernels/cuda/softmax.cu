// Softmax, LogSoftmax and their gradients: along the last axis one block per row, along another one thread per line, so that
// neighbouring threads read neighbouring elements. The softmax of masked scores is along the last axis.
#include <limits>

#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/row_parts.h"
#include "kernels/cuda/support.h"
#include "kernels/cuda/walk.h"

namespace stepscope::cuda {
inline namespace softmax_cu {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// x, y: [rows, width]; y may lie over x. One block per row. wide: as loadPart has it.
template <bool kLog>
SS_GLOBAL void softmaxRows(Global<const float> x, Global<float> y, std::int64_t width, bool wide) {
  const std::int64_t row = gpu::blockIndex() * width;
  float max = kLowest;
  forEachPart(width, [&](std::int64_t j, auto n) {
    float part[decltype(n)::value];
    loadPart(x, row + j, wide, part);
    for (const float one : part) max = Larger::of(max, one);
  });
  max = joinBlock<Larger>(max);
  float sum = 0;
  forEachPart(width, [&](std::int64_t j, auto n) {
    float part[decltype(n)::value];
    loadPart(x, row + j, wide, part);
    for (const float one : part) sum += expf(one - max);
  });
  sum = joinBlock<Plus>(sum);
  const float scale = 1.0F / sum, logSum = logf(sum);
  forEachPart(width, [&](std::int64_t j, auto n) {
    float part[decltype(n)::value];
    loadPart(x, row + j, wide, part);
    for (float& one : part) one = kLog ? one - max - logSum : expf(one - max) * scale;
    storePart(y, row + j, wide, part);
  });
}

// dy, y, dx: [rows, width]; dx may lie over dy or y.
template <bool kLog>
SS_GLOBAL void softmaxGradRows(Global<const float> dy, Global<const float> y, Global<float> dx, std::int64_t width,
                               bool wide) {
  const std::int64_t row = gpu::blockIndex() * width;
  float sum = 0;
  forEachPart(width, [&](std::int64_t j, auto n) {
    constexpr int kCount = decltype(n)::value;
    float d[kCount], v[kCount];
    loadPart(dy, row + j, wide, d);
    loadPart(y, row + j, wide, v);
    for (int e = 0; e < kCount; ++e) sum += d[e] * (kLog ? 1.0F : v[e]);
  });
  sum = joinBlock<Plus>(sum);
  forEachPart(width, [&](std::int64_t j, auto n) {
    constexpr int kCount = decltype(n)::value;
    float d[kCount], v[kCount];
    loadPart(dy, row + j, wide, d);
    loadPart(y, row + j, wide, v);
    for (int e = 0; e < kCount; ++e) d[e] = kLog ? d[e] - expf(v[e]) * sum : v[e] * (d[e] - sum);
    storePart(dx, row + j, wide, d);
  });
}

// x, y: [outer, width, inner]; y may lie over x. One thread per line of `width` elements.
template <bool kLog>
SS_GLOBAL void softmaxLines(Global<const float> x, Global<float> y, std::int64_t width, std::int64_t inner,
                            std::int64_t lines) {
  const std::int64_t line = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (line >= lines) return;
  const std::int64_t first = line / inner * width * inner + line % inner, end = first + width * inner;
  float max = kLowest, sum = 0;
  for (std::int64_t i = first; i < end; i += inner) max = Larger::of(max, static_cast<float>(x[i]));
  for (std::int64_t i = first; i < end; i += inner) sum += expf(x[i] - max);
  const float scale = 1.0F / sum, logSum = logf(sum);
  for (std::int64_t i = first; i < end; i += inner) {
    const float distance = x[i] - max;
    y[i] = kLog ? distance - logSum : expf(distance) * scale;
  }
}

// dy, y, dx: [outer, width, inner]; dx may lie over dy or y. One thread per line.
template <bool kLog>
SS_GLOBAL void softmaxGradLines(Global<const float> dy, Global<const float> y, Global<float> dx, std::int64_t width,
                                std::int64_t inner, std::int64_t lines) {
  const std::int64_t line = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (line >= lines) return;
  const std::int64_t first = line / inner * width * inner + line % inner, end = first + width * inner;
  float sum = 0;
  for (std::int64_t i = first; i < end; i += inner) sum += dy[i] * (kLog ? 1.0F : static_cast<float>(y[i]));
  for (std::int64_t i = first; i < end; i += inner) {
    const float d = dy[i], v = y[i];
    dx[i] = kLog ? d - expf(v) * sum : v * (d - sum);
  }
}

// The score of element `at`, with its mask: added, or put in its place where the mask says so.
struct Masking {
  Walk<1> walk;  // of the mask
  bool bools = false, invert = false;
  float fill = 0;
};

// x, y: [rows, width]; the mask broadcasts to them; y may lie over x. Masks, which are of any strides, are read one by one.
SS_GLOBAL void maskedSoftmaxRows(Global<const float> x, Global<const float> added, Global<const std::uint8_t> kept,
                                 Masking masking, Global<float> y, std::int64_t width, bool wide) {
  const std::int64_t row = gpu::blockIndex() * width;
  float max = kLowest;
  forEachPart(width, [&](std::int64_t j, auto n) {
    constexpr int kCount = decltype(n)::value;
    float score[kCount];
    loadPart(x, row + j, wide, score);
    for (int e = 0; e < kCount; ++e) {
      std::int64_t at[1];
      masking.walk.offsets(row + j + e, at);
      if (!masking.bools)
        score[e] += added[at[0]];
      else if ((static_cast<std::uint8_t>(kept[at[0]]) != 0) == masking.invert)
        score[e] = masking.fill;
      max = Larger::of(max, score[e]);
    }
    storePart(y, row + j, wide, score);  // read again by this thread alone
  });
  max = joinBlock<Larger>(max);
  float sum = 0;
  forEachPart(width, [&](std::int64_t j, auto n) {
    for (int e = 0; e < decltype(n)::value; ++e) sum += expf(y[row + j + e] - max);
  });
  const float scale = 1.0F / joinBlock<Plus>(sum);
  forEachPart(width, [&](std::int64_t j, auto n) {
    constexpr int kCount = decltype(n)::value;
    float part[kCount];
    for (int e = 0; e < kCount; ++e) part[e] = expf(y[row + j + e] - max) * scale;
    storePart(y, row + j, wide, part);
  });
}

// [count, width, inner]
struct Rows {
  std::int64_t count = 1, width = 1, inner = 1;
};
Result<Rows> rowsOf(const KernelSpec& spec, const Dims& dims) {
  const auto axis = normalizeAxis(spec.attrs.integer("axis", -1), static_cast<std::int64_t>(dims.size()));
  if (!axis) return notTaken(spec, "an axis out of range");
  const auto a = static_cast<std::size_t>(*axis);
  const std::span<const std::int64_t> all(dims);
  return Rows{elementCount(all.first(a)), dims[a], elementCount(all.subspan(a + 1))};
}

}  // namespace softmax_cu

Result<std::unique_ptr<Kernel>> makeSoftmax(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0)) return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Rows rows, rowsOf(spec, spec.inputs[0].dims));
  const bool log = spec.op == "LogSoftmax";
  if (rows.inner > 1) {
    const auto lines = log ? gpu::function<softmaxLines<true>> : gpu::function<softmaxLines<false>>;
    const std::int64_t count = rows.count * rows.inner;
    return makeLaunched("lines", [=](Launcher& gpu) {
      return gpu.run("softmax", lines, blocksFor(count), kThreads, gpu.in<float>(0), gpu.out<float>(0), rows.width,
                     rows.inner, count);
    });
  }
  const auto kernel = log ? gpu::function<softmaxRows<true>> : gpu::function<softmaxRows<false>>;
  return makeLaunched("rows", [=](Launcher& gpu) {
    const bool wide = movesQuads(rows.width, {gpu.call().inputs[0].data, gpu.call().outputs[0].data});
    return gpu.run("softmax", kernel, rows.count, threadsForRow(rows.width), gpu.in<float>(0), gpu.out<float>(0), rows.width,
                   wide);
  });
}

Result<std::unique_ptr<Kernel>> makeSoftmaxGrad(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesInput(spec, 1) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  if (elementCount(spec.inputs[0].dims) != elementCount(spec.inputs[1].dims)) return notTaken(spec, "operands of two sizes");
  SS_ASSIGN(const Rows rows, rowsOf(spec, spec.inputs[1].dims));
  const bool log = spec.op == "LogSoftmaxGrad";
  if (rows.inner > 1) {
    const auto lines = log ? gpu::function<softmaxGradLines<true>> : gpu::function<softmaxGradLines<false>>;
    const std::int64_t count = rows.count * rows.inner;
    return makeLaunched("lines", [=](Launcher& gpu) {
      return gpu.run("softmax gradient", lines, blocksFor(count), kThreads, gpu.in<float>(0), gpu.in<float>(1),
                     gpu.out<float>(0), rows.width, rows.inner, count);
    });
  }
  const auto kernel = log ? gpu::function<softmaxGradRows<true>> : gpu::function<softmaxGradRows<false>>;
  return makeLaunched("rows", [=](Launcher& gpu) {
    const KernelCall& call = gpu.call();
    const bool wide = movesQuads(rows.width, {call.inputs[0].data, call.inputs[1].data, call.outputs[0].data});
    return gpu.run("softmax gradient", kernel, rows.count, threadsForRow(rows.width), gpu.in<float>(0), gpu.in<float>(1),
                   gpu.out<float>(0), rows.width, wide);
  });
}

Result<std::unique_ptr<Kernel>> makeMaskedSoftmax(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0) || (!takesInput(spec, 1) && !takesInput(spec, 1, DType::kBool)))
    return notTaken(spec, "elements other than float32");
  const Dims &dims = spec.inputs[0].dims, &mask = spec.inputs[1].dims;
  if (dims.empty() || mask.size() > dims.size()) return notTaken(spec, "a single number, or a mask of higher rank");
  Masking masking;
  masking.bools = spec.inputs[1].dtype == DType::kBool;
  masking.invert = spec.attrs.integer("invert", 0) != 0;
  masking.fill = spec.attrs.real("fill", kLowest);
  const Dims own = rowMajorStrides(mask);
  const std::size_t lead = dims.size() - mask.size();
  for (std::size_t a = 0; a < dims.size(); ++a) {
    const std::int64_t extent = a < lead ? 1 : mask[a - lead];
    if (extent != 1 && extent != dims[a]) return notTaken(spec, "a mask that does not broadcast");
    const std::int64_t stride[1] = {extent == 1 ? 0 : own[a - lead]};
    if (!masking.walk.add(dims[a], stride)) return notTaken(spec, "more than eight axes");
  }
  const std::int64_t width = dims.back(), rows = elementCount(dims) / width;
  return makeLaunched("rows", [=](Launcher& gpu) {
    const auto added = masking.bools ? Global<const float>() : gpu.in<float>(1);
    const auto kept = masking.bools ? gpu.in<std::uint8_t>(1) : Global<const std::uint8_t>();
    return gpu.run("masked softmax", gpu::function<maskedSoftmaxRows>, rows, threadsForRow(width), gpu.in<float>(0), added,
                   kept, masking, gpu.out<float>(0), width,
                   movesQuads(width, {gpu.call().inputs[0].data, gpu.call().outputs[0].data}));
  });
}

}  // namespace stepscope::cuda
