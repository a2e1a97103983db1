// Reductions of f32 along any axes, gathered in double. The elements of one result are cut into chunks whose number depends
// on the shape alone, so the bits do not depend on the number of threads.
#include <array>
#include <cmath>
#include <limits>

#include "kernels/cpu/loops/axis_runs.h"
#include "kernels/cpu/loops/lanes_last.h"
#include "kernels/cpu/loops/low_operands.h"
#include "kernels/cpu/loops/support.h"
#include "kernels/cpu/loops/vector_math.h"

namespace stepscope::cpu {
namespace {

using reference::Axes;
using reference::ReducePlan;

enum class Op { kSum, kSquare, kAbsolute, kMax, kMin, kProduct, kExponential };  // the last: sums of e^(x - peak)
constexpr std::int64_t kColumns = 256;                                           // results that are gathered side by side
constexpr std::int64_t kChunkElements = 8192;  // below this a chunk is not worth its own sum

constexpr double startOf(Op op) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return op == Op::kMax ? -kInfinity : op == Op::kMin ? kInfinity : op == Op::kProduct ? 1 : 0;
}

[[gnu::always_inline]] inline double join(Op op, double a, double b) {
  if (op == Op::kMax) return a != a || a > b ? a : b;
  if (op == Op::kMin) return a != a || a < b ? a : b;
  if (op == Op::kProduct) return a * b;
  return a + b;
}

// One number from `count` neighbours.
template <Op kOp>
SS_CLONES double gatherRun(const float* x, std::int64_t count, float peak) {
  if constexpr (kOp == Op::kMax || kOp == Op::kMin) {
    float best = static_cast<float>(startOf(kOp));
    int nan = 0;
    if constexpr (kOp == Op::kMax) {
#pragma omp simd reduction(max : best) reduction(| : nan)
      for (std::int64_t i = 0; i < count; ++i) {
        best = x[i] > best ? x[i] : best;
        nan |= static_cast<int>(x[i] != x[i]);
      }
    } else {
#pragma omp simd reduction(min : best) reduction(| : nan)
      for (std::int64_t i = 0; i < count; ++i) {
        best = x[i] < best ? x[i] : best;
        nan |= static_cast<int>(x[i] != x[i]);
      }
    }
    return nan != 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(best);
  } else if constexpr (kOp == Op::kProduct) {
    double product = 1;
#pragma omp simd reduction(* : product)
    for (std::int64_t i = 0; i < count; ++i) product *= static_cast<double>(x[i]);
    return product;
  } else {
    const auto term = [peak](float value) __attribute__((always_inline)) {
      if constexpr (kOp == Op::kExponential) return static_cast<double>(expOf(value - peak));
      const auto v = static_cast<double>(value);
      return kOp == Op::kSquare ? v * v : kOp == Op::kAbsolute ? std::fabs(v) : v;
    };
    // Four sums: one would wait for each of its additions.
    double a = 0, b = 0, c = 0, d = 0;
    const std::int64_t quarter = count / 4;
#pragma omp simd reduction(+ : a, b, c, d)
    for (std::int64_t i = 0; i < quarter; ++i) {
      a += term(x[i]);
      b += term(x[i + quarter]);
      c += term(x[i + 2 * quarter]);
      d += term(x[i + 3 * quarter]);
    }
    for (std::int64_t i = 4 * quarter; i < count; ++i) a += term(x[i]);
    return (a + b) + (c + d);
  }
}

// Adds a row of `count` to as many gathered numbers.
template <Op kOp>
SS_CLONES void gatherRow(double* sums, const float* x, std::int64_t count, const float* peaks) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto v = static_cast<double>(kOp == Op::kExponential ? expOf(x[i] - peaks[i]) : x[i]);
    if constexpr (kOp == Op::kMax)
      sums[i] = v > sums[i] || v != v ? v : sums[i];
    else if constexpr (kOp == Op::kMin)
      sums[i] = v < sums[i] || v != v ? v : sums[i];
    else if constexpr (kOp == Op::kProduct)
      sums[i] *= v;
    else
      sums[i] += kOp == Op::kSquare ? v * v : kOp == Op::kAbsolute ? std::fabs(v) : v;
  }
}

