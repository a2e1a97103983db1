// RoiAlign and its gradient: the bins of a region are points, the samples of a bin four corners each, a few samples at a time. Forward, a thread
// has regions and a share of the channels; backward channels of all regions, which are added in their order.
#include <array>

#include "kernels/cpu/loops/support.h"
#include "kernels/cpu/sampling/sampling.h"
#include "kernels/cpu/sampling/taps.h"
#include "kernels/reference/linear/roi_region.h"

namespace stepscope::cpu {
namespace {

using reference::RoiRegion;
using reference::RoiRule;

constexpr std::int64_t kPoints = 256, kSamples = 16;  // of a table of taps

// x [N, C, H, W], regions [R, 4], image of each region [R], y [R, C, h, w]
struct Alignment {
  RoiRule rule;
  std::int64_t images = 0, channels = 0, regions = 0;
  std::array<std::int64_t, 2> plane{}, bins{};
  bool mean = true;
  int threads = 1;

  std::int64_t planeSize() const { return plane[0] * plane[1]; }
  std::int64_t binCount() const { return bins[0] * bins[1]; }
  std::int64_t width() const { return std::min(kPoints, binCount()); }
  std::size_t tapBytes() const { return Taps::bytes(4 * kSamples, width()); }
};

Result<Alignment> alignmentOf(const KernelSpec& spec, const OperandSpec& x, const OperandSpec& y) {
  if (spec.inputs.size() < 3 || !takes(x) || !takes(y) || !takesInput(spec, 1) || !takesInput(spec, 2, DType::kI64))
    return notTaken(spec, "elements other than float32");
  if (x.dims.size() != 4 || y.dims.size() != 4 || spec.inputs[1].dims != Dims{y.dims[0], 4} || elementCount(spec.inputs[2].dims) != y.dims[0] ||
      y.dims[1] != x.dims[1])
    return notTaken(spec, "operands that do not fit");
  Alignment a{RoiRule::of(spec.attrs),
              x.dims[0],
              x.dims[1],
              y.dims[0],
              {x.dims[2], x.dims[3]},
              {y.dims[2], y.dims[3]},
              spec.attrs.text("mode", "avg") == "avg",
              spec.threads};
  if (a.planeSize() > INT32_MAX) return notTaken(spec, "planes whose places have more than 31 bits");
  return a;
}

bool imagesExist(const Alignment& a, const std::int64_t* images) {
  return std::all_of(images, images + a.regions, [&](std::int64_t image) { return image >= 0 && image < a.images; });
}

// body(taps, first bin, first) for tables that together have every sample of every bin; `first`: the bins have had none before.
template <typename Body>
void forEachTable(const Alignment& a, const float* box, std::byte* memory, Body&& body) {
  const RoiRegion region(a.rule, {static_cast<double>(box[0]), static_cast<double>(box[1]), static_cast<double>(box[2]), static_cast<double>(box[3])}, a.bins,
                         a.plane);
  const double share = a.mean ? 1 / static_cast<double>(std::max<std::int64_t>(region.samples(), 1)) : 1;
  Taps taps = Taps::in(memory, 4 * kSamples, a.width());
  for (std::int64_t bin = 0; bin < a.binCount(); bin += kPoints)
    for (std::int64_t sample = 0; sample < region.samples(); sample += kSamples) {
      taps.points = std::min(kPoints, a.binCount() - bin);
      taps.corners = 4 * std::min(kSamples, region.samples() - sample);
      for (std::int64_t p = 0; p < taps.points; ++p)
        for (std::int64_t k = 0; k < taps.corners; k += 4) {
          const reference::RoiPoint point = region.point(bin + p, sample + k / 4);
          for (std::size_t j = 0; j < 4; ++j) {
            const std::int64_t at = (k + static_cast<std::int64_t>(j)) * taps.stride + p;
            taps.place[at] = static_cast<std::int32_t>(point.place[j]);
            taps.weight[at] = static_cast<float>(point.weight[j] * share);
          }
        }
      body(taps, bin, sample == 0);
    }
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeRoiAlign(const KernelSpec& spec) {
  if (spec.inputs.empty() || spec.outputs.empty()) return notTaken(spec, "no operands");
  SS_ASSIGN(const Alignment a, alignmentOf(spec, spec.inputs[0], spec.outputs[0]));
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  const std::int64_t shares = a.regions >= a.threads ? 1 : std::min<std::int64_t>(a.threads, a.channels);
  const auto body = [=](const KernelCall& call) -> Status {
    const auto* images = input<std::int64_t>(call, 2);
    if (!imagesExist(a, images)) return reference->run(call);
    const std::int64_t items = a.regions * shares;
    parallelParts(items, partsOf(items, a.channels * a.binCount() * 4 / shares, a.threads), 1, [&](int part, std::int64_t begin, std::int64_t end) {
      for (std::int64_t item = begin; item < end; ++item) {
        const std::int64_t region = item / shares, share = item % shares, first = a.channels * share / shares, behind = a.channels * (share + 1) / shares;
        const float* x = input(call, 0) + images[region] * a.channels * a.planeSize();
        float* y = output(call, 0) + region * a.channels * a.binCount();
        std::fill(y + first * a.binCount(), y + behind * a.binCount(), 0.0F);  // a region may have no samples
        forEachTable(a, input(call, 1) + region * 4, call.workspace.data() + static_cast<std::size_t>(part) * a.tapBytes(),
                     [&](const Taps& taps, std::int64_t bin, bool fresh) {
                       for (std::int64_t c = first; c < behind; ++c)
                         (a.mean ? sumTaps : largestTaps)(taps, x + c * a.planeSize(), y + c * a.binCount() + bin, !fresh);
                     });
      }
    });
    return {};
  };
  return makeBodyKernel("taps of regions", body, a.tapBytes() * static_cast<std::size_t>(a.threads));
}

// dy, regions, images, shape of x → dx, of the mean
Result<std::unique_ptr<Kernel>> makeRoiAlignGrad(const KernelSpec& spec) {
  if (spec.inputs.empty() || spec.outputs.empty()) return notTaken(spec, "no operands");
  SS_ASSIGN(Alignment a, alignmentOf(spec, spec.outputs[0], spec.inputs[0]));
  a.mean = true;
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  const auto body = [=](const KernelCall& call) -> Status {
    const auto* images = input<std::int64_t>(call, 2);
    if (!imagesExist(a, images)) return reference->run(call);
    const float* dy = input(call, 0);
    float* dx = output(call, 0);
    parallelParts(a.channels, partsOf(a.channels, a.regions * a.binCount() * 4, a.threads), 1, [&](int part, std::int64_t begin, std::int64_t end) {
      for (std::int64_t image = 0; image < a.images; ++image)
        std::fill(dx + (image * a.channels + begin) * a.planeSize(), dx + (image * a.channels + end) * a.planeSize(), 0.0F);
      for (std::int64_t region = 0; region < a.regions; ++region)
        forEachTable(a, input(call, 1) + region * 4, call.workspace.data() + static_cast<std::size_t>(part) * a.tapBytes(),
                     [&](const Taps& taps, std::int64_t bin, bool) {
                       for (std::int64_t c = begin; c < end; ++c)
                         scatterTaps(taps, dy + (region * a.channels + c) * a.binCount() + bin, dx + (images[region] * a.channels + c) * a.planeSize());
                     });
    });
    return {};
  };
  return makeBodyKernel("taps of regions", body, a.tapBytes() * static_cast<std::size_t>(a.threads));
}

}  // namespace stepscope::cpu
