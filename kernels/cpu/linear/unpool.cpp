// MaxUnpool and its gradient where the indices count the positions of the result and stay within their channel, as those of
// MaxPool do. Others are left to the reference kernel, which names mistakes.
#include <atomic>

#include "kernels/cpu/linear/linear_kernels.h"
#include "kernels/cpu/loops/support.h"
#include "kernels/window.h"

namespace stepscope::cpu {
namespace {

struct Places {
  std::int64_t channels = 0, small = 0, large = 0;  // elements of a channel on both sides
};

Result<Places> placesOf(const KernelSpec& spec, const OperandSpec& x, const OperandSpec& y) {
  if (!takes(x) || !takes(y) || x.dims.size() < 3 || y.dims.size() != x.dims.size() || x.dims[0] != y.dims[0] ||
      x.dims[1] != y.dims[1] || !takesInput(spec, 1, DType::kI64) || spec.inputs[1].dims != x.dims)
    return notTaken(spec, "elements other than float32, or indices of another size");
  const auto window = parseWindow(spec.attrs, x.dims.size() - 2);
  if (!window) return notTaken(spec, "no window");
  for (std::size_t i = 0; i + 2 < x.dims.size(); ++i) {
    const WindowAxis& a = window->axes[i];
    if ((x.dims[i + 2] - 1) * a.stride + a.kernel - a.padBegin - a.padEnd != y.dims[i + 2])
      return notTaken(spec, "a result larger than the window implies");
  }
  const std::int64_t channels = x.dims[0] * x.dims[1];
  return Places{channels, elementCount(x.dims) / channels, elementCount(y.dims) / channels};
}

// move(element of the small side, element of the large side) for all; false: an index that leaves its channel.
template <typename Start, typename Move>
bool forEachPlace(const Places& p, const std::int64_t* indices, int threads, Start&& start, Move&& move) {
  std::atomic<bool> stray = false;
  parallelRows(p.channels, p.small, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      start(c);
      for (std::int64_t i = c * p.small; i < (c + 1) * p.small; ++i) {
        if (indices[i] < c * p.large || indices[i] >= (c + 1) * p.large) {
          stray = true;
          return;
        }
        move(i, indices[i]);
      }
    }
  });
  return !stray;
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeMaxUnpool(const KernelSpec& spec) {
  if (spec.inputs.size() < 2) return notTaken(spec, "no indices");
  SS_ASSIGN(const Places p, placesOf(spec, spec.inputs[0], spec.outputs[0]));
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  return makeBodyKernel("openmp scatter", [=, threads = spec.threads](const KernelCall& call) -> Status {
    const float* x = input(call, 0);
    float* y = output(call, 0);
    const bool good = forEachPlace(
        p, input<std::int64_t>(call, 1), threads, [&](std::int64_t c) { std::fill_n(y + c * p.large, p.large, 0.0F); },
        [&](std::int64_t i, std::int64_t place) { y[place] = x[i]; });
    return good ? Status{} : reference->run(call);
  });
}

// dy, indices → dx
Result<std::unique_ptr<Kernel>> makeMaxUnpoolGrad(const KernelSpec& spec) {
  if (spec.inputs.size() < 2) return notTaken(spec, "no indices");
  SS_ASSIGN(const Places p, placesOf(spec, spec.outputs[0], spec.inputs[0]));
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  return makeBodyKernel("openmp gather", [=, threads = spec.threads](const KernelCall& call) -> Status {
    const float* dy = input(call, 0);
    float* dx = output(call, 0);
    const bool good = forEachPlace(
        p, input<std::int64_t>(call, 1), threads, [](std::int64_t) {},
        [&](std::int64_t i, std::int64_t place) { dx[i] = dy[place]; });
    return good ? Status{} : reference->run(call);
  });
}

}  // namespace stepscope::cpu
