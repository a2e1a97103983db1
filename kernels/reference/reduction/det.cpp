#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/reference/reduction/kernels.h"
#include "kernels/reference/reduction/loops.h"

namespace stepscope::reference {
namespace {

struct Matrices {
  std::int64_t count = 1, n = 0;
};

Result<Matrices> matricesOf(const KernelSpec& spec, std::span<const std::int64_t> dims) {
  const std::size_t rank = dims.size();
  if (rank < 2 || dims[rank - 1] != dims[rank - 2])
    return invalid(fmt::format("{}: x has shape {}; expected square matrices [..., M, M]", spec.op, dimsText(dims)));
  return Matrices{elementCount(dims.first(rank - 2)), dims[rank - 1]};
}

// P A Q = L U with complete pivoting, so that a singular matrix of rank r has its zeros in the last n - r rows of U.
struct Factors {
  double* lu;                    // n * n, L below the diagonal (its own diagonal is one), U on and above
  std::int64_t *rows, *columns;  // row i of the factors is row rows[i] of A; columns likewise
  std::int64_t n;
  double sign = 1;  // of both permutations
  std::int64_t rank = 0;

  double& at(std::int64_t i, std::int64_t j) { return lu[i * n + j]; }

  void compute() {
    for (std::int64_t i = 0; i < n; ++i) rows[i] = columns[i] = i;
    for (rank = 0; rank < n; ++rank) {
      std::int64_t pr = rank, pc = rank;
      for (std::int64_t i = rank; i < n; ++i)
        for (std::int64_t j = rank; j < n; ++j)
          if (std::fabs(at(i, j)) > std::fabs(at(pr, pc))) pr = i, pc = j;
      if (at(pr, pc) == 0) return;
      swapRows(rank, pr);
      swapColumns(rank, pc);
      for (std::int64_t i = rank + 1; i < n; ++i) {
        const double factor = at(i, rank) /= at(rank, rank);
        for (std::int64_t j = rank + 1; j < n; ++j) at(i, j) -= factor * at(rank, j);
      }
    }
  }
  void swapRows(std::int64_t a, std::int64_t b) {
    if (a == b) return;
    for (std::int64_t j = 0; j < n; ++j) std::swap(at(a, j), at(b, j));
    std::swap(rows[a], rows[b]);
    sign = -sign;
  }
  void swapColumns(std::int64_t a, std::int64_t b) {
    if (a == b) return;
    for (std::int64_t i = 0; i < n; ++i) std::swap(at(i, a), at(i, b));
    std::swap(columns[a], columns[b]);
    sign = -sign;
  }
  double diagonalProduct(std::int64_t count) {
    double product = sign;
    for (std::int64_t i = 0; i < count; ++i) product *= at(i, i);
    return product;
  }
};

// cofactor(A)[r][c] = d det / d A[r][c], written through write(r, c, value). w and z have room for n elements.
template <typename F>
void cofactors(Factors& f, double* w, double* z, F&& write) {
  const std::int64_t n = f.n;
  if (f.rank + 1 < n) {
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) write(i, j, 0.0);
    return;
  }
  if (f.rank + 1 == n) {
    // adj(A) = sign * Q adj(U) L^-1 P, and adj(U) = prod(u_11 .. u_(n-1)(n-1)) * z e_n^T with U z = 0, z_n = 1.
    const double product = f.diagonalProduct(n - 1);
    for (std::int64_t i = n - 1; i >= 0; --i) {
      z[i] = w[i] = 1;
      if (i == n - 1) continue;
      double fromU = 0, fromL = 0;
      for (std::int64_t k = i + 1; k < n; ++k) fromU += f.at(i, k) * z[k], fromL += f.at(k, i) * w[k];
      z[i] = -fromU / f.at(i, i);
      w[i] = -fromL;
    }
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) write(f.rows[j], f.columns[i], product * z[i] * w[j]);
    return;
  }
  const double det = f.diagonalProduct(n);
  for (std::int64_t j = 0; j < n; ++j) {  // column j of (L U)^-1
    for (std::int64_t i = 0; i < n; ++i) {
      w[i] = i == j ? 1 : 0;
      for (std::int64_t k = 0; k < i; ++k) w[i] -= f.at(i, k) * w[k];
    }
    for (std::int64_t i = n - 1; i >= 0; --i) {
      z[i] = w[i];
      for (std::int64_t k = i + 1; k < n; ++k) z[i] -= f.at(i, k) * z[k];
      z[i] /= f.at(i, i);
    }
    for (std::int64_t i = 0; i < n; ++i) write(f.rows[j], f.columns[i], det * z[i]);
  }
}

// Det: x → y. DetGrad: dy, x → dx = dy * cofactors. One matrix at a time is factored in the workspace.
class Det final : public Kernel {
 public:
  Det(KernelSpec spec, Matrices matrices, bool gradient) : spec_(std::move(spec)), m_(matrices), gradient_(gradient) {}
  std::size_t workspaceBytes() const override {
    const auto n = static_cast<std::size_t>(m_.n);
    return (n * n + 2 * n) * sizeof(double) + 2 * n * sizeof(std::int64_t);
  }
  std::string implementation() const override { return "reference"; }
  Determinism determinism() const override { return Determinism::oneThread(); }

  Status run(const KernelCall& call) override {
    const TensorView& x = call.inputs[gradient_ ? 1 : 0];
    SS_TRY(expectElements(spec_, "x", x, m_.count * m_.n * m_.n));
    SS_TRY(expectElements(spec_, gradient_ ? "dy" : "y", gradient_ ? call.inputs[0] : call.outputs[0], m_.count));
    const bool known = dispatchFloat(x.dtype, [&](auto tag) { compute<decltype(tag)>(call, x); });
    if (!known) return badType(spec_, x.dtype);
    return {};
  }

 private:
  template <typename T>
  void compute(const KernelCall& call, const TensorView& x) const {
    const std::int64_t n = m_.n;
    auto* lu = reinterpret_cast<double*>(call.workspace.data());
    double* w = lu + n * n;
    auto* rows = reinterpret_cast<std::int64_t*>(w + 2 * n);
    for (std::int64_t b = 0; b < m_.count; ++b) {
      const T* matrix = readAs<T>(x) + b * n * n;
      for (std::int64_t i = 0; i < n * n; ++i) lu[i] = static_cast<double>(matrix[i]);
      Factors f{lu, rows, rows + n, n};
      f.compute();
      if (!gradient_) {
        writeAs<T>(call.outputs[0])[b] = static_cast<T>(f.rank < n ? 0.0 : f.diagonalProduct(n));
        continue;
      }
      const auto dy = static_cast<double>(readAs<T>(call.inputs[0])[b]);
      T* dx = writeAs<T>(call.outputs[0]) + b * n * n;
      cofactors(f, w, w + n,
                [&](std::int64_t i, std::int64_t j, double value) { dx[i * n + j] = static_cast<T>(dy * value); });
    }
  }

  KernelSpec spec_;
  Matrices m_;
  bool gradient_;
};

template <bool kGradient>
Result<std::unique_ptr<Kernel>> makeDet(const KernelSpec& spec) {
  SS_ASSIGN(const Matrices matrices, matricesOf(spec, spec.inputs[kGradient ? 1 : 0].dims));
  return std::make_unique<Det>(spec, matrices, kGradient);
}

constexpr KernelEntry kDetEntries[] = {
    {"", "Det", makeDet<false>},
    {"stepscope", "DetGrad", makeDet<true>},
};

}  // namespace

std::span<const KernelEntry> detKernels() { return kDetEntries; }

}  // namespace stepscope::reference
