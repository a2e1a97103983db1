#include <fmt/format.h>

#include <cmath>

#include "kernels/matmul_shape.h"
#include "kernels/reference/reduction/kernels.h"
#include "kernels/reference/reduction/loops.h"

namespace stepscope::reference {
namespace {

// Cholesky: a → L of (a + aᵀ) / 2, row by row in the workspace, so that the sums stay in double.
class Cholesky final : public Kernel {
 public:
  Cholesky(KernelSpec spec, std::int64_t count, std::int64_t n) : spec_(std::move(spec)), count_(count), n_(n) {}
  std::size_t workspaceBytes() const override { return static_cast<std::size_t>(n_ * n_) * sizeof(double); }
  std::string implementation() const override { return "reference"; }
  Determinism determinism() const override { return Determinism::oneThread(); }

  Status run(const KernelCall& call) override {
    SS_TRY(expectElements(spec_, "a", call.inputs[0], count_ * n_ * n_));
    SS_TRY(expectElements(spec_, "L", call.outputs[0], count_ * n_ * n_));
    Status done;
    const bool known = dispatchFloat(call.inputs[0].dtype, [&](auto tag) { done = compute<decltype(tag)>(call); });
    return known ? done : badType(spec_, call.inputs[0].dtype);
  }

 private:
  template <typename T>
  Status compute(const KernelCall& call) const {
    auto* l = reinterpret_cast<double*>(call.workspace.data());
    for (std::int64_t b = 0; b < count_; ++b) {
      const T* a = readAs<T>(call.inputs[0]) + b * n_ * n_;
      T* y = writeAs<T>(call.outputs[0]) + b * n_ * n_;
      for (std::int64_t i = 0; i < n_; ++i)
        for (std::int64_t j = 0; j <= i; ++j) {
          double sum = (static_cast<double>(a[i * n_ + j]) + static_cast<double>(a[j * n_ + i])) / 2;
          for (std::int64_t k = 0; k < j; ++k) sum -= l[i * n_ + k] * l[j * n_ + k];
          if (i == j && !(sum > 0))  // NaN too
            return invalid(
                fmt::format("Cholesky: matrix {} is not positive definite: {} is left of diagonal element {}; "
                            "expected a positive number",
                            b, sum, i));
          l[i * n_ + j] = i == j ? std::sqrt(sum) : sum / l[j * n_ + j];
        }
      for (std::int64_t i = 0; i < n_; ++i)
        for (std::int64_t j = 0; j < n_; ++j) y[i * n_ + j] = static_cast<T>(j <= i ? l[i * n_ + j] : 0.0);
    }
    return {};
  }

  KernelSpec spec_;
  std::int64_t count_, n_;
};

Result<std::unique_ptr<Kernel>> makeCholesky(const KernelSpec& spec) {
  const auto& dims = spec.inputs[0].dims;
  const std::size_t rank = dims.size();
  if (rank < 2 || dims[rank - 1] != dims[rank - 2])
    return invalid(fmt::format("{}: a has shape {}; expected square matrices [..., M, M]", spec.op, dimsText(dims)));
  return std::make_unique<Cholesky>(spec, elementCount(std::span(dims).first(rank - 2)), dims[rank - 1]);
}

// TriangularSolve: a, b → x, column by column in the workspace.
class TriangularSolve final : public Kernel {
 public:
  TriangularSolve(KernelSpec spec, MatMulShape shape) : spec_(std::move(spec)), shape_(std::move(shape)) {
    transpose_ = spec_.attrs.integer("transpose", 0) != 0;
    unit_ = spec_.attrs.integer("unit_diagonal", 0) != 0;
    upper_ = spec_.attrs.integer("upper", 0) != 0;
  }
  std::size_t workspaceBytes() const override { return static_cast<std::size_t>(shape_.m) * sizeof(double); }
  std::string implementation() const override { return "reference"; }
  Determinism determinism() const override { return Determinism::oneThread(); }

  Status run(const KernelCall& call) override {
    SS_TRY(expectElements(spec_, "x", call.outputs[0], shape_.batches() * shape_.m * shape_.n));
    const bool known = dispatchFloat(call.inputs[0].dtype, [&](auto tag) { compute<decltype(tag)>(call); });
    if (!known) return badType(spec_, call.inputs[0].dtype);
    return {};
  }

 private:
  template <typename T>
  void compute(const KernelCall& call) const {
    auto* column = reinterpret_cast<double*>(call.workspace.data());
    const std::int64_t n = shape_.m, columns = shape_.n;
    const bool backward = upper_ != transpose_;  // op(a) is upper triangular: from the last row up
    for (std::int64_t index = 0; index < shape_.batches(); ++index) {
      const T* a = readAs<T>(call.inputs[0]) + shape_.aOffset(index);
      const T* b = readAs<T>(call.inputs[1]) + shape_.bOffset(index);
      T* x = writeAs<T>(call.outputs[0]) + shape_.yOffset(index);
      for (std::int64_t c = 0; c < columns; ++c) {
        for (std::int64_t step = 0; step < n; ++step) {
          const std::int64_t i = backward ? n - 1 - step : step;
          double sum = static_cast<double>(b[i * columns + c]);
          for (std::int64_t done = 0; done < step; ++done) {
            const std::int64_t k = backward ? n - 1 - done : done;
            sum -= static_cast<double>(transpose_ ? a[k * n + i] : a[i * n + k]) * column[k];
          }
          column[i] = unit_ ? sum : sum / static_cast<double>(a[i * n + i]);
        }
        for (std::int64_t i = 0; i < n; ++i) x[i * columns + c] = static_cast<T>(column[i]);
      }
    }
  }

  KernelSpec spec_;
  MatMulShape shape_;
  bool transpose_, unit_, upper_;
};

Result<std::unique_ptr<Kernel>> makeTriangularSolve(const KernelSpec& spec) {
  const Dims &a = spec.inputs[0].dims, &b = spec.inputs[1].dims;
  if (a.size() < 2 || b.size() < 2 || a[a.size() - 1] != a[a.size() - 2])
    return invalid(fmt::format("{}: a has shape {} and b {}; expected matrices [..., M, M] and [..., M, K]", spec.op,
                               dimsText(a), dimsText(b)));
  SS_ASSIGN(MatMulShape shape, matMulShape(a, b));
  return std::make_unique<TriangularSolve>(spec, std::move(shape));
}

constexpr KernelEntry kTriangularEntries[] = {
    {"stepscope", "Cholesky", makeCholesky},
    {"stepscope", "TriangularSolve", makeTriangularSolve},
};

}  // namespace

std::span<const KernelEntry> triangularKernels() { return kTriangularEntries; }

}  // namespace stepscope::reference
