// Pad (constant, reflect, edge, wrap) and its gradient, which adds every padded element back to where it came from: one of
// them with a constant, several else, in their order (segments.h).
#include "kernels/cuda/segments.h"
#include "kernels/cuda/walk.h"
#include "kernels/reference/movement/common.h"
#include "kernels/reference/movement/pad_mode.h"

namespace stepscope::cuda {
inline namespace pad_cu {

using reference::PadMode;

// Extents of the data and of what it is padded to; negative pads take away.
struct Padding {
  int rank = 0;
  std::int64_t data[kMostAxes] = {}, padded[kMostAxes] = {}, begin[kMostAxes] = {};
  PadMode mode = PadMode::kConstant;
  std::int64_t dataCount = 1, paddedCount = 1;

  // Where position i of an axis comes from, counted from the first of the data; -1: the constant (as reference::padSource).
  SS_DEVICE std::int64_t along(std::int64_t i, std::int64_t extent) const {
    if (i >= 0 && i < extent) return i;
    if (mode == PadMode::kConstant) return -1;
    if (mode == PadMode::kEdge) return i < 0 ? 0 : extent - 1;
    if (mode == PadMode::kWrap) return (i % extent + extent) % extent;
    const std::int64_t period = 2 * (extent - 1);
    if (period == 0) return 0;
    const std::int64_t r = (i % period + period) % period;
    return r < extent ? r : period - r;
  }
  // The element of the data that padded element `i` is a copy of; -1: the constant.
  SS_DEVICE std::int64_t source(std::int64_t i) const {
    std::int64_t place = 0, stride = 1;
    for (int a = rank - 1; a >= 0; --a) {
      const std::int64_t at = along(i % padded[a] - begin[a], data[a]);
      if (at < 0) return -1;
      place += at * stride;
      stride *= data[a];
      i /= padded[a];
    }
    return place;
  }
  // The padded element at the place of element `i` of the data; -1: it was taken away.
  SS_DEVICE std::int64_t target(std::int64_t i) const {
    std::int64_t place = 0, stride = 1;
    for (int a = rank - 1; a >= 0; --a) {
      const std::int64_t at = i % data[a] + begin[a];
      if (at < 0 || at >= padded[a]) return -1;
      place += at * stride;
      stride *= padded[a];
      i /= data[a];
    }
    return place;
  }
};

// x → y; fill: [1] or absent, zero. One thread per element of y.
template <typename Word>
SS_GLOBAL void padElements(Global<const Word> x, Global<const Word> fill, Global<Word> y, Padding padding) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= padding.paddedCount) return;
  const std::int64_t source = padding.source(i);
  Word word{};
  if (source >= 0)
    word = x[source];
  else if (fill.present())
    word = fill[0];
  y[i] = word;
}

// dy → dx of a constant padding. One thread per element of dx.
SS_GLOBAL void unpadElements(Global<const float> dy, Global<float> dx, Padding padding) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= padding.dataCount) return;
  const std::int64_t target = padding.target(i);
  dx[i] = target < 0 ? 0.0F : static_cast<float>(dy[target]);
}

// keys[padded]: the element of the data that each is a copy of.
SS_GLOBAL void writeSources(Global<std::int64_t> keys, Padding padding) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= padding.paddedCount) return;
  const std::int64_t source = padding.source(i);
  keys[i] = source < 0 ? padding.dataCount : source;
}

