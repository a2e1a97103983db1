#include <array>

#include "kernels/dispatch.h"
#include "kernels/reference/linear/linear_kernels.h"

namespace stepscope::reference {

Status affineGrid(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &theta = call.inputs[0], &grid = call.outputs[0];
  const auto axes = static_cast<std::int64_t>(grid.dims.size()) - 2;
  if ((axes != 2 && axes != 3) || theta.dims != Dims{grid.dims[0], axes, axes + 1} || grid.dims.back() != axes)
    return invalid("AffineGrid: theta " + dimsText(theta.dims) + " and grid " + dimsText(grid.dims) +
                   "; expected [N, axes, axes + 1] and [N, …, axes]");
  const bool alignCorners = spec.attrs.integer("align_corners", 0) != 0;
  const bool known = dispatchFloat(grid.dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto* t = static_cast<const T*>(theta.data);
    auto* out = static_cast<T*>(grid.data);
    const std::int64_t points = grid.dims[0] == 0 ? 0 : grid.elements() / grid.dims[0] / axes;
    for (std::int64_t n = 0; n < grid.dims[0]; ++n)
      for (std::int64_t p = 0; p < points; ++p) {
        std::array<double, 4> position{};  // the last axis first, then 1
        std::int64_t rest = p;
        for (std::int64_t k = 0; k < axes; ++k) {
          const std::int64_t extent = grid.dims[static_cast<std::size_t>(axes - k)];
          const auto at = static_cast<double>(rest % extent), size = static_cast<double>(extent);
          rest /= extent;
          position[static_cast<std::size_t>(k)] = !alignCorners ? (2 * at + 1) / size - 1
                                                  : extent > 1  ? 2 * at / (size - 1) - 1
                                                                : 0;
        }
        position[static_cast<std::size_t>(axes)] = 1;
        for (std::int64_t row = 0; row < axes; ++row) {
          double sum = 0;
          for (std::int64_t k = 0; k <= axes; ++k)
            sum += static_cast<double>(t[(n * axes + row) * (axes + 1) + k]) * position[static_cast<std::size_t>(k)];
          out[(n * points + p) * axes + row] = static_cast<T>(sum);
        }
      }
  });
  return known ? Status{} : unsupported(spec.op + ": dtype " + std::string(dtypeName(grid.dtype)) + " is not taken");
}

}  // namespace stepscope::reference
