#include <array>
#include <vector>

#include "kernels/dispatch.h"
#include "kernels/reference/linear/grid_taps.h"
#include "kernels/reference/linear/linear_kernels.h"

namespace stepscope::reference {
namespace {

Status unsupportedType(const KernelSpec& spec) {
  return unsupported(spec.op + ": dtype " + std::string(dtypeName(spec.inputs[0].dtype)) + " is not taken");
}

constexpr std::size_t kMostAxes = 3;

// x [N, C, spatial], grid [N, points, axes], y [N, C, points]
struct GridExtents {
  GridRule rule;
  Dims spatial;
  std::int64_t batch = 0, channels = 0, inputs = 1, points = 1;

  static Result<GridExtents> make(const KernelSpec& spec, const Dims& x, const Dims& grid, const Dims& y) {
    GridExtents e;
    SS_ASSIGN(e.rule, GridRule::parse(spec.attrs));
    const std::size_t rank = x.size();
    if (rank < 3 || grid.size() != rank || y.size() != rank || grid.back() != static_cast<std::int64_t>(rank) - 2 ||
        x[0] != grid[0] || y[0] != x[0] || y[1] != x[1])
      return invalid(spec.op + ": x " + dimsText(x) + ", grid " + dimsText(grid) + ", y " + dimsText(y) +
                     "; expected [N, C, …], [N, …, axes], [N, C, …]");
    for (std::size_t i = 0; i + 2 < rank; ++i) {
      if (y[i + 2] != grid[i + 1])
        return invalid(spec.op + ": grid " + dimsText(grid) + " and y " + dimsText(y) + " differ in their points");
      e.spatial.push_back(x[i + 2]);
      e.inputs *= x[i + 2];
      e.points *= y[i + 2];
    }
    if (e.spatial.size() > kMostAxes)
      return unsupported(spec.op + ": " + std::to_string(e.spatial.size()) + " axes to sample; expected 1 to 3");
    e.batch = x[0];
    e.channels = x[1];
    return e;
  }
};

// One element that a point reads: its flat place, its weight, and the slope of the weight along every axis.
struct Corner {
  std::int64_t place = 0;
  double weight = 1;
  std::array<double, kMostAxes> slope{};
};

// The product of the taps of all axes. Coordinates stand last axis first.
template <typename G>
void corners(const GridExtents& e, const G* coordinates, std::vector<Corner>& found) {
  const std::size_t axes = e.spatial.size();
  found.assign(1, Corner{0, 1, {1, 1, 1}});
  std::vector<Corner> next;
  for (std::size_t k = 0; k < axes; ++k) {
    const GridTaps taps = gridTaps(e.rule, static_cast<double>(coordinates[axes - 1 - k]), e.spatial[k]);
    next.clear();
    for (const Corner& corner : found)
      for (std::size_t t = 0; t < static_cast<std::size_t>(taps.count); ++t) {
        Corner made = corner;
        made.place = corner.place * e.spatial[k] + taps.position[t];
        made.weight *= taps.weight[t];
        for (std::size_t j = 0; j < axes; ++j) made.slope[j] *= j == k ? taps.slope[t] : taps.weight[t];
        next.push_back(made);
      }
    found.swap(next);
  }
}

// body(batch, point, corners) for every point.
template <typename Body>
bool forEachPoint(const GridExtents& e, const TensorView& grid, Body&& body) {
  return dispatchFloat(grid.dtype, [&](auto tag) {
    using G = decltype(tag);
    const auto* g = static_cast<const G*>(grid.data);
    const auto axes = static_cast<std::int64_t>(e.spatial.size());
    std::vector<Corner> found;
    for (std::int64_t n = 0; n < e.batch; ++n)
      for (std::int64_t p = 0; p < e.points; ++p) {
        corners(e, g + (n * e.points + p) * axes, found);
        body(n, p, found);
      }
  });
}

}  // namespace

Status gridSample(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &grid = call.inputs[1], &y = call.outputs[0];
  SS_ASSIGN(const GridExtents e, GridExtents::make(spec, x.dims, grid.dims, y.dims));
  bool gridKnown = true;
  const bool known = dispatchFixed(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto* in = static_cast<const T*>(x.data);
    auto* out = static_cast<T*>(y.data);
    gridKnown = forEachPoint(e, grid, [&](std::int64_t n, std::int64_t p, const std::vector<Corner>& found) {
      for (std::int64_t c = 0; c < e.channels; ++c) {
        double sum = 0;
        for (const Corner& corner : found)
          sum += corner.weight * static_cast<double>(in[(n * e.channels + c) * e.inputs + corner.place]);
        out[(n * e.channels + c) * e.points + p] = static_cast<T>(sum);
      }
    });
  });
  return known && gridKnown ? Status{} : unsupportedType(spec);
}

Status gridSampleInputGrad(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &dy = call.inputs[0], &grid = call.inputs[1], &dx = call.outputs[0];
  SS_ASSIGN(const GridExtents e, GridExtents::make(spec, dx.dims, grid.dims, dy.dims));
  bool gridKnown = true;
  const bool known = dispatchFloat(dy.dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto* in = static_cast<const T*>(dy.data);
    auto* out = static_cast<T*>(dx.data);
    std::vector<double> sums(static_cast<std::size_t>(dx.elements()), 0.0);
    gridKnown = forEachPoint(e, grid, [&](std::int64_t n, std::int64_t p, const std::vector<Corner>& found) {
      for (std::int64_t c = 0; c < e.channels; ++c)
        for (const Corner& corner : found)
          sums[static_cast<std::size_t>((n * e.channels + c) * e.inputs + corner.place)] +=
              corner.weight * static_cast<double>(in[(n * e.channels + c) * e.points + p]);
    });
    for (std::size_t i = 0; i < sums.size(); ++i) out[i] = static_cast<T>(sums[i]);
  });
  return known && gridKnown ? Status{} : unsupportedType(spec);
}

Status gridSampleGridGrad(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &dy = call.inputs[0], &x = call.inputs[1], &grid = call.inputs[2], &dgrid = call.outputs[0];
  SS_ASSIGN(const GridExtents e, GridExtents::make(spec, x.dims, grid.dims, dy.dims));
  const std::size_t axes = e.spatial.size();
  bool gridKnown = true;
  const bool known = dispatchFloat(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto* values = static_cast<const T*>(x.data);
    const auto* slopes = static_cast<const T*>(dy.data);
    gridKnown = dispatchFloat(grid.dtype, [&](auto gridTag) {
      using G = decltype(gridTag);
      auto* out = static_cast<G*>(dgrid.data);
      forEachPoint(e, grid, [&](std::int64_t n, std::int64_t p, const std::vector<Corner>& found) {
        std::array<double, kMostAxes> sums{};
        for (std::int64_t c = 0; c < e.channels; ++c) {
          const auto arriving = static_cast<double>(slopes[(n * e.channels + c) * e.points + p]);
          for (const Corner& corner : found)
            for (std::size_t k = 0; k < axes; ++k)
              sums[k] +=
                  arriving * corner.slope[k] * static_cast<double>(values[(n * e.channels + c) * e.inputs + corner.place]);
        }
        for (std::size_t k = 0; k < axes; ++k)
          out[static_cast<std::size_t>(n * e.points + p) * axes + axes - 1 - k] = static_cast<G>(sums[k]);
      });
    });
  });
  return known && gridKnown ? Status{} : unsupportedType(spec);
}

}  // namespace stepscope::reference