// Pads are input `pads`, axes input pads + `axesAfter`.
Result<Padding> paddingOf(const KernelSpec& spec, const Dims& data, const Dims& padded, std::size_t pads, std::size_t axes) {
  if (data.size() != padded.size() || data.size() > kMostAxes) return notTaken(spec, "shapes of other ranks");
  if (pads >= spec.inputs.size() || !spec.inputs[pads].constant.valid() ||
      (spec.inputPresent(axes) && !spec.inputs[axes].constant.valid()))
    return notTaken(spec, "pads that are not constant");
  Padding p;
  SS_ASSIGN(p.mode, reference::padMode(spec));
  p.rank = static_cast<int>(data.size());
  p.dataCount = elementCount(data);
  p.paddedCount = elementCount(padded);
  const auto given = intElements(spec.inputs[pads].constant.view());
  std::vector<std::int64_t> along;
  if (spec.inputPresent(axes))
    along = intElements(spec.inputs[axes].constant.view());
  else
    for (std::int64_t a = 0; a < p.rank; ++a) along.push_back(a);
  if (given.size() != 2 * along.size()) return notTaken(spec, "another number of pads");
  std::array<std::int64_t, kMostAxes> end{};
  for (std::size_t i = 0; i < along.size(); ++i) {
    const auto axis = normalizeAxis(along[i], p.rank);
    if (!axis) return notTaken(spec, "an axis out of range");
    p.begin[*axis] = given[i];
    end[static_cast<std::size_t>(*axis)] = given[along.size() + i];
  }
  for (std::size_t a = 0; a < data.size(); ++a) {
    p.data[a] = data[a];
    p.padded[a] = padded[a];
    if (data[a] + p.begin[a] + end[a] != padded[a]) return notTaken(spec, "pads that lead to another shape");
  }
  return p;
}

}  // namespace pad_cu

// x, pads, constant?, axes? → y
Result<std::unique_ptr<Kernel>> makePad(const KernelSpec& spec) {
  if (spec.inputs.size() < 2 || spec.outputs.size() != 1) return notTaken(spec, "too few operands");
  const DType dtype = spec.inputs[0].dtype;
  if (dtype == DType::kString || !takesInput(spec, 0, dtype) || !takesOutput(spec, 0, dtype) ||
      !takesOptional(spec, 2, 1, dtype))
    return notTaken(spec, "operands of several types");
  SS_ASSIGN(const Padding padding, paddingOf(spec, spec.inputs[0].dims, spec.outputs[0].dims, 1, 3));
  const auto makeAs = [&]<typename Word>(Word) {
    return makeLaunched("pad", [=](Launcher& gpu) {
      return gpu.run("pad", gpu::function<padElements<Word>>, blocksFor(padding.paddedCount), kThreads, gpu.in<Word>(0),
                     gpu.in<Word>(2), gpu.out<Word>(0), padding);
    });
  };
  switch (dtypeSize(dtype)) {
    case 1: return makeAs(std::uint8_t{});
    case 2: return makeAs(std::uint16_t{});
    case 4: return makeAs(std::uint32_t{});
    default: return makeAs(std::uint64_t{});
  }
}

// dy, shape of x, pads, axes? → dx
Result<std::unique_ptr<Kernel>> makePadGrad(const KernelSpec& spec) {
  if (spec.inputs.size() < 3 || !takesInput(spec, 0) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Padding padding, paddingOf(spec, spec.outputs[0].dims, spec.inputs[0].dims, 2, 3));
  if (padding.mode == PadMode::kConstant)
    return makeLaunched("pad", [=](Launcher& gpu) {
      return gpu.run("pad gradient", gpu::function<unpadElements>, blocksFor(padding.dataCount), kThreads, gpu.in<float>(0),
                     gpu.out<float>(0), padding);
    });
  const Segments segments{padding.paddedCount, padding.dataCount};
  const auto body = [=](Launcher& gpu) -> Status {
    SS_TRY(startResult(gpu, -1));
    SS_TRY(gpu.run("pad gradient: places", gpu::function<writeSources>, blocksFor(padding.paddedCount), kThreads,
                   segments.keys(gpu), padding));
    SS_TRY(sortSegments(gpu, segments));
    return combineSegments(gpu, segments, Combining::kAdd, DType::kF32, 0);
  };
  return makeLaunched("sorted segments", body, segments.bytes(),
                      Determinism::fixed("the copies of an element are sorted and added in their order by one thread"));
}

}  // namespace stepscope::cuda
