#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/reduction/kernels.h"
#include "kernels/reference/reduction/loops.h"

namespace stepscope::reference {
namespace {

// Gauss-Jordan with row pivoting on [A | I] of n rows and 2 n columns. false: A is singular.
bool invert(double* rows, std::int64_t n) {
  const std::int64_t width = 2 * n;
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t pivot = k;
    for (std::int64_t i = k + 1; i < n; ++i)
      if (std::fabs(rows[i * width + k]) > std::fabs(rows[pivot * width + k])) pivot = i;
    const double value = rows[pivot * width + k];
    if (value == 0) return false;
    if (pivot != k) std::swap_ranges(rows + k * width, rows + (k + 1) * width, rows + pivot * width);
    for (std::int64_t j = k; j < width; ++j) rows[k * width + j] /= value;
    for (std::int64_t i = 0; i < n; ++i) {
      const double factor = rows[i * width + k];
      if (i == k || factor == 0) continue;
      for (std::int64_t j = k; j < width; ++j) rows[i * width + j] -= factor * rows[k * width + j];
    }
  }
  return true;
}

// x → y, matrix by matrix; that of a singular one is NaN.
class Inverse final : public Kernel {
 public:
  Inverse(KernelSpec spec, std::int64_t count, std::int64_t n) : spec_(std::move(spec)), count_(count), n_(n) {}
  std::size_t workspaceBytes() const override { return static_cast<std::size_t>(2 * n_ * n_) * sizeof(double); }
  std::string implementation() const override { return "reference"; }
  Determinism determinism() const override { return Determinism::oneThread(); }

  Status run(const KernelCall& call) override {
    const TensorView& x = call.inputs[0];
    SS_TRY(expectElements(spec_, "x", x, count_ * n_ * n_));
    SS_TRY(expectElements(spec_, "y", call.outputs[0], count_ * n_ * n_));
    const bool known = dispatchFloat(x.dtype, [&](auto tag) { compute<decltype(tag)>(call); });
    if (!known) return badType(spec_, x.dtype);
    return {};
  }

 private:
  template <typename T>
  void compute(const KernelCall& call) const {
    auto* rows = reinterpret_cast<double*>(call.workspace.data());
    for (std::int64_t b = 0; b < count_; ++b) {
      const T* x = readAs<T>(call.inputs[0]) + b * n_ * n_;
      T* y = writeAs<T>(call.outputs[0]) + b * n_ * n_;
      for (std::int64_t i = 0; i < n_; ++i)
        for (std::int64_t j = 0; j < n_; ++j) {
          rows[i * 2 * n_ + j] = static_cast<double>(x[i * n_ + j]);
          rows[i * 2 * n_ + n_ + j] = i == j ? 1 : 0;
        }
      const bool regular = invert(rows, n_);
      for (std::int64_t i = 0; i < n_; ++i)
        for (std::int64_t j = 0; j < n_; ++j)
          y[i * n_ + j] = static_cast<T>(regular ? rows[i * 2 * n_ + n_ + j] : std::numeric_limits<double>::quiet_NaN());
    }
  }

  KernelSpec spec_;
  std::int64_t count_, n_;
};

Result<std::unique_ptr<Kernel>> makeInverse(const KernelSpec& spec) {
  const auto& dims = spec.inputs[0].dims;
  const std::size_t rank = dims.size();
  if (rank < 2 || dims[rank - 1] != dims[rank - 2])
    return invalid(fmt::format("{}: x has shape {}; expected square matrices [..., M, M]", spec.op, dimsText(dims)));
  return std::make_unique<Inverse>(spec, elementCount(std::span(dims).first(rank - 2)), dims[rank - 1]);
}

constexpr KernelEntry kInverseEntries[] = {{"com.microsoft", "Inverse", makeInverse}};

}  // namespace

std::span<const KernelEntry> inverseKernels() { return kInverseEntries; }

}  // namespace stepscope::reference
