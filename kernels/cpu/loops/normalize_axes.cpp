// MeanVarianceNormalization, LpNormalization and the gradient of ReduceProd: sums over some axes, kept in double, then every
// element once more. Elements of one result are neighbours (a run), or results lie side by side (columns); a thread has
// whole results.
#include <array>
#include <cmath>

#include "kernels/cpu/loops/axis_runs.h"
#include "kernels/cpu/loops/support.h"
#include "kernels/cpu/loops/vector_math.h"

namespace stepscope::cpu {
namespace {

constexpr std::int64_t kColumns = 512;  // results side by side
using Columns = std::array<double, kColumns>;

// A block of results and the memory that its elements lie in.
struct Blocks {
  reference::ReducePlan plan;
  std::int64_t blocks = 1;  // per position of the kept axes

  static Result<Blocks> of(const Dims& dims, std::uint64_t mask) {
    Blocks b;
    SS_ASSIGN(b.plan, reference::planReduction(dims, mask));
    b.blocks = (b.plan.inner + kColumns - 1) / kColumns;
    return b;
  }
  std::int64_t count() const { return plan.outputs / plan.inner * blocks; }
  std::int64_t cost() const { return plan.count * std::min(kColumns, plan.inner); }
  bool columns() const { return plan.inner > 1; }
  std::int64_t firstResult(std::int64_t block) const { return block / blocks * plan.inner + block % blocks * kColumns; }
  // How many elements visit() is given at once.
  std::int64_t width(std::int64_t block) const {
    if (columns()) return std::min(kColumns, plan.inner - block % blocks * kColumns);
    return neighbours() ? plan.reduced.extents[static_cast<std::size_t>(plan.reduced.rank - 1)] : 1;
  }
  // visit(offset) for the runs, or the rows of columns, of a block.
  template <typename Visit>
  void visit(std::int64_t block, Visit&& body) const {
    reference::Axes outer = plan.reduced;
    outer.rank -= neighbours() ? 1 : 0;
    reference::forEachOffset(outer, offsetOf(plan.kept, plan.kept.rank, block / blocks) + block % blocks * kColumns, body);
  }

 private:
  bool neighbours() const {
    return !columns() && plan.reduced.rank > 0 && plan.reduced.strides[static_cast<std::size_t>(plan.reduced.rank - 1)] == 1;
  }
};

enum class Term { kValue, kSquare, kSize };

template <Term kTerm>
SS_INLINE double termOf(float x, double shift) {
  const double v = static_cast<double>(x) - shift;
  return kTerm == Term::kSquare ? v * v : kTerm == Term::kSize ? std::fabs(v) : v;
}
template <Term kTerm>
SS_CLONES double sumRun(const float* x, double shift, std::int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += termOf<kTerm>(x[i], shift);
  return sum;
}
template <Term kTerm>
SS_CLONES void sumColumns(const float* x, const double* shift, double* sums, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) sums[i] += termOf<kTerm>(x[i], shift[i]);
}
template <Term kTerm>
void gather(const Blocks& b, std::int64_t block, const float* x, const Columns& shift, Columns& sums) {
  sums.fill(0);
  b.visit(block, [&](std::int64_t at) {
    if (b.columns())
      sumColumns<kTerm>(x + at, shift.data(), sums.data(), b.width(block));
    else
      sums[0] += sumRun<kTerm>(x + at, shift[0], b.width(block));
  });
}

// y = (x - shift) scale, one of both for all elements or (kStep 1) one for each.
template <int kStep>
SS_CLONES void apply(const float* x, const double* shift, const double* scale, float* y, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = static_cast<float>((static_cast<double>(x[i]) - shift[i * kStep]) * scale[i * kStep]);
}

enum class Rule { kMeanVariance, kFirst, kSecond };

void normalise(const Blocks& b, Rule rule, std::int64_t block, const float* x, float* y) {
  Columns shift{}, sums;
  const auto count = static_cast<double>(b.plan.count);
  if (rule == Rule::kMeanVariance) {
    gather<Term::kValue>(b, block, x, shift, sums);
    for (std::size_t j = 0; j < shift.size(); ++j) shift[j] = sums[j] / count;
  }
  (rule == Rule::kFirst ? gather<Term::kSize> : gather<Term::kSquare>)(b, block, x, shift, sums);
  for (double& s : sums) {
    if (rule == Rule::kMeanVariance)
      s = 1 / (std::sqrt(s / count) + 1e-9);  // as the function body of ONNX has it
    else
      s = s == 0 ? 0 : 1 / (rule == Rule::kSecond ? std::sqrt(s) : s);
  }
  b.visit(block, [&](std::int64_t at) {
    (b.columns() ? apply<1> : apply<0>)(x + at, shift.data(), sums.data(), y + at, b.width(block));
  });
}

Result<std::unique_ptr<Kernel>> make(const KernelSpec& spec, std::span<const std::int64_t> axes, Rule rule) {
  const Dims& dims = spec.inputs[0].dims;
  std::uint64_t mask = 0;
  for (const std::int64_t given : axes) {
    const auto axis = normalizeAxis(given, static_cast<std::int64_t>(dims.size()));
    if (!axis || *axis > 63) return notTaken(spec, "an axis out of range");
    mask |= std::uint64_t{1} << *axis;
  }
  SS_ASSIGN(const Blocks b, Blocks::of(dims, mask));
  if (elementCount(spec.outputs[0].dims) != b.plan.outputs * b.plan.count) return notTaken(spec, "a result of another size");
  return makeBodyKernel("vector loop", [=, threads = spec.threads](const KernelCall& call) -> Status {
    parallelRows(b.count(), b.cost(), threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block) normalise(b, rule, block, input(call, 0), output(call, 0));
    });
    return {};
  });
}

