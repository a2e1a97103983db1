#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/reduction/kernels.h"
#include "kernels/reference/reduction/loops.h"

namespace stepscope::reference {
namespace {

// Integer sums and products are exact modulo 2^64, so their cast is exact modulo the width of T; unsigned, to wrap defined.
template <typename T>
using Accumulator = std::conditional_t<kIsFloat<T>, double, std::uint64_t>;

template <typename T>
Accumulator<T> wide(T v) {
  return static_cast<Accumulator<T>>(v);
}

template <typename T>
T narrow(double v) {
  if constexpr (kIsFloat<T>) {
    return static_cast<T>(v);
  } else {
    if (std::isnan(v)) return T{0};
    if (v <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (v >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(v);
  }
}

template <typename T>
struct Sum {
  using State = Accumulator<T>;
  static State init() { return 0; }
  static void step(State& s, T v) { s += wide(v); }
  static T finish(State s, std::int64_t) { return static_cast<T>(s); }
};

template <typename T>
struct Mean : Sum<T> {
  static T finish(Accumulator<T> s, std::int64_t count) {
    if constexpr (kIsFloat<T>)
      return static_cast<T>(s / static_cast<double>(count));
    else if (count == 0)
      return T{0};
    else if constexpr (std::is_signed_v<T>)
      return static_cast<T>(static_cast<std::int64_t>(s) / count);
    else
      return static_cast<T>(s / static_cast<std::uint64_t>(count));
  }
};

template <typename T>
struct Prod : Sum<T> {
  static Accumulator<T> init() { return 1; }
  static void step(Accumulator<T>& s, T v) { s *= wide(v); }
};

template <typename T>
struct SumSquare : Sum<T> {
  static void step(Accumulator<T>& s, T v) { s += wide(v) * wide(v); }
};

template <typename T>
struct L1 : Sum<T> {
  static void step(Accumulator<T>& s, T v) {
    if constexpr (kIsFloat<T>)
      s += std::fabs(wide(v));
    else
      s += v < T{0} ? 0 - wide(v) : wide(v);
  }
};

template <typename T>
struct L2 {
  using State = double;
  static State init() { return 0; }
  static void step(State& s, T v) { s += static_cast<double>(v) * static_cast<double>(v); }
  static T finish(State s, std::int64_t) { return narrow<T>(std::sqrt(s)); }
};

template <typename T>
struct LogSum {
  using State = double;
  static State init() { return 0; }
  static void step(State& s, T v) { s += static_cast<double>(v); }
  static T finish(State s, std::int64_t) { return narrow<T>(std::log(s)); }
};

template <typename T>
struct LogSumExp {
  struct State {
    double max, sum;
  };
  static State init() { return {-std::numeric_limits<double>::infinity(), 0}; }
  static void step(State& s, T element) {
    const auto v = static_cast<double>(element);
    if (v == s.max) {  // also for equal infinities, whose difference is NaN
      s.sum += std::isinf(v) && v < 0 ? 0 : 1;
    } else if (v > s.max) {
      s.sum = s.sum * std::exp(s.max - v) + 1;
      s.max = v;
    } else {
      s.sum += std::exp(v - s.max);
    }
  }
  static T finish(State s, std::int64_t) { return narrow<T>(s.max + std::log(s.sum)); }
};

template <typename T, bool kMax>
struct Extreme {
  using State = std::conditional_t<kIsFloat<T>, double, T>;
  static State init() {
    if constexpr (kIsFloat<T>)
      return kMax ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    else
      return kMax ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  }
  static void step(State& s, T element) {
    const auto v = static_cast<State>(element);
    if ((kMax ? v > s : v < s) || v != v) s = v;
  }
  static T finish(State s, std::int64_t) { return static_cast<T>(s); }
};
template <typename T>
using Max = Extreme<T, true>;
template <typename T>
using Min = Extreme<T, false>;

// x in the layout of the plan, y: one element per result.
template <typename T, typename Policy>
void run(const ReducePlan& plan, const T* x, T* y) {
  if (plan.inner == 1) {
    forEachResultBlock(plan, [&](std::int64_t result, std::int64_t, std::int64_t at) {
      auto state = Policy::init();
      forEachOffset(plan.reduced, at, [&](std::int64_t i) { Policy::step(state, x[i]); });
      y[result] = Policy::finish(state, plan.count);
    });
    return;
  }
  forEachResultBlock(plan, [&](std::int64_t result, std::int64_t n, std::int64_t at) {
    std::array<typename Policy::State, kBlock> states;
    std::fill_n(states.begin(), n, Policy::init());
    if (plan.count > 0)
      forEachOffset(plan.reduced, at, [&](std::int64_t i) {
        for (std::int64_t j = 0; j < n; ++j) Policy::step(states[static_cast<std::size_t>(j)], x[i + j]);
      });
    for (std::int64_t j = 0; j < n; ++j) y[result + j] = Policy::finish(states[static_cast<std::size_t>(j)], plan.count);
  });
}

template <template <typename> class Policy>
Status reduce(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  SS_ASSIGN(const std::uint64_t mask, reducedAxes(spec, call, 1, x.dims));
  SS_ASSIGN(const ReducePlan plan, planReduction(x.dims, mask));
  SS_TRY(expectElements(spec, "output", call.outputs[0], plan.outputs));
  const auto body = [&](auto tag) {
    using T = decltype(tag);
    run<T, Policy<T>>(plan, readAs<T>(x), writeAs<T>(call.outputs[0]));
  };
  if (dispatchNumeric(x.dtype, body)) return {};
  if constexpr (std::is_same_v<Policy<float>, Max<float>> || std::is_same_v<Policy<float>, Min<float>>)
    if (x.dtype == DType::kBool) {
      body(bool{});
      return {};
    }
  return badType(spec, x.dtype);
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
  const bool known = dispatchNumeric(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    run<T, Sum<T>>(plan, readAs<T>(x), writeAs<T>(call.outputs[0]));
  });
  if (!known) return badType(spec, x.dtype);
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

constexpr KernelEntry kEntries[] = {
    {"", "ReduceL1", plain<reduce<L1>>},
    {"", "ReduceL2", plain<reduce<L2>>},
    {"", "ReduceLogSum", plain<reduce<LogSum>>},
    {"", "ReduceLogSumExp", plain<reduce<LogSumExp>>},
    {"", "ReduceMax", plain<reduce<Max>>},
    {"", "ReduceMean", plain<reduce<Mean>>},
    {"", "ReduceMin", plain<reduce<Min>>},
    {"", "ReduceProd", plain<reduce<Prod>>},
    {"", "ReduceSum", plain<reduce<Sum>>},
    {"", "ReduceSumSquare", plain<reduce<SumSquare>>},
    {"stepscope", "ReduceProdGrad", plain<reduceProdGrad>},
    {"stepscope", "ReduceToShape", plain<reduceToShape>},
};

}  // namespace

std::span<const KernelEntry> reduceKernels() { return kEntries; }

}  // namespace stepscope::reference
