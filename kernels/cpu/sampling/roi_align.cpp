// RoiAlign (of the mean) and its gradient, sixteen channels at a time. The taps of all regions are found once; then a thread
// has groups of channels of whole images, and walks the regions in their order.
#include <array>

#include "kernels/cpu/loops/support.h"
#include "kernels/cpu/sampling/lane_planes.h"
#include "kernels/cpu/sampling/sampling.h"
#include "kernels/cpu/sampling/taps.h"
#include "kernels/reference/linear/roi_axis.h"

namespace stepscope::cpu {
namespace {

using reference::RoiAxis;
using reference::RoiRule;

constexpr std::int64_t kTile = 64;         // bins whose values turn from lanes to planes at once
constexpr std::int64_t kMostSamples = 64;  // per bin, where the model gives them

// The taps of all bins along one axis of one region: those of bin b are [starts[b], starts[b + 1]).
struct AxisTable {
  std::int32_t *starts, *place;
  float* weight;

  SS_INLINE AxisTaps of(std::int64_t bin) const {
    return {place + starts[bin], weight + starts[bin], starts[bin + 1] - starts[bin]};
  }
};

// One axis of the image and of the bins.
struct AxisShape {
  std::int64_t extent = 0, bins = 0, most = 0;  // most: taps of a region

  static AxisShape of(const RoiRule& rule, std::int64_t extent, std::int64_t bins) {
    // Samples that come with the data are half an element apart or more, or one per bin; those outside are left out.
    return {extent, bins, 2 * (rule.ratio > 0 ? bins * rule.ratio : std::max(bins, 2 * extent + 4))};
  }
  std::int64_t words() const { return bins + 1 + 2 * most; }
  AxisTable table(std::int32_t* memory) const {
    return {memory, memory + bins + 1, reinterpret_cast<float*>(memory + bins + 1 + most)};
  }

  // Places are `step` positions apart.
  void find(const RoiAxis& axis, std::int64_t step, const AxisTable& t) const {
    std::int32_t n = 0;
    for (std::int64_t bin = 0; bin < bins; ++bin) {
      t.starts[bin] = n;
      for (std::int64_t sample = 0; sample < axis.samples(); ++sample) {
        const reference::RoiTap tap = axis.tap(bin, sample);
        for (const auto& [place, weight] : {std::pair{tap.low, tap.lowWeight}, std::pair{tap.high, tap.highWeight}})
          if (weight != 0) {
            t.place[n] = static_cast<std::int32_t>(place * step);
            t.weight[n++] = static_cast<float>(weight);
          }
      }
    }
    t.starts[bins] = n;
  }
};

// x [N, C, H, W], regions [R, 4], image of each region [R], y [R, C, h, w]
struct Alignment {
  RoiRule rule;
  std::int64_t images = 0, channels = 0, regions = 0;
  AxisShape rows, columns;
  int threads = 1;

  std::int64_t plane() const { return rows.extent * columns.extent; }
  std::int64_t bins() const { return rows.bins * columns.bins; }
  std::int64_t groups() const { return (channels + kLanes - 1) / kLanes; }
  std::int64_t lanes(std::int64_t group) const { return std::min(kLanes, channels - group * kLanes); }
  // Of a region: both tables, and the share of a sample.
  std::int64_t words() const { return rows.words() + columns.words() + 1; }
  std::size_t tableBytes() const { return (static_cast<std::size_t>(regions * words()) * 4 + 63) / 64 * 64; }
  std::size_t workspace() const {
    return tableBytes() + static_cast<std::size_t>(threads * plane() * kLanes) * sizeof(float);
  }
};

struct Region {
  AxisTable rows, columns;
  float* share;
};
Region regionOf(const Alignment& a, const KernelCall& call, std::int64_t region) {
  auto* memory = reinterpret_cast<std::int32_t*>(call.workspace.data()) + region * a.words();
  return {a.rows.table(memory), a.columns.table(memory + a.rows.words()), reinterpret_cast<float*>(memory + a.words() - 1)};
}

void findRegions(const Alignment& a, const KernelCall& call) {
  parallelRows(a.regions, 64 * (a.rows.bins + a.columns.bins), a.threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const float* box = input(call, 1) + r * 4;
      const Region region = regionOf(a, call, r);
      const RoiAxis rows(a.rule, static_cast<double>(box[1]), static_cast<double>(box[3]), a.rows.bins, a.rows.extent),
          columns(a.rule, static_cast<double>(box[0]), static_cast<double>(box[2]), a.columns.bins, a.columns.extent);
      a.rows.find(rows, a.columns.extent, region.rows);
      a.columns.find(columns, 1, region.columns);
      *region.share =
          static_cast<float>(1 / static_cast<double>(std::max<std::int64_t>(rows.samples() * columns.samples(), 1)));
    }
  });
}

Result<Alignment> alignmentOf(const KernelSpec& spec, const OperandSpec& x, const OperandSpec& y) {
  if (spec.inputs.size() < 3 || !takes(x) || !takes(y) || !takesInput(spec, 1) || !takesInput(spec, 2, DType::kI64))
    return notTaken(spec, "elements other than float32");
  if (x.dims.size() != 4 || y.dims.size() != 4 || spec.inputs[1].dims != Dims{y.dims[0], 4} ||
      elementCount(spec.inputs[2].dims) != y.dims[0] || y.dims[1] != x.dims[1])
    return notTaken(spec, "operands that do not fit");
  Alignment a{RoiRule::of(spec.attrs), x.dims[0], x.dims[1], y.dims[0], {}, {}, spec.threads};
  if (a.rule.ratio > kMostSamples) return notTaken(spec, "so many samples");
  a.rows = AxisShape::of(a.rule, x.dims[2], y.dims[2]);
  a.columns = AxisShape::of(a.rule, x.dims[3], y.dims[3]);
  if (a.plane() > INT32_MAX) return notTaken(spec, "planes whose places have more than 31 bits");
  return a;
}

