#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/reference/numbers.h"
#include "kernels/reference/reduction/kernels.h"
#include "kernels/reference/reduction/loops.h"

namespace stepscope::reference {
namespace {

// Integer sums and products are exact modulo 2^64, so cutting one is exact modulo the width of the type; unsigned, to wrap
// defined.
template <typename W>
using Accumulator = std::conditional_t<std::is_same_v<W, double>, double, std::uint64_t>;

template <typename W>
struct Sum {
  using State = Accumulator<W>;
  static State init(const Numbers<W>&) { return 0; }
  static void step(State& s, W v) { s += static_cast<State>(v); }
  static W finish(State s, std::int64_t) { return static_cast<W>(s); }
};

template <typename W>
struct Mean : Sum<W> {
  static W finish(Accumulator<W> s, std::int64_t count) {
    if constexpr (std::is_same_v<W, double>)
      return s / static_cast<double>(count);
    else
      return count == 0 ? W{0} : static_cast<W>(s) / static_cast<W>(count);
  }
};

template <typename W>
struct Prod : Sum<W> {
  static Accumulator<W> init(const Numbers<W>&) { return 1; }
  static void step(Accumulator<W>& s, W v) { s *= static_cast<Accumulator<W>>(v); }
};

template <typename W>
struct SumSquare : Sum<W> {
  static void step(Accumulator<W>& s, W v) { s += static_cast<Accumulator<W>>(v) * static_cast<Accumulator<W>>(v); }
};

template <typename W>
struct L1 : Sum<W> {
  static void step(Accumulator<W>& s, W v) {
    if constexpr (std::is_same_v<W, double>)
      s += std::fabs(v);
    else
      s += v < W{0} ? 0 - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v);
  }
};

struct L2 : Sum<double> {
  static void step(double& s, double v) { s += v * v; }
  static double finish(double s, std::int64_t) { return std::sqrt(s); }
};

struct LogSum : Sum<double> {
  static double finish(double s, std::int64_t) { return std::log(s); }
};

struct LogSumExp {
  struct State {
    double max, sum;
  };
  static State init(const Numbers<double>&) { return {-std::numeric_limits<double>::infinity(), 0}; }
  static void step(State& s, double v) {
    if (v == s.max) {  // also for equal infinities, whose difference is NaN
      s.sum += std::isinf(v) && v < 0 ? 0 : 1;
    } else if (v > s.max) {
      s.sum = s.sum * std::exp(s.max - v) + 1;
      s.max = v;
    } else {
      s.sum += std::exp(v - s.max);
    }
  }
  static double finish(State s, std::int64_t) { return s.max + std::log(s.sum); }
};

template <typename W, bool kMax>
struct Extreme {
  using State = W;
  static State init(const Numbers<W>& numbers) { return kMax ? numbers.lowest : numbers.highest; }
  static void step(State& s, W v) {
    if ((kMax ? v > s : v < s) || v != v) s = v;
  }
  static W finish(State s, std::int64_t) { return s; }
};
template <typename W>
using Max = Extreme<W, true>;
template <typename W>
using Min = Extreme<W, false>;

// Calls visit(offset of the first, stride, count), count <= kBlock, for runs that cover `axes` in row-major order.
template <typename F>
void forEachRun(const Axes& axes, std::int64_t base, F&& visit) {
  if (axes.rank == 0) return visit(base, 1, 1);
  Axes outer = axes;
  --outer.rank;
  const auto last = static_cast<std::size_t>(outer.rank);
  forEachOffset(outer, base, [&](std::int64_t line) {
    for (std::int64_t i = 0; i < axes.extents[last]; i += kBlock)
      visit(line + i * axes.strides[last], axes.strides[last], std::min(kBlock, axes.extents[last] - i));
  });
}

// x in the layout of the plan, y: one element per result.
template <typename W, typename Policy>
void run(const ReducePlan& plan, DType dtype, const TensorView& x, const TensorView& y) {
  const Numbers<W> numbers = numbersOf<W>(dtype);
  std::array<W, kBlock> elements, results;
  std::array<typename Policy::State, kBlock> states;
  forEachResultBlock(plan, [&](std::int64_t result, std::int64_t n, std::int64_t at) {
    std::fill_n(states.begin(), n, Policy::init(numbers));
    if (plan.inner == 1)
      forEachRun(plan.reduced, at, [&](std::int64_t first, std::int64_t stride, std::int64_t count) {
        numbers.load(x.data, first, stride, count, elements.data());
        for (std::int64_t j = 0; j < count; ++j) Policy::step(states[0], elements[static_cast<std::size_t>(j)]);
      });
    else if (plan.count > 0)
      forEachOffset(plan.reduced, at, [&](std::int64_t first) {
        numbers.load(x.data, first, 1, n, elements.data());
        for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) Policy::step(states[j], elements[j]);
      });
    for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) results[j] = Policy::finish(states[j], plan.count);
    numbers.store(results.data(), n, y.data, result);
  });
}

