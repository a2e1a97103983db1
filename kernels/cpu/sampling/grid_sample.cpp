// GridSample and its two gradients. Forward, a thread has blocks of points and a share of the channels; the gradient of the input is split over
// the planes, whose points are added in their order; that of the grid over blocks of points.
#include <array>

#include "kernels/cpu/loops/support.h"
#include "kernels/cpu/sampling/sampling.h"
#include "kernels/cpu/sampling/taps.h"
#include "kernels/reference/linear/grid_taps.h"

namespace stepscope::cpu {
namespace {

using reference::GridRule;
using reference::GridTaps;

constexpr std::int64_t kPoints = 1024;  // of a block: the taps of four corners fit the first-level cache
constexpr std::size_t kMostAxes = 3;

// x [N, C, spatial], grid [N, points, axes], y [N, C, points]
struct Sampling {
  GridRule rule;
  std::size_t axes = 0;
  std::array<std::int64_t, kMostAxes> extents{};
  std::int64_t batch = 0, channels = 0, inputs = 1, points = 1;
  int threads = 1;

  std::int64_t perAxis() const { return rule.mode == GridRule::Mode::kNearest ? 1 : rule.mode == GridRule::Mode::kLinear ? 2 : 4; }
  std::int64_t corners() const {
    std::int64_t n = 1;
    for (std::size_t k = 0; k < axes; ++k) n *= perAxis();
    return n;
  }
  std::int64_t width() const { return std::min(kPoints, points); }
  std::int64_t blocks() const { return (points + kPoints - 1) / kPoints; }
  std::size_t tapBytes() const { return Taps::bytes(corners(), width()); }
};

Result<Sampling> samplingOf(const KernelSpec& spec, const OperandSpec& x, const OperandSpec& grid, const OperandSpec& y) {
  if (!takes(x) || !takes(grid) || !takes(y)) return notTaken(spec, "elements other than float32");
  const std::size_t rank = x.dims.size();
  if (rank < 3 || rank > 2 + kMostAxes || grid.dims.size() != rank || y.dims.size() != rank || grid.dims.back() != static_cast<std::int64_t>(rank) - 2 ||
      x.dims[0] != grid.dims[0] || y.dims[0] != x.dims[0] || y.dims[1] != x.dims[1])
    return notTaken(spec, "operands that do not fit");
  Sampling s;
  SS_ASSIGN(s.rule, GridRule::parse(spec.attrs));
  s.axes = rank - 2;
  for (std::size_t k = 0; k < s.axes; ++k) {
    if (y.dims[k + 2] != grid.dims[k + 1]) return notTaken(spec, "operands that do not fit");
    s.extents[k] = x.dims[k + 2];
    s.inputs *= x.dims[k + 2];
    s.points *= y.dims[k + 2];
  }
  if (s.inputs > INT32_MAX) return notTaken(spec, "planes whose places have more than 31 bits");
  s.batch = x.dims[0];
  s.channels = x.dims[1];
  s.threads = spec.threads;
  return s;
}

// The taps of points whose coordinates follow each other, last axis first. `slopes`, where asked for, has those of the weights along every
// axis as [axes, corners, stride].
void findTaps(const Sampling& s, const float* coordinates, std::int64_t points, Taps& taps, float* slopes) {
  taps.points = points;
  taps.corners = s.corners();
  taps.whole = true;
  for (std::int64_t p = 0; p < points; ++p) {
    std::array<GridTaps, kMostAxes> along;
    for (std::size_t k = 0; k < s.axes; ++k)
      along[k] = reference::gridTaps(s.rule, static_cast<double>(coordinates[static_cast<std::size_t>(p) * s.axes + s.axes - 1 - k]), s.extents[k]);
    for (std::int64_t corner = 0; corner < taps.corners; ++corner) {
      std::int64_t place = 0, rest = corner, stride = 1;
      double weight = 1;
      std::array<double, kMostAxes> slope{1, 1, 1};
      bool inside = true;
      for (std::size_t k = s.axes; k-- > 0; rest /= s.perAxis()) {
        const auto t = static_cast<std::size_t>(rest % s.perAxis());
        if (static_cast<int>(t) >= along[k].count) inside = false;
        place += along[k].position[t] * stride;
        stride *= s.extents[k];
        weight *= along[k].weight[t];
        for (std::size_t j = 0; j < s.axes; ++j) slope[j] *= j == k ? along[k].slope[t] : along[k].weight[t];
      }
      const std::int64_t at = corner * taps.stride + p;
      taps.place[at] = inside ? static_cast<std::int32_t>(place) : -1;
      taps.weight[at] = inside ? static_cast<float>(weight) : 0;
      taps.whole &= inside;
      for (std::size_t j = 0; slopes != nullptr && j < s.axes; ++j)
        slopes[static_cast<std::int64_t>(j) * taps.corners * taps.stride + at] = inside ? static_cast<float>(slope[j]) : 0;
    }
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeGridSample(const KernelSpec& spec) {
  if (spec.inputs.size() != 2) return notTaken(spec, "other than two operands");
  SS_ASSIGN(const Sampling s, samplingOf(spec, spec.inputs[0], spec.inputs[1], spec.outputs[0]));
  // Few blocks: their channels are shared out.
  const std::int64_t blocks = s.batch * s.blocks(), shares = blocks >= s.threads ? 1 : std::min<std::int64_t>(s.threads, s.channels);
  const auto body = [=](const KernelCall& call) -> Status {
    const float *x = input(call, 0), *grid = input(call, 1);
    float* y = output(call, 0);
    const std::int64_t items = blocks * shares;
    parallelParts(items, partsOf(items, s.channels * s.width() * s.corners() / shares, s.threads), 1, [&](int part, std::int64_t begin, std::int64_t end) {
      Taps taps = Taps::in(call.workspace.data() + static_cast<std::size_t>(part) * s.tapBytes(), s.corners(), s.width());
      for (std::int64_t item = begin; item < end; ++item) {
        const std::int64_t share = item % shares, block = item / shares, n = block / s.blocks(), at = block % s.blocks() * kPoints;
        findTaps(s, grid + (n * s.points + at) * static_cast<std::int64_t>(s.axes), std::min(kPoints, s.points - at), taps, nullptr);
        for (std::int64_t c = s.channels * share / shares; c < s.channels * (share + 1) / shares; ++c)
          sumTaps(taps, x + (n * s.channels + c) * s.inputs, y + (n * s.channels + c) * s.points + at, false);
      }
    });
    return {};
  };
  return makeBodyKernel("taps of blocks", body, s.tapBytes() * static_cast<std::size_t>(s.threads));
}

// dy, grid, shape of x → dx
Result<std::unique_ptr<Kernel>> makeGridSampleInputGrad(const KernelSpec& spec) {
  if (spec.inputs.size() < 2) return notTaken(spec, "fewer than two operands");
  SS_ASSIGN(const Sampling s, samplingOf(spec, spec.outputs[0], spec.inputs[1], spec.inputs[0]));
  const auto body = [=](const KernelCall& call) -> Status {
    const float *dy = input(call, 0), *grid = input(call, 1);
    float* dx = output(call, 0);
    const std::int64_t planes = s.batch * s.channels;
    parallelParts(planes, partsOf(planes, s.points * s.corners(), s.threads), 1, [&](int part, std::int64_t begin, std::int64_t end) {
      Taps taps = Taps::in(call.workspace.data() + static_cast<std::size_t>(part) * s.tapBytes(), s.corners(), s.width());
      std::fill(dx + begin * s.inputs, dx + end * s.inputs, 0.0F);
      for (std::int64_t plane = begin; plane < end;) {
        const std::int64_t n = plane / s.channels, behind = std::min(end, (n + 1) * s.channels);
        for (std::int64_t at = 0; at < s.points; at += kPoints) {
          findTaps(s, grid + (n * s.points + at) * static_cast<std::int64_t>(s.axes), std::min(kPoints, s.points - at), taps, nullptr);
          for (std::int64_t p = plane; p < behind; ++p) scatterTaps(taps, dy + p * s.points + at, dx + p * s.inputs);
        }
        plane = behind;
      }
    });
    return {};
  };
  return makeBodyKernel("taps of blocks", body, s.tapBytes() * static_cast<std::size_t>(s.threads));
}

// dy, x, grid → dgrid
Result<std::unique_ptr<Kernel>> makeGridSampleGridGrad(const KernelSpec& spec) {
  if (spec.inputs.size() != 3) return notTaken(spec, "other than three operands");
  SS_ASSIGN(const Sampling s, samplingOf(spec, spec.inputs[1], spec.inputs[2], spec.inputs[0]));
  if (!takesOutput(spec, 0) || spec.outputs[0].dims != spec.inputs[2].dims) return notTaken(spec, "a result of another size");
  const std::int64_t table = s.corners() * s.width();  // floats of the sums, and of the slopes along one axis
  const std::size_t own = s.tapBytes() + static_cast<std::size_t>(table) * (1 + s.axes) * sizeof(float);
  const auto body = [=](const KernelCall& call) -> Status {
    const float *dy = input(call, 0), *x = input(call, 1), *grid = input(call, 2);
    const auto axes = static_cast<std::int64_t>(s.axes), items = s.batch * s.blocks();
    parallelParts(items, partsOf(items, s.channels * s.width() * s.corners(), s.threads), 1, [&](int part, std::int64_t begin, std::int64_t end) {
      std::byte* memory = call.workspace.data() + static_cast<std::size_t>(part) * own;
      Taps taps = Taps::in(memory, s.corners(), s.width());
      float *sums = reinterpret_cast<float*>(memory + s.tapBytes()), *slopes = sums + table;
      for (std::int64_t item = begin; item < end; ++item) {
        const std::int64_t n = item / s.blocks(), at = item % s.blocks() * kPoints, first = (n * s.points + at) * axes;
        findTaps(s, grid + first, std::min(kPoints, s.points - at), taps, slopes);
        std::fill_n(sums, table, 0.0F);
        for (std::int64_t c = n * s.channels; c < (n + 1) * s.channels; ++c) correlateTaps(taps, x + c * s.inputs, dy + c * s.points + at, sums);
        float* to = output(call, 0) + first;
        for (std::int64_t p = 0; p < taps.points; ++p)
          for (std::int64_t k = 0; k < axes; ++k) {
            double sum = 0;
            for (std::int64_t i = p; i < table; i += taps.stride)
              if (taps.place[i] >= 0) sum += static_cast<double>(sums[i]) * static_cast<double>(slopes[k * table + i]);
            to[p * axes + axes - 1 - k] = static_cast<float>(sum);
          }
      }
    });
    return {};
  };
  return makeBodyKernel("taps of blocks", body, own * static_cast<std::size_t>(s.threads));
}

}  // namespace stepscope::cpu