bool imagesExist(const Alignment& a, const std::int64_t* images) {
  return std::all_of(images, images + a.regions, [&](std::int64_t image) { return image >= 0 && image < a.images; });
}

// Bins [first, first + count) of a region: y [count, 16] from x [plane, 16]
SS_LANE_CLONES void sampleBins(const Region& region, std::int64_t across, std::int64_t first, std::int64_t count,
                               const float* x, float* y) {
  for (std::int64_t b = 0; b < count; ++b) {
    Floats sum{};
    sumTaps(region.rows.of((first + b) / across), region.columns.of((first + b) % across), x, sum);
    store(*region.share * sum, y + b * kLanes);
  }
}
SS_LANE_CLONES void scatterBins(const Region& region, std::int64_t across, std::int64_t first, std::int64_t count,
                                const float* dy, float* dx) {
  for (std::int64_t b = 0; b < count; ++b) {
    Floats value;
    load(dy + b * kLanes, value);
    scatterTaps(region.rows.of((first + b) / across), region.columns.of((first + b) % across), *region.share * value, dx);
  }
}

// body(image, group, sixteen channels of an image to work in) for all, split over threads.
template <typename Body>
void forEachGroup(const Alignment& a, const KernelCall& call, Body&& body) {
  const std::int64_t items = a.images * a.groups();
  parallelParts(items, partsOf(items, a.regions * a.bins() * kLanes, a.threads), 1,
                [&](int part, std::int64_t begin, std::int64_t end) {
                  float* lanes =
                      reinterpret_cast<float*>(call.workspace.data() + a.tableBytes()) + part * a.plane() * kLanes;
                  for (std::int64_t item = begin; item < end; ++item) body(item / a.groups(), item % a.groups(), lanes);
                });
}

// body(region, first bin, count) for the tiles of the regions of an image.
template <typename Body>
void forEachTile(const Alignment& a, const std::int64_t* images, std::int64_t image, Body&& body) {
  for (std::int64_t r = 0; r < a.regions; ++r)
    for (std::int64_t bin = 0; images[r] == image && bin < a.bins(); bin += kTile)
      body(r, bin, std::min(kTile, a.bins() - bin));
}

using Tile = std::array<float, kTile * kLanes>;

}  // namespace

Result<std::unique_ptr<Kernel>> makeRoiAlign(const KernelSpec& spec) {
  if (spec.inputs.empty() || spec.outputs.empty()) return notTaken(spec, "no operands");
  if (spec.attrs.text("mode", "avg") != "avg") return notTaken(spec, "the largest neighbour");
  SS_ASSIGN(const Alignment a, alignmentOf(spec, spec.inputs[0], spec.outputs[0]));
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  const auto body = [=](const KernelCall& call) -> Status {
    const auto* images = input<std::int64_t>(call, 2);
    if (!imagesExist(a, images)) return reference->run(call);
    findRegions(a, call);
    forEachGroup(a, call, [&](std::int64_t image, std::int64_t group, float* lanes) {
      lanesOfPlanes(input(call, 0) + (image * a.channels + group * kLanes) * a.plane(), a.plane(), a.lanes(group), a.plane(),
                    lanes);
      Tile tile;
      forEachTile(a, images, image, [&](std::int64_t r, std::int64_t bin, std::int64_t count) {
        sampleBins(regionOf(a, call, r), a.columns.bins, bin, count, lanes, tile.data());
        planesOfLanes(tile.data(), count, output(call, 0) + (r * a.channels + group * kLanes) * a.bins() + bin, a.bins(),
                      a.lanes(group));
      });
    });
    return {};
  };
  return makeBodyKernel("taps of 16 channels", body, a.workspace());
}

// dy, regions, images, shape of x → dx
Result<std::unique_ptr<Kernel>> makeRoiAlignGrad(const KernelSpec& spec) {
  if (spec.inputs.empty() || spec.outputs.empty()) return notTaken(spec, "no operands");
  SS_ASSIGN(const Alignment a, alignmentOf(spec, spec.outputs[0], spec.inputs[0]));
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  const auto body = [=](const KernelCall& call) -> Status {
    const auto* images = input<std::int64_t>(call, 2);
    if (!imagesExist(a, images)) return reference->run(call);
    findRegions(a, call);
    forEachGroup(a, call, [&](std::int64_t image, std::int64_t group, float* lanes) {
      std::fill_n(lanes, a.plane() * kLanes, 0.0F);
      Tile tile;
      forEachTile(a, images, image, [&](std::int64_t r, std::int64_t bin, std::int64_t count) {
        lanesOfPlanes(input(call, 0) + (r * a.channels + group * kLanes) * a.bins() + bin, a.bins(), a.lanes(group), count,
                      tile.data());
        scatterBins(regionOf(a, call, r), a.columns.bins, bin, count, tile.data(), lanes);
      });
      planesOfLanes(lanes, a.plane(), output(call, 0) + (image * a.channels + group * kLanes) * a.plane(), a.plane(),
                    a.lanes(group));
    });
    return {};
  };
  return makeBodyKernel("taps of 16 channels", body, a.workspace());
}

}  // namespace stepscope::cpu