// Computes in what the type of x is computed in; false for what is no number.
template <template <typename> class Policy>
bool runInItsNumbers(const ReducePlan& plan, const TensorView& x, const TensorView& y) {
  const auto number = numberOf(x.dtype);
  if (!number) return false;
  switch (*number) {
    case Number::kReal: run<double, Policy<double>>(plan, x.dtype, x, y); break;
    case Number::kSigned: run<std::int64_t, Policy<std::int64_t>>(plan, x.dtype, x, y); break;
    case Number::kUnsigned: run<std::uint64_t, Policy<std::uint64_t>>(plan, x.dtype, x, y); break;
  }
  return true;
}

Result<ReducePlan> planOf(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  SS_ASSIGN(const std::uint64_t mask, reducedAxes(spec, call, 1, x.dims));
  SS_ASSIGN(ReducePlan plan, planReduction(x.dims, mask));
  SS_TRY(expectElements(spec, "output", call.outputs[0], plan.outputs));
  return plan;
}

template <template <typename> class Policy, bool kTakesBool = false>
Status reduce(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const ReducePlan plan, planOf(spec, call));
  const TensorView& x = call.inputs[0];
  if ((x.dtype == DType::kBool && !kTakesBool) || !runInItsNumbers<Policy>(plan, x, call.outputs[0]))
    return badType(spec, x.dtype);
  return {};
}

// Integers too are computed in double.
template <typename Policy>
Status reduceInDouble(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const ReducePlan plan, planOf(spec, call));
  const TensorView& x = call.inputs[0];
  if (x.dtype == DType::kBool || !numberOf(x.dtype)) return badType(spec, x.dtype);
  run<double, Policy>(plan, x.dtype, x, call.outputs[0]);
  return {};
}

Status reduceToShape(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  const Dims& target = call.outputs[0].dims;
  if (x.dims.size() > 64 || target.size() > x.dims.size())
    return invalid(fmt::format("{}: shape {} does not broadcast to {}", spec.op, dimsText(target), dimsText(x.dims)));
  const std::size_t lead = x.dims.size() - target.size();
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < x.dims.size(); ++i) {
    const std::int64_t wanted = i < lead ? 1 : target[i - lead];
    if (wanted == 1)
      mask |= std::uint64_t{1} << i;
    else if (wanted != x.dims[i])
      return invalid(fmt::format("{}: shape {} does not broadcast to {}", spec.op, dimsText(target), dimsText(x.dims)));
  }
  SS_ASSIGN(const ReducePlan plan, planReduction(x.dims, mask));
  if (x.dtype == DType::kBool || !runInItsNumbers<Sum>(plan, x, call.outputs[0])) return badType(spec, x.dtype);
  return {};
}

// dy per result, x and dx per element. With one zero in a result only that element has a gradient, with two none.
template <typename T>
void prodGrad(const ReducePlan& plan, const T* dy, const T* x, T* dx) {
  struct State {
    double product = 1;
    std::int64_t zeros = 0;
  };
  forEachResultBlock(plan, [&](std::int64_t result, std::int64_t n, std::int64_t at) {
    std::array<State, kBlock> states;
    if (plan.count == 0) return;
    forEachOffset(plan.reduced, at, [&](std::int64_t i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const auto v = static_cast<double>(x[i + j]);
        State& s = states[static_cast<std::size_t>(j)];
        if (v == 0)
          ++s.zeros;
        else
          s.product *= v;
      }
    });
    forEachOffset(plan.reduced, at, [&](std::int64_t i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const auto v = static_cast<double>(x[i + j]);
        const State& s = states[static_cast<std::size_t>(j)];
        const auto d = static_cast<double>(dy[result + j]);
        if (s.zeros == 0)
          dx[i + j] = static_cast<T>(d * (s.product / v));
        else
          dx[i + j] = static_cast<T>(s.zeros == 1 && v == 0 ? d * s.product : 0.0);
      }
    });
  });
}

Status reduceProdGrad(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[1];
  SS_ASSIGN(const std::uint64_t mask, reducedAxes(spec, call, 2, x.dims));
  SS_ASSIGN(const ReducePlan plan, planReduction(x.dims, mask));
  SS_TRY(expectElements(spec, "dy", call.inputs[0], plan.outputs));
  const bool known = dispatchFloat(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    prodGrad<T>(plan, readAs<T>(call.inputs[0]), readAs<T>(x), writeAs<T>(call.outputs[0]));
  });
  if (!known) return badType(spec, x.dtype);
  return {};
}

constexpr KernelEntry kReduceEntries[] = {
    {"", "ReduceL1", plain<reduce<L1>>},
    {"", "ReduceL2", plain<reduceInDouble<L2>>},
    {"", "ReduceLogSum", plain<reduceInDouble<LogSum>>},
    {"", "ReduceLogSumExp", plain<reduceInDouble<LogSumExp>>},
    {"", "ReduceMax", plain<reduce<Max, true>>},
    {"", "ReduceMean", plain<reduce<Mean>>},
    {"", "ReduceMin", plain<reduce<Min, true>>},
    {"", "ReduceProd", plain<reduce<Prod>>},
    {"", "ReduceSum", plain<reduce<Sum>>},
    {"", "ReduceSumSquare", plain<reduce<SumSquare>>},
    {"stepscope", "ReduceProdGrad", plain<reduceProdGrad>},
    {"stepscope", "ReduceToShape", plain<reduceToShape>},
};

}  // namespace

std::span<const KernelEntry> reduceKernels() { return kReduceEntries; }

}  // namespace stepscope::reference
