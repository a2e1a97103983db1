#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/cpu/loops/loops.h"

namespace stepscope::cpu {
namespace {

constexpr std::size_t kMaxRank = 8;

// The transposition with axes that stay neighbours joined: output extents, and the input's stride along each.
struct Plan {
  std::size_t rank = 0;
  std::array<std::int64_t, kMaxRank> extent{}, stride{};
};

SS_CLONES void tile(const std::uint32_t* x, std::uint32_t* y, std::int64_t rows, std::int64_t columns, std::int64_t xStride,
                    std::int64_t yStride) {
  // y[r * yStride + c] = x[c * xStride + r]
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) y[r * yStride + c] = x[c * xStride + r];
}

class TransposeKernel final : public Kernel {
 public:
  TransposeKernel(Plan plan, int threads) : plan_(plan), threads_(threads) {
    std::int64_t step = 1;
    for (std::size_t i = plan_.rank; i-- > 0;) {
      outStride_[i] = step;
      step *= plan_.extent[i];
      if (plan_.stride[i] == 1) unit_ = i;
    }
    total_ = step;
  }

  Status run(const KernelCall& call) override {
    const auto* x = static_cast<const std::uint32_t*>(call.inputs[0].data);
    auto* y = static_cast<std::uint32_t*>(call.outputs[0].data);
    const std::size_t last = plan_.rank - 1;
    if (unit_ == last) {
      // Rows stay whole.
      const std::int64_t run = plan_.extent[last], rows = total_ / run;
#pragma omp parallel for schedule(static) num_threads(threads_) if (total_ > kParallelElements)
      for (std::int64_t row = 0; row < rows; ++row)
        std::memcpy(y + row * run, x + offset(row, last), static_cast<std::size_t>(run) * sizeof *y);
      return {};
    }
    // Tiles of the plane that the input's last axis and the output's last axis span.
    constexpr std::int64_t kTile = 32;
    const std::int64_t rows = plan_.extent[unit_], columns = plan_.extent[last];
    const std::int64_t strips = (rows + kTile - 1) / kTile, planes = total_ / (rows * columns);
#pragma omp parallel for collapse(2) schedule(static) num_threads(threads_) if (total_ > kParallelElements)
    for (std::int64_t plane = 0; plane < planes; ++plane)
      for (std::int64_t strip = 0; strip < strips; ++strip) {
        std::int64_t from = 0, to = 0, rest = plane;
        for (std::size_t i = last; i-- > 0;) {
          if (i == unit_) continue;
          from += rest % plan_.extent[i] * plan_.stride[i];
          to += rest % plan_.extent[i] * outStride_[i];
          rest /= plan_.extent[i];
        }
        const std::int64_t r = strip * kTile, height = std::min(kTile, rows - r);
        for (std::int64_t c = 0; c < columns; c += kTile)
          tile(x + from + c * plan_.stride[last] + r, y + to + r * outStride_[unit_] + c, height,
               std::min(kTile, columns - c), plan_.stride[last], outStride_[unit_]);
      }
    return {};
  }
  std::string implementation() const override { return unit_ == plan_.rank - 1 ? "row copies" : "tiles of 32 x 32"; }
  Determinism determinism() const override { return Determinism::fixed(); }

 private:
  // Where the input's element for output row `row` (of the axes before `axes`) begins.
  std::int64_t offset(std::int64_t row, std::size_t axes) const {
    std::int64_t from = 0;
    for (std::size_t i = axes; i-- > 0;) {
      from += row % plan_.extent[i] * plan_.stride[i];
      row /= plan_.extent[i];
    }
    return from;
  }

  Plan plan_;
  std::array<std::int64_t, kMaxRank> outStride_{};
  std::size_t unit_ = 0;
  std::int64_t total_ = 1;
  int threads_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeTranspose(const KernelSpec& spec) {
  const auto refuse = [] { return unsupported("tiles: takes elements of 4 bytes, rank up to 8, at least one element"); };
  if (!spec.inputPresent(0) || !spec.outputPresent(0) || dtypeSize(spec.inputs[0].dtype) != 4 ||
      spec.inputs[0].dtype != spec.outputs[0].dtype)
    return refuse();
  const Dims& dims = spec.inputs[0].dims;
  const std::size_t rank = dims.size();
  if (rank == 0 || rank > kMaxRank || elementCount(dims) == 0) return refuse();
  std::vector<std::int64_t> perm = spec.attrs.integers("perm");
  if (perm.empty())
    for (std::size_t i = rank; i-- > 0;) perm.push_back(static_cast<std::int64_t>(i));
  if (perm.size() != rank) return refuse();
  std::array<bool, kMaxRank> seen{};
  for (const std::int64_t p : perm) {
    if (p < 0 || p >= static_cast<std::int64_t>(rank) || seen[static_cast<std::size_t>(p)])
      return refuse();  // the reference names the mistake
    seen[static_cast<std::size_t>(p)] = true;
  }
  const Dims strides = rowMajorStrides(dims);
  Plan plan;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto axis = static_cast<std::size_t>(perm[i]);
    if (dims[axis] == 1) continue;
    // Joined with the axis before when the input's memory goes on there.
    if (plan.rank > 0 && plan.stride[plan.rank - 1] == strides[axis] * dims[axis]) {
      plan.extent[plan.rank - 1] *= dims[axis];
      plan.stride[plan.rank - 1] = strides[axis];
      continue;
    }
    plan.extent[plan.rank] = dims[axis];
    plan.stride[plan.rank++] = strides[axis];
  }
  if (plan.rank == 0) {
    plan.rank = 1;
    plan.extent[0] = 1;
    plan.stride[0] = 1;
  }
  return std::make_unique<TransposeKernel>(plan, spec.threads);
}

}  // namespace stepscope::cpu