// Products of what is not zero, and how often zero stands beside it.
SS_CLONES void multiplyRun(const float* x, double& product, double& zeros, std::int64_t n) {
  double p = 1, z = 0;
#pragma omp simd reduction(* : p) reduction(+ : z)
  for (std::int64_t i = 0; i < n; ++i) {
    p *= x[i] == 0 ? 1.0 : static_cast<double>(x[i]);
    z += x[i] == 0 ? 1.0 : 0.0;
  }
  product *= p;
  zeros += z;
}
SS_CLONES void multiplyColumns(const float* x, double* product, double* zeros, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    product[i] *= x[i] == 0 ? 1.0 : static_cast<double>(x[i]);
    zeros[i] += x[i] == 0 ? 1.0 : 0.0;
  }
}
// With one zero in a result only that element has a gradient, with two none. `slope` is dy times the product.
template <int kStep>
SS_CLONES void productSlope(const float* x, const double* slope, const double* zeros, float* dx, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    const double s = slope[i * kStep], z = zeros[i * kStep], share = s / static_cast<double>(x[i]),
                 alone = z == 1 && x[i] == 0 ? s : 0;
    dx[i] = static_cast<float>(z == 0 ? share : alone);
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeMeanVariance(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0)) return notTaken(spec, "elements other than float32");
  return make(spec, spec.attrs.integers("axes", {0, 2, 3}), Rule::kMeanVariance);
}

Result<std::unique_ptr<Kernel>> makeLpNormalization(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0)) return notTaken(spec, "elements other than float32");
  const std::int64_t axis = spec.attrs.integer("axis", -1);
  return make(spec, {&axis, 1}, spec.attrs.integer("p", 2) == 2 ? Rule::kSecond : Rule::kFirst);
}

// dy, x, axes? → dx
Result<std::unique_ptr<Kernel>> makeReduceProdGrad(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesInput(spec, 1) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  if (spec.inputPresent(2) && !spec.inputs[2].constant.valid()) return notTaken(spec, "axes that are not constant");
  const Dims& dims = spec.inputs[1].dims;
  const TensorView axes = spec.inputPresent(2) ? spec.inputs[2].constant.view() : TensorView{};
  KernelCall call;
  const std::array<TensorView, 3> operands{TensorView{}, TensorView{}, axes};
  call.inputs = operands;
  SS_ASSIGN(const std::uint64_t mask, reference::reducedAxes(spec, call, 2, dims));
  SS_ASSIGN(const Blocks b, Blocks::of(dims, mask));
  if (elementCount(spec.inputs[0].dims) != b.plan.outputs ||
      elementCount(spec.outputs[0].dims) != b.plan.outputs * b.plan.count)
    return notTaken(spec, "operands of other sizes");
  return makeBodyKernel("vector loop", [=, threads = spec.threads](const KernelCall& run) -> Status {
    const float *dy = input(run, 0), *x = input(run, 1);
    float* dx = output(run, 0);
    parallelRows(b.count(), b.cost(), threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block) {
        Columns product, zeros{};
        product.fill(1);
        const std::int64_t n = b.width(block), results = b.columns() ? n : 1;
        b.visit(block, [&](std::int64_t at) {
          if (b.columns())
            multiplyColumns(x + at, product.data(), zeros.data(), n);
          else
            multiplyRun(x + at, product[0], zeros[0], n);
        });
        for (std::int64_t j = 0; j < results; ++j)
          product[static_cast<std::size_t>(j)] *= static_cast<double>(dy[b.firstResult(block) + j]);
        b.visit(block, [&](std::int64_t at) {
          (b.columns() ? productSlope<1> : productSlope<0>)(x + at, product.data(), zeros.data(), dx + at, n);
        });
      }
    });
    return {};
  });
}

}  // namespace stepscope::cpu
