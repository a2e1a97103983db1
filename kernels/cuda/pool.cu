// Pooling under windows and over whole channels, and its gradients. Gradients gather: a thread adds up what the windows that
// see its element give it, in the order of their taps, so nothing is added atomically. Means and maxima over whole channels
// are reductions (reduce.cu).
#include <limits>

#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/support.h"
#include "kernels/cuda/windows.h"

namespace stepscope::cuda {
inline namespace pool_cu {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr std::int64_t kNowhere = std::numeric_limits<std::int64_t>::max();

// How MaxPool counts the positions of a channel.
struct Counting {
  Windows windows;
  bool columnMajor = false;

  // The number of row-major position `i`.
  SS_DEVICE std::int64_t of(std::int64_t i) const {
    if (!columnMajor) return i;
    std::int64_t result = 0, stride = windows.inSize;
    for (int a = windows.rank - 1; a >= 0; --a) {
      stride /= windows.in[a];
      result += i % windows.in[a] * stride;
      i /= windows.in[a];
    }
    return result;
  }
};

// x: [channels, in] → y: [channels, out], indices?: where in x it was found, the first of equal ones; -1 and the lowest
// number for a window in the padding. One thread per element of y.
SS_GLOBAL void maxUnderWindows(Global<const float> x, Global<float> y, Global<std::int64_t> indices, Counting counting,
                               std::int64_t total) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= total) return;
  const Windows& w = counting.windows;
  const std::int64_t channel = i / w.outSize, o = i % w.outSize;
  std::int64_t place = -1;
  float best = kLowest;
  for (std::int64_t t = 0; t < w.taps; ++t) {
    const std::int64_t at = w.inputAt(o, t);
    if (at < 0) continue;
    const float value = x[channel * w.inSize + at];
    if (place < 0 || value > best || (value != value && best == best)) {
      place = at;
      best = value;
    }
  }
  y[i] = best;
  if (indices.present()) indices[i] = place < 0 ? -1 : channel * w.inSize + counting.of(place);
}

// dy, indices: [channels, out] → dx: [channels, in]. One thread per element of dx; those below `outputs` also look whether
// their index lies under its window.
SS_GLOBAL void maxGradient(Global<const float> dy, Global<const std::int64_t> indices, Global<float> dx, Counting counting,
                           std::int64_t inputs, std::int64_t outputs, Complaint complaint) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  const Windows& w = counting.windows;
  if (i < outputs) {
    const std::int64_t index = indices[i], channel = i / w.outSize * w.inSize;
    bool under = index == -1;
    for (std::int64_t t = 0; t < w.taps && !under; ++t) {
      const std::int64_t at = w.inputAt(i % w.outSize, t);
      under = at >= 0 && channel + counting.of(at) == index;
    }
    if (!under) complaint.raise(i, index);
  }
  if (i >= inputs) return;
  const std::int64_t channel = i / w.inSize, position = i % w.inSize;
  const std::int64_t own = channel * w.inSize + counting.of(position);
  double sum = 0;
  for (std::int64_t t = w.taps - 1; t >= 0; --t) {  // windows in their order
    const std::int64_t o = w.outputAt(position, t);
    if (o >= 0 && indices[channel * w.outSize + o] == own) sum += static_cast<double>(dy[channel * w.outSize + o]);
  }
  dx[i] = static_cast<float>(sum);
}

// x: [channels, in] → y: [channels, out]. One thread per element of y.
SS_GLOBAL void meanUnderWindows(Global<const float> x, Global<float> y, Windows w, bool padded, std::int64_t total) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= total) return;
  const std::int64_t channel = i / w.outSize, o = i % w.outSize, count = w.elementsAt(o, padded);
  double sum = 0;
  for (std::int64_t t = 0; t < w.taps; ++t) {
    const std::int64_t at = w.inputAt(o, t);
    if (at >= 0) sum += static_cast<double>(x[channel * w.inSize + at]);
  }
  y[i] = count == 0 ? 0.0F : static_cast<float>(sum / static_cast<double>(count));
}

// dy: [channels, out] → dx: [channels, in]. One thread per element of dx.
SS_GLOBAL void meanGradient(Global<const float> dy, Global<float> dx, Windows w, bool padded, std::int64_t total) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= total) return;
  const std::int64_t channel = i / w.inSize;
  double sum = 0;
  for (std::int64_t t = w.taps - 1; t >= 0; --t) {
    const std::int64_t o = w.outputAt(i % w.inSize, t);
    if (o < 0) continue;
    sum += static_cast<double>(dy[channel * w.outSize + o]) / static_cast<double>(w.elementsAt(o, padded));
  }
  dx[i] = static_cast<float>(sum);
}

// dy: [channels], x: [channels, size] → dx: dy at the first maximum of the channel, else 0. One block per channel.
SS_GLOBAL void channelMaxGradient(Global<const float> dy, Global<const float> x, Global<float> dx, std::int64_t size) {
  const std::int64_t channel = gpu::blockIndex() * size;
  const int thread = gpu::threadIndex(), threads = gpu::blockSize();
  float best = kLowest;
  for (std::int64_t j = thread; j < size; j += threads) best = Larger::of(best, static_cast<float>(x[channel + j]));
  best = joinBlock<Larger>(best);
  std::int64_t first = kNowhere;
  for (std::int64_t j = thread; j < size && first == kNowhere; j += threads) {
    const float value = x[channel + j];
    if (value == best || (value != value && best != best)) first = j;
  }
  first = joinBlock<Smaller>(first);
  const float slope = dy[gpu::blockIndex()];
  for (std::int64_t j = thread; j < size; j += threads) dx[channel + j] = j == first ? slope : 0.0F;
}

