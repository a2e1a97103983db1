// Softmax, LogSoftmax, their gradients and the softmax of masked scores, along the last axis: one block per row.
#include <limits>

#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/support.h"
#include "kernels/cuda/walk.h"

namespace stepscope::cuda {
inline namespace softmax_cu {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// x, y: [rows, width]; y may lie over x. One block per row.
template <bool kLog>
SS_GLOBAL void softmaxRows(Global<const float> x, Global<float> y, std::int64_t width) {
  const std::int64_t row = gpu::blockIndex() * width;
  const int thread = gpu::threadIndex(), threads = gpu::blockSize();
  float max = kLowest;
  for (std::int64_t j = thread; j < width; j += threads) max = Larger::of(max, static_cast<float>(x[row + j]));
  max = joinBlock<Larger>(max);
  float sum = 0;
  for (std::int64_t j = thread; j < width; j += threads) sum += expf(x[row + j] - max);
  sum = joinBlock<Plus>(sum);
  const float scale = 1.0F / sum, logSum = logf(sum);
  for (std::int64_t j = thread; j < width; j += threads) {
    const float distance = x[row + j] - max;
    y[row + j] = kLog ? distance - logSum : expf(distance) * scale;
  }
}

// dy, y, dx: [rows, width]; dx may lie over dy or y.
template <bool kLog>
SS_GLOBAL void softmaxGradRows(Global<const float> dy, Global<const float> y, Global<float> dx, std::int64_t width) {
  const std::int64_t row = gpu::blockIndex() * width;
  const int thread = gpu::threadIndex(), threads = gpu::blockSize();
  float sum = 0;
  for (std::int64_t j = thread; j < width; j += threads) sum += dy[row + j] * (kLog ? 1.0F : static_cast<float>(y[row + j]));
  sum = joinBlock<Plus>(sum);
  for (std::int64_t j = thread; j < width; j += threads) {
    const float d = dy[row + j], v = y[row + j];
    dx[row + j] = kLog ? d - expf(v) * sum : v * (d - sum);
  }
}

// The score of element `at`, with its mask: added, or put in its place where the mask says so.
struct Masking {
  Walk<1> walk;  // of the mask
  bool bools = false, invert = false;
  float fill = 0;
};

// x, y: [rows, width]; the mask broadcasts to them; y may lie over x.
SS_GLOBAL void maskedSoftmaxRows(Global<const float> x, Global<const float> added, Global<const std::uint8_t> kept,
                                 Masking masking, Global<float> y, std::int64_t width) {
  const std::int64_t row = gpu::blockIndex() * width;
  const int thread = gpu::threadIndex(), threads = gpu::blockSize();
  float max = kLowest;
  for (std::int64_t j = thread; j < width; j += threads) {
    std::int64_t at[1];
    masking.walk.offsets(row + j, at);
    float score = x[row + j];
    if (!masking.bools)
      score += added[at[0]];
    else if ((static_cast<std::uint8_t>(kept[at[0]]) != 0) == masking.invert)
      score = masking.fill;
    y[row + j] = score;  // read again by this thread alone
    max = Larger::of(max, score);
  }
  max = joinBlock<Larger>(max);
  float sum = 0;
  for (std::int64_t j = thread; j < width; j += threads) sum += expf(y[row + j] - max);
  const float scale = 1.0F / joinBlock<Plus>(sum);
  for (std::int64_t j = thread; j < width; j += threads) y[row + j] = expf(y[row + j] - max) * scale;
}

struct Rows {
  std::int64_t count = 1, width = 1;
};
Result<Rows> rowsOf(const KernelSpec& spec, const Dims& dims) {
  const auto rank = static_cast<std::int64_t>(dims.size());
  const auto axis = normalizeAxis(spec.attrs.integer("axis", -1), rank);
  if (!axis) return notTaken(spec, "an axis out of range");
  for (std::int64_t a = *axis + 1; a < rank; ++a)
    if (dims[static_cast<std::size_t>(a)] != 1) return notTaken(spec, "an axis other than the last");
  const std::int64_t width = dims[static_cast<std::size_t>(*axis)];
  return Rows{elementCount(dims) / width, width};
}

}  // namespace softmax_cu

Result<std::unique_ptr<Kernel>> makeSoftmax(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0)) return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Rows rows, rowsOf(spec, spec.inputs[0].dims));
  const auto kernel = spec.op == "LogSoftmax" ? gpu::function<softmaxRows<true>> : gpu::function<softmaxRows<false>>;
  return makeLaunched("rows", [=](Launcher& gpu) {
    return gpu.run("softmax", kernel, rows.count, threadsForRow(rows.width), gpu.in<float>(0), gpu.out<float>(0),
                   rows.width);
  });
}

Result<std::unique_ptr<Kernel>> makeSoftmaxGrad(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesInput(spec, 1) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  if (elementCount(spec.inputs[0].dims) != elementCount(spec.inputs[1].dims)) return notTaken(spec, "operands of two sizes");
  SS_ASSIGN(const Rows rows, rowsOf(spec, spec.inputs[1].dims));
  const auto kernel =
      spec.op == "LogSoftmaxGrad" ? gpu::function<softmaxGradRows<true>> : gpu::function<softmaxGradRows<false>>;
  return makeLaunched("rows", [=](Launcher& gpu) {
    return gpu.run("softmax gradient", kernel, rows.count, threadsForRow(rows.width), gpu.in<float>(0), gpu.in<float>(1),
                   gpu.out<float>(0), rows.width);
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
                   kept, masking, gpu.out<float>(0), width);
  });
}

}  // namespace stepscope::cuda