constexpr std::int64_t kRows = 8;

// kRows rows at once, `step` apart: added in float before they join the double.
template <Op kOp>
SS_CLONES void gatherRows(double* sums, const float* x, std::int64_t step, std::int64_t count) {
  const auto term = [&](std::int64_t i) { return kOp == Op::kAbsolute ? std::fabs(x[i]) : x[i]; };
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    const float low = (term(i) + term(i + step)) + (term(i + 2 * step) + term(i + 3 * step));
    const float high = (term(i + 4 * step) + term(i + 5 * step)) + (term(i + 6 * step) + term(i + 7 * step));
    sums[i] += static_cast<double>(low + high);
  }
}

// What two chunks gathered for `count` results, into the first.
template <Op kOp>
SS_CLONES void joinRow(double* sums, const double* other, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) sums[i] = join(kOp, sums[i], other[i]);
}

struct Gather {
  Op op;
  double (*run)(const float*, std::int64_t, float peak);
  void (*row)(double*, const float*, std::int64_t, const float* peaks);
  void (*rows)(double*, const float*, std::int64_t,
               std::int64_t);  // null where rows cannot be joined first: extremes, and squares, which could overflow
  void (*join)(double*, const double*, std::int64_t);
};
template <Op kOp>
constexpr Gather gatherOf() {
  return {kOp, gatherRun<kOp>, gatherRow<kOp>, kOp == Op::kSum || kOp == Op::kAbsolute ? gatherRows<kOp> : nullptr,
          joinRow<kOp>};
}

enum class Finish { kNone, kMean, kRoot, kLogarithm, kPeak, kAbovePeak };

struct Plan {
  ReducePlan axes;
  Gather gather{};
  Finish finish = Finish::kNone;
  std::int64_t outer = 1;   // kept positions before the inner run
  std::int64_t blocks = 1;  // blocks of results per kept position
  std::int64_t chunks = 1;  // chunks per result
  std::int64_t run = 1;     // neighbours that are gathered at once where inner is 1
  std::int64_t steps = 1;   // reduced positions (runs of `run` elements)
  int threads = 1;

  std::int64_t width() const { return std::min(kColumns, axes.inner); }
};

// The part of block `block` of kept position `outer` that chunk `chunk` gathers; `sums` has room for one block,
// whose results, where a pass before this one wrote them, are `peaks`.
void gatherChunk(const Plan& plan, const float* x, std::int64_t outer, std::int64_t block, std::int64_t chunk, double* sums,
                 const float* peaks) {
  const std::int64_t base = offsetOf(plan.axes.kept, plan.axes.kept.rank, outer) + block * kColumns;
  const std::int64_t n = std::min(kColumns, plan.axes.inner - block * kColumns);
  std::fill_n(sums, n, startOf(plan.gather.op));
  if (plan.axes.inner == 1) {
    // Chunks split the elements: a run may be cut.
    const float peak = plan.gather.op == Op::kExponential ? *peaks : 0;
    const std::int64_t total = plan.steps * plan.run, end = total * (chunk + 1) / plan.chunks;
    for (std::int64_t i = total * chunk / plan.chunks; i < end;) {
      const std::int64_t step = i / plan.run, at = i - step * plan.run, count = std::min(plan.run - at, end - i);
      const int outerAxes = plan.run > 1 ? plan.axes.reduced.rank - 1 : plan.axes.reduced.rank;
      sums[0] = join(plan.gather.op, sums[0],
                     plan.gather.run(x + base + offsetOf(plan.axes.reduced, outerAxes, step) + at, count, peak));
      i += count;
    }
    return;
  }
  const std::int64_t end = plan.steps * (chunk + 1) / plan.chunks;
  std::int64_t step = plan.steps * chunk / plan.chunks;
  if (plan.axes.reduced.rank == 1 && plan.gather.rows != nullptr) {
    const std::int64_t stride = plan.axes.reduced.strides[0];
    for (; step + kRows <= end; step += kRows) plan.gather.rows(sums, x + base + step * stride, stride, n);
  }
  for (; step < end; ++step)
    plan.gather.row(sums, x + base + offsetOf(plan.axes.reduced, plan.axes.reduced.rank, step), n, peaks);
}

