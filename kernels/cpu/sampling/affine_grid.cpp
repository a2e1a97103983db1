// AffineGrid: along a row of points only the last axis moves, so a row is a line for each coordinate.
#include <array>

#include "kernels/cpu/loops/support.h"
#include "kernels/cpu/sampling/sampling.h"

namespace stepscope::cpu {
namespace {

constexpr std::size_t kMostAxes = 3;

double positionOf(std::int64_t i, std::int64_t extent, bool alignCorners) {
  const auto at = static_cast<double>(i), size = static_cast<double>(extent);
  if (!alignCorners) return (2 * at + 1) / size - 1;
  return extent > 1 ? 2 * at / (size - 1) - 1 : 0;
}

// grid[i * axes] = start + slope * position[i]
SS_CLONES void lineOf(const double* position, double start, double slope, std::int64_t axes, float* grid, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) grid[i * axes] = static_cast<float>(start + slope * position[i]);
}

}  // namespace

// theta [N, axes, axes + 1] → grid [N, extents..., axes], the last axis first
Result<std::unique_ptr<Kernel>> makeAffineGrid(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0)) return notTaken(spec, "elements other than float32");
  const Dims& grid = spec.outputs[0].dims;
  const auto axes = static_cast<std::int64_t>(grid.size()) - 2;
  if ((axes != 2 && axes != 3) || spec.inputs[0].dims != Dims{grid[0], axes, axes + 1} || grid.back() != axes)
    return notTaken(spec, "operands that do not fit");
  std::array<std::int64_t, kMostAxes> extents{1, 1, 1};  // last axis first
  for (std::int64_t k = 0; k < axes; ++k) extents[static_cast<std::size_t>(k)] = grid[static_cast<std::size_t>(axes - k)];
  const bool alignCorners = spec.attrs.integer("align_corners", 0) != 0;
  std::vector<double> position;
  for (std::int64_t i = 0; i < extents[0]; ++i) position.push_back(positionOf(i, extents[0], alignCorners));
  const std::int64_t rows = extents[1] * extents[2], batch = grid[0];
  return makeBodyKernel(
      "vector rows", [=, position = std::move(position), threads = spec.threads](const KernelCall& call) -> Status {
        parallelRows(batch * rows, extents[0] * axes, threads, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            const std::int64_t at = row % rows;
            const std::array<double, kMostAxes> others{0, positionOf(at % extents[1], extents[1], alignCorners),
                                                       positionOf(at / extents[1], extents[2], alignCorners)};
            for (std::int64_t k = 0; k < axes; ++k) {
              const float* theta = input(call, 0) + (row / rows * axes + k) * (axes + 1);
              auto start = static_cast<double>(theta[axes]);
              for (std::int64_t j = 1; j < axes; ++j)
                start += static_cast<double>(theta[j]) * others[static_cast<std::size_t>(j)];
              lineOf(position.data(), start, static_cast<double>(theta[0]), axes,
                     output(call, 0) + row * extents[0] * axes + k, extents[0]);
            }
          }
        });
        return {};
      });
}

}  // namespace stepscope::cpu