// Windows from x [N, C, in] to y [N, C, out].
Result<Windows> poolOf(const KernelSpec& spec, const Dims& x, const Dims& y) {
  if (x.size() < 2 || y.size() != x.size() || x[0] != y[0] || x[1] != y[1]) return notTaken(spec, "shapes that do not fit");
  const Dims in(x.begin() + 2, x.end()), out(y.begin() + 2, y.end());
  if (!spec.attrs.has("kernel_shape")) return notTaken(spec, "no extents of a window");
  SS_ASSIGN(Window window, parseWindow(spec.attrs, in.size()));
  for (std::size_t a = 0; a < in.size(); ++a) {
    SS_ASSIGN(const std::int64_t extent, windowOutput(window, a, in[a]));
    if (extent != out[a]) return notTaken(spec, "a result that does not follow from the windows");
  }
  resolvePads(window, in, out);
  const auto windows = windowsOf(window, in, out);
  if (!windows) return notTaken(spec, "more than three spatial axes");
  return *windows;
}

Counting countingOf(const KernelSpec& spec, const Windows& windows) {
  return {windows, spec.attrs.integer("storage_order", 0) != 0};
}

}  // namespace pool_cu

Result<std::unique_ptr<Kernel>> makeMaxPool(const KernelSpec& spec) {
  if (spec.inputs.empty() || !takesInput(spec, 0) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  const std::int64_t total = elementCount(spec.outputs[0].dims);
  if (!takesOptionalOutput(spec, 1, total, DType::kI64)) return notTaken(spec, "indices of another size");
  SS_ASSIGN(const Windows windows, poolOf(spec, spec.inputs[0].dims, spec.outputs[0].dims));
  const Counting counting = countingOf(spec, windows);
  return makeLaunched("windows", [=](Launcher& gpu) {
    return gpu.run("max pool", gpu::function<maxUnderWindows>, blocksFor(total), kThreads, gpu.in<float>(0),
                   gpu.out<float>(0), gpu.out<std::int64_t>(1), counting, total);
  });
}

// dy, indices → dx; attributes of the MaxPool
Result<std::unique_ptr<Kernel>> makeMaxPoolGrad(const KernelSpec& spec) {
  if (spec.inputs.size() < 2 || !takesInput(spec, 0) || !takesInput(spec, 1, DType::kI64) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  const std::int64_t outputs = elementCount(spec.inputs[0].dims), inputs = elementCount(spec.outputs[0].dims);
  if (elementCount(spec.inputs[1].dims) != outputs) return notTaken(spec, "indices of another size");
  SS_ASSIGN(const Windows windows, poolOf(spec, spec.outputs[0].dims, spec.inputs[0].dims));
  const Counting counting = countingOf(spec, windows);
  const std::string op = spec.op;
  return makeLaunched("windows", [=](Launcher& gpu) {
    const Complaint complaint = gpu.complaint([=](std::int64_t position, std::int64_t value) {
      return invalid(op + ": index " + std::to_string(value) + " at position " + std::to_string(position) +
                     "; expected one under its window, of 0.." + std::to_string(inputs - 1))
          .value();
    });
    return gpu.run("max pool gradient", gpu::function<maxGradient>, blocksFor(std::max(inputs, outputs)), kThreads,
                   gpu.in<float>(0), gpu.in<std::int64_t>(1), gpu.out<float>(0), counting, inputs, outputs, complaint);
  });
}

Result<std::unique_ptr<Kernel>> makeAveragePool(const KernelSpec& spec) {
  if (spec.inputs.empty() || !takesInput(spec, 0) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Windows windows, poolOf(spec, spec.inputs[0].dims, spec.outputs[0].dims));
  const std::int64_t total = elementCount(spec.outputs[0].dims);
  const bool padded = spec.attrs.integer("count_include_pad", 0) != 0;
  return makeLaunched("windows", [=](Launcher& gpu) {
    return gpu.run("average pool", gpu::function<meanUnderWindows>, blocksFor(total), kThreads, gpu.in<float>(0),
                   gpu.out<float>(0), windows, padded, total);
  });
}

// dy → dx; attributes of the AveragePool
Result<std::unique_ptr<Kernel>> makeAveragePoolGrad(const KernelSpec& spec) {
  if (spec.inputs.empty() || !takesInput(spec, 0) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Windows windows, poolOf(spec, spec.outputs[0].dims, spec.inputs[0].dims));
  const std::int64_t total = elementCount(spec.outputs[0].dims);
  const bool padded = spec.attrs.integer("count_include_pad", 0) != 0;
  return makeLaunched("windows", [=](Launcher& gpu) {
    return gpu.run("average pool gradient", gpu::function<meanGradient>, blocksFor(total), kThreads, gpu.in<float>(0),
                   gpu.out<float>(0), windows, padded, total);
  });
}

// dy: [N, C, 1…], x: [N, C, …] → dx
Result<std::unique_ptr<Kernel>> makeGlobalMaxPoolGrad(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesInput(spec, 1) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  const Dims& x = spec.inputs[1].dims;
  const std::int64_t channels = elementCount(spec.inputs[0].dims);
  if (x.size() < 2 || channels != x[0] * x[1] || elementCount(spec.outputs[0].dims) != elementCount(x))
    return notTaken(spec, "shapes that do not fit");
  const std::int64_t size = elementCount(x) / channels;
  return makeLaunched("channels", [=](Launcher& gpu) {
    return gpu.run("global max pool gradient", gpu::function<channelMaxGradient>, channels, threadsForRow(size),
                   gpu.in<float>(0), gpu.in<float>(1), gpu.out<float>(0), size);
  });
}

}  // namespace stepscope::cuda