float finished(const Plan& plan, double value, float peak) {
  constexpr auto kLargest = static_cast<double>(std::numeric_limits<float>::max());
  if (plan.finish == Finish::kMean) return static_cast<float>(value / static_cast<double>(plan.axes.count));
  if (plan.finish == Finish::kRoot) return static_cast<float>(std::sqrt(value));
  if (plan.finish == Finish::kLogarithm) return static_cast<float>(std::log(value));
  if (plan.finish == Finish::kPeak)
    return std::fabs(value) <= kLargest ? static_cast<float>(value) : 0;  // infinities must not meet in a difference
  if (plan.finish == Finish::kAbovePeak) return static_cast<float>(static_cast<double>(peak) + std::log(value));
  return static_cast<float>(value);
}

// One pass or, for the logarithm of a sum of exponentials, first their peaks; both cut the elements alike.
using Passes = std::vector<Plan>;

Status run(const Passes& passes, const KernelCall& call) {
  const float* x = input(call, 0);
  float* y = output(call, 0);
  const Plan& cut = passes.front();
  const std::int64_t results = cut.outer * cut.blocks, cost = cut.axes.count * cut.width();
  const auto place = [&](std::int64_t item) {
    return y + item / cut.blocks * cut.axes.inner + item % cut.blocks * kColumns;
  };
  const auto width = [&](std::int64_t item) { return std::min(kColumns, cut.axes.inner - item % cut.blocks * kColumns); };
  const auto finish = [&](const Plan& plan, std::int64_t item, const double* sums) {
    float* to = place(item);
    for (std::int64_t j = 0; j < width(item); ++j) to[j] = finished(plan, sums[j], to[j]);
  };
  if (cut.chunks == 1) {
    parallelRows(results, cost, cut.threads, [&](std::int64_t begin, std::int64_t end) {
      std::array<double, kColumns> sums;
      for (std::int64_t item = begin; item < end; ++item)
        for (const Plan& plan : passes) {
          gatherChunk(plan, x, item / cut.blocks, item % cut.blocks, 0, sums.data(), place(item));
          finish(plan, item, sums.data());
        }
    });
    return {};
  }
  auto* partial = reinterpret_cast<double*>(call.workspace.data());
  for (const Plan& plan : passes) {
    parallelRows(results * cut.chunks, cost / cut.chunks, cut.threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t item = i / cut.chunks;
        gatherChunk(plan, x, item / cut.blocks, item % cut.blocks, i % cut.chunks, partial + i * cut.width(), place(item));
      }
    });
    for (std::int64_t item = 0; item < results; ++item) {
      double* own = partial + item * cut.chunks * cut.width();
      for (std::int64_t chunk = 1; chunk < cut.chunks; ++chunk)
        plan.gather.join(own, own + chunk * cut.width(), width(item));
      finish(plan, item, own);
    }
  }
  return {};
}

Result<std::unique_ptr<Kernel>> makeReduction(const KernelSpec& spec, const Dims& dims, std::uint64_t mask, Gather gather,
                                              Finish finish) {
  if (isBlocked(spec.inputs[0])) {
    // Results are plain: their channels are neighbours, or are gone.
    const std::uint64_t space = ((std::uint64_t{1} << dims.size()) - 1) & ~std::uint64_t{3};
    if (isBlocked(spec.outputs[0]) || ((mask & 2) == 0 && (mask & space) != space))
      return notTaken(spec, "channels kept beside other axes");
    KernelSpec seen = spec;
    seen.inputs[0] = lanesLast(spec.inputs[0]);
    return makeReduction(seen, seen.inputs[0].dims, lanesLast(mask, dims.size()), gather, finish);
  }
  Plan plan;
  SS_ASSIGN(plan.axes, reference::planReduction(dims, mask));
  if (elementCount(spec.outputs[0].dims) != plan.axes.outputs) return notTaken(spec, "a result of another size");
  plan.gather = gather;
  plan.finish = finish;
  plan.threads = spec.threads;
  plan.outer = plan.axes.outputs / plan.axes.inner;
  plan.blocks = (plan.axes.inner + kColumns - 1) / kColumns;
  const Axes& reduced = plan.axes.reduced;
  if (plan.axes.inner == 1 && reduced.rank > 0 && reduced.strides[static_cast<std::size_t>(reduced.rank - 1)] == 1)
    plan.run = reduced.extents[static_cast<std::size_t>(reduced.rank - 1)];
  plan.steps = plan.axes.count / plan.run;
  // Few results: their elements are shared out.
  const std::int64_t items = plan.outer * plan.blocks, elements = plan.axes.count * plan.width();
  if (items < 16)
    plan.chunks = std::clamp<std::int64_t>(elements / kChunkElements, 1,
                                           plan.axes.inner == 1 ? 64 : std::min<std::int64_t>(64, plan.steps));
  const std::size_t workspace =
      plan.chunks == 1 ? 0 : static_cast<std::size_t>(items * plan.chunks * plan.width()) * sizeof(double);
  Passes passes{plan};
  if (finish == Finish::kAbovePeak) {
    passes.insert(passes.begin(), plan);
    passes.front().gather = gatherOf<Op::kMax>();
    passes.front().finish = Finish::kPeak;
  }
  return makeBodyKernel(
      "vector loop", [passes = std::move(passes)](const KernelCall& call) { return run(passes, call); }, workspace);
}

}  // namespace

// The axes are an input that must be known when the kernel is made.
Result<std::unique_ptr<Kernel>> makeReduce(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0)) return notTaken(spec, "elements other than float32");
  const auto rank = spec.inputs[0].dims.size();
  if (rank > 63) return notTaken(spec, "too many axes");
  std::uint64_t mask = (std::uint64_t{1} << rank) - 1;
  if (spec.inputPresent(1) && elementCount(spec.inputs[1].dims) > 0) {
    if (!spec.inputs[1].constant.valid()) return notTaken(spec, "axes that are not constant");
    mask = 0;
    for (const std::int64_t given : intElements(spec.inputs[1].constant.view())) {
      const auto axis = normalizeAxis(given, static_cast<std::int64_t>(rank));
      if (!axis) return notTaken(spec, "an axis out of range");
      mask |= std::uint64_t{1} << *axis;
    }
  } else if (spec.attrs.integer("noop_with_empty_axes", 0) != 0) {
    return notTaken(spec, "nothing to reduce");
  }
  if (spec.op == "ReduceL1") return makeReduction(spec, spec.inputs[0].dims, mask, gatherOf<Op::kAbsolute>(), Finish::kNone);
  if (spec.op == "ReduceL2") return makeReduction(spec, spec.inputs[0].dims, mask, gatherOf<Op::kSquare>(), Finish::kRoot);
  if (spec.op == "ReduceLogSum")
    return makeReduction(spec, spec.inputs[0].dims, mask, gatherOf<Op::kSum>(), Finish::kLogarithm);
  if (spec.op == "ReduceLogSumExp")
    return makeReduction(spec, spec.inputs[0].dims, mask, gatherOf<Op::kExponential>(), Finish::kAbovePeak);
  if (spec.op == "ReduceMax") return makeReduction(spec, spec.inputs[0].dims, mask, gatherOf<Op::kMax>(), Finish::kNone);
  if (spec.op == "ReduceMean") return makeReduction(spec, spec.inputs[0].dims, mask, gatherOf<Op::kSum>(), Finish::kMean);
  if (spec.op == "ReduceMin") return makeReduction(spec, spec.inputs[0].dims, mask, gatherOf<Op::kMin>(), Finish::kNone);
  if (spec.op == "ReduceProd")
    return makeReduction(spec, spec.inputs[0].dims, mask, gatherOf<Op::kProduct>(), Finish::kNone);
  if (spec.op == "ReduceSumSquare")
    return makeReduction(spec, spec.inputs[0].dims, mask, gatherOf<Op::kSquare>(), Finish::kNone);
  return makeReduction(spec, spec.inputs[0].dims, mask, gatherOf<Op::kSum>(), Finish::kNone);
}

// GlobalMaxPool and GlobalLpPool: all axes behind the channels.
Result<std::unique_ptr<Kernel>> makeReduceSpace(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0)) return notTaken(spec, "elements other than float32");
  const Dims& dims = spec.inputs[0].dims;
  if (dims.size() < 3 || dims.size() > 63) return notTaken(spec, "no axes to reduce");
  const std::uint64_t space = ((std::uint64_t{1} << dims.size()) - 1) & ~std::uint64_t{3};
  if (spec.op == "GlobalMaxPool") return makeReduction(spec, dims, space, gatherOf<Op::kMax>(), Finish::kNone);
  const std::int64_t power = spec.attrs.integer("p", 2);
  if (power == 1) return makeReduction(spec, dims, space, gatherOf<Op::kAbsolute>(), Finish::kNone);
  if (power == 2) return makeReduction(spec, dims, space, gatherOf<Op::kSquare>(), Finish::kRoot);
  return notTaken(spec, "other powers than 1 and 2");
}

Result<std::unique_ptr<Kernel>> makeReduceToShape(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0)) return notTaken(spec, "elements other than float32");
  const Dims &from = spec.inputs[0].dims, &to = spec.outputs[0].dims;
  if (to.size() > from.size() || from.size() > 63) return notTaken(spec, "a result of higher rank");
  const std::size_t lead = from.size() - to.size();
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::int64_t wanted = i < lead ? 1 : to[i - lead];
    if (wanted == 1)
      mask |= std::uint64_t{1} << i;
    else if (wanted != from[i])
      return notTaken(spec, "a shape that does not broadcast");
  }
  return makeReduction(spec, spec.inputs[0].dims, mask, gatherOf<Op::kSum>(), Finish::kNone);
}

// The copies of an axis are an axis of their own, before it.
Result<std::unique_ptr<Kernel>> makeTileGrad(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0)) return notTaken(spec, "elements other than float32");
  const Dims &all = spec.inputs[0].dims, &one = spec.outputs[0].dims;
  if (all.size() != one.size() || all.size() > 31) return notTaken(spec, "a result of another rank");
  Dims dims;
  std::uint64_t mask = 0;
  for (std::size_t a = 0; a < all.size(); ++a) {
    if (all[a] % one[a] != 0) return notTaken(spec, "a shape that does not tile");
    dims.push_back(all[a] / one[a]);
    dims.push_back(one[a]);
    mask |= std::uint64_t{1} << (2 * a);
  }
  return makeReduction(spec, dims, mask, gatherOf<Op::kSum>(), Finish::kNone);
}

Result<std::unique_ptr<Kernel>> makeSquareSum(const KernelSpec& spec) {
  if (!spec.inputs.empty() && isLow(spec.inputs[0].dtype)) return makeLowSquareSum(spec);
  if (!takesInput(spec, 0) || !takesOutput(spec, 0) || elementCount(spec.outputs[0].dims) != 1 ||
      spec.inputs[0].dims.size() > 63)
    return notTaken(spec, "operands other than a float32 tensor and a scalar");
  return makeReduction(spec, spec.inputs[0].dims, (std::uint64_t{1} << spec.inputs[0].dims.size()) - 1,
                       gatherOf<Op::kSquare>(), Finish::kNone);
}

}  // namespace stepscope::cpu
