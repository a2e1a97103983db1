// What depends on the order of the elements of a line: TopK, ArgMax, ArgMin and CumSum. A line is the elements along one
// axis.
#include <limits>

#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/support.h"

namespace stepscope::cuda {
inline namespace order_cu {

// Lines of [outer, extent, inner].
struct Lines {
  std::int64_t outer = 1, extent = 1, inner = 1;
  std::int64_t count() const { return outer * inner; }
  SS_DEVICE std::int64_t first(std::int64_t line) const { return line / inner * extent * inner + line % inner; }
};

constexpr std::int64_t kNowhere = std::numeric_limits<std::int64_t>::max(),
                       kBelowAll = std::numeric_limits<std::int64_t>::min(),
                       kRankOfNan = std::numeric_limits<std::int32_t>::max();

// A number that orders as the elements do: equal for both zeros, and of every NaN the largest.
SS_DEVICE std::int64_t rankOf(float x) {
  if (x != x) return kRankOfNan;
  if (x == 0) return 0;
  std::int32_t bits = 0;
  memcpy(&bits, &x, sizeof(bits));
  return bits < 0 ? -static_cast<std::int64_t>(bits & 0x7fffffff) : bits;
}
SS_DEVICE std::int64_t rankOf(std::int32_t x) { return x; }
SS_DEVICE std::int64_t rankOf(std::int64_t x) { return x; }
// The other way round, so that the smallest element has the largest rank.
template <bool kLargest, typename T>
SS_DEVICE std::int64_t rankFor(T x) {
  return kLargest ? rankOf(x) : ~rankOf(x);
}

// x: [outer, extent, inner] → values?, positions?: [outer, k, inner], the largest (smallest) first, the lower position of
// equal ones first. One block per line; it looks through the line once for each result and once more for its position.
template <bool kLargest, typename T>
SS_GLOBAL void pickLargest(Global<const T> x, Global<T> values, Global<std::int64_t> positions, Lines lines,
                           std::int64_t k) {
  const std::int64_t line = gpu::blockIndex(), first = lines.first(line);
  const int thread = gpu::threadIndex(), threads = gpu::blockSize();
  std::int64_t rank = 0, place = -1;  // of the last result; none yet
  for (std::int64_t n = 0; n < k; ++n) {
    std::int64_t best = kBelowAll;
    for (std::int64_t j = thread; j < lines.extent; j += threads) {
      const std::int64_t own = rankFor<kLargest>(static_cast<T>(x[first + j * lines.inner]));
      if (place >= 0 && (own > rank || (own == rank && j <= place))) continue;
      if (own > best) best = own;
    }
    best = joinBlock<Larger>(best);
    std::int64_t at = kNowhere;
    for (std::int64_t j = thread; j < lines.extent && at == kNowhere; j += threads) {
      if (rankFor<kLargest>(static_cast<T>(x[first + j * lines.inner])) != best) continue;
      if (place < 0 || best != rank || j > place) at = j;
    }
    place = joinBlock<Smaller>(at);
    rank = best;
    if (thread != 0) continue;
    const std::int64_t to = (line / lines.inner * k + n) * lines.inner + line % lines.inner;
    const T value = x[first + place * lines.inner];
    if (values.present()) values[to] = value;
    if (positions.present()) positions[to] = place;
  }
}

// x: [outer, extent, inner] → y: [outer, inner], the position of the largest (smallest) element; a NaN beats all. One block
// per line.
template <bool kLargest, typename T>
SS_GLOBAL void findLargest(Global<const T> x, Global<std::int64_t> y, Lines lines, bool last) {
  const std::int64_t first = lines.first(gpu::blockIndex());
  const int thread = gpu::threadIndex(), threads = gpu::blockSize();
  std::int64_t best = kBelowAll;
  const auto rankAt = [&](std::int64_t j) {
    const T value = x[first + j * lines.inner];
    if (value != value) return kNowhere;
    return rankFor<kLargest>(value);
  };
  for (std::int64_t j = thread; j < lines.extent; j += threads) best = Larger::of(best, rankAt(j));
  best = joinBlock<Larger>(best);
  std::int64_t at = last ? -1 : kNowhere;
  for (std::int64_t j = thread; j < lines.extent; j += threads)
    if (rankAt(j) == best && (last || at == kNowhere)) at = j;
  at = last ? joinBlock<Larger>(at) : joinBlock<Smaller>(at);
  if (thread == 0) y[gpu::blockIndex()] = at;
}

// Sums of floats are double, those of integers wrap around.
template <typename T>
struct SumOf {
  using Type = std::make_unsigned_t<T>;
};
template <>
struct SumOf<float> {
  using Type = double;
};

// Which way a running sum goes, and whether it leaves its own element out.
struct Running {
  bool reverse = false, exclusive = false;
};

// x, y: [outer, extent, inner]; y may lie over x. One block per line, which goes along it in pieces of a block.
template <typename T>
SS_GLOBAL void sumAlong(Global<const T> x, Global<T> y, Lines lines, Running running) {
  using Sum = typename SumOf<T>::Type;
  const std::int64_t first = lines.first(gpu::blockIndex());
  const int thread = gpu::threadIndex(), threads = gpu::blockSize();
  Sum before{};
  for (std::int64_t piece = 0; piece < lines.extent; piece += threads) {
    const std::int64_t j = piece + thread;
    const std::int64_t at = first + (running.reverse ? lines.extent - 1 - j : j) * lines.inner;
    Sum own{};
    if (j < lines.extent) own = static_cast<Sum>(static_cast<T>(x[at]));
    SS_SHARED(Sum, sums, kThreads);
    sums[thread] = scanBlock(own);
    gpu::syncThreads();
    // An exclusive sum is not the inclusive one less its element, which may be infinite.
    Sum upTo = before;
    if (!running.exclusive || thread > 0) upTo = before + static_cast<Sum>(sums[running.exclusive ? thread - 1 : thread]);
    if (j < lines.extent) y[at] = static_cast<T>(upTo);
    before = before + static_cast<Sum>(sums[threads - 1]);
    gpu::syncThreads();  // before the next piece writes it
  }
}

// Along attribute `axis` or the given one.
Result<Lines> linesOf(const KernelSpec& spec, std::int64_t given) {
  const Dims& dims = spec.inputs[0].dims;
  const auto axis = normalizeAxis(given, static_cast<std::int64_t>(dims.size()));
  if (!axis) return notTaken(spec, "an axis out of range");
  const auto a = static_cast<std::size_t>(*axis);
  const std::span<const std::int64_t> all(dims);
  return Lines{elementCount(all.first(a)), dims[a], elementCount(all.subspan(a + 1))};
}

template <typename T>
std::unique_ptr<Kernel> makeTopKOf(const Lines& lines, std::int64_t k, bool largest) {
  const auto kernel = largest ? gpu::function<pickLargest<true, T>> : gpu::function<pickLargest<false, T>>;
  return makeLaunched("picks", [=](Launcher& gpu) {
    return gpu.run("top k", kernel, lines.count(), threadsForRow(lines.extent), gpu.in<T>(0), gpu.out<T>(0),
                   gpu.out<std::int64_t>(1), lines, k);
  });
}

template <typename T>
std::unique_ptr<Kernel> makeArgOf(const Lines& lines, bool largest, bool last) {
  const auto kernel = largest ? gpu::function<findLargest<true, T>> : gpu::function<findLargest<false, T>>;
  return makeLaunched("lines", [=](Launcher& gpu) {
    return gpu.run("position of the extreme", kernel, lines.count(), threadsForRow(lines.extent), gpu.in<T>(0),
                   gpu.out<std::int64_t>(0), lines, last);
  });
}

template <typename T>
std::unique_ptr<Kernel> makeCumSumOf(const Lines& lines, const Running& running) {
  return makeLaunched("running sums", [=](Launcher& gpu) {
    return gpu.run("running sums", gpu::function<sumAlong<T>>, lines.count(), threadsForRow(lines.extent), gpu.in<T>(0),
                   gpu.out<T>(0), lines, running);
  });
}

}  // namespace order_cu

// x, k → values?, positions?
Result<std::unique_ptr<Kernel>> makeTopK(const KernelSpec& spec) {
  if (spec.inputs.size() < 2 || spec.outputs.empty()) return notTaken(spec, "too few operands");
  const DType dtype = spec.inputs[0].dtype;
  SS_ASSIGN(const Lines lines, linesOf(spec, spec.attrs.integer("axis", -1)));
  const bool values = spec.outputPresent(0);
  if (!takesInput(spec, 0, dtype) || (values && !takesOutput(spec, 0, dtype)) || (!values && !spec.outputPresent(1)))
    return notTaken(spec, "values of another type, or whose number is not known");
  const std::int64_t results = elementCount(spec.outputs[values ? 0 : 1].dims), k = results / lines.count();
  if (k > lines.extent || results != k * lines.count() || !takesOptionalOutput(spec, 1, results, DType::kI64) ||
      !spec.inputs[1].constant.valid() || spec.inputs[1].constant.elements() != 1 ||
      elementAsInt(spec.inputs[1].constant.view(), 0) != k)
    return notTaken(spec, "a number of results that is not constant");
  const bool largest = spec.attrs.integer("largest", 1) != 0;
  switch (dtype) {
    case DType::kF32: return makeTopKOf<float>(lines, k, largest);
    case DType::kI32: return makeTopKOf<std::int32_t>(lines, k, largest);
    case DType::kI64: return makeTopKOf<std::int64_t>(lines, k, largest);
    default: return notTaken(spec, "elements of type " + std::string(dtypeName(dtype)));
  }
}

Result<std::unique_ptr<Kernel>> makeArgReduce(const KernelSpec& spec) {
  if (spec.inputs.empty() || !takesInput(spec, 0, spec.inputs[0].dtype) || !takesOutput(spec, 0, DType::kI64))
    return notTaken(spec, "too few operands");
  SS_ASSIGN(const Lines lines, linesOf(spec, spec.attrs.integer("axis", 0)));
  if (elementCount(spec.outputs[0].dims) != lines.count()) return notTaken(spec, "a result of another size");
  const bool largest = spec.op == "ArgMax", last = spec.attrs.integer("select_last_index", 0) != 0;
  switch (spec.inputs[0].dtype) {
    case DType::kF32: return makeArgOf<float>(lines, largest, last);
    case DType::kI32: return makeArgOf<std::int32_t>(lines, largest, last);
    default: return notTaken(spec, "elements of type " + std::string(dtypeName(spec.inputs[0].dtype)));
  }
}

// x, axis → y
Result<std::unique_ptr<Kernel>> makeCumSum(const KernelSpec& spec) {
  if (spec.inputs.size() < 2 || !spec.inputs[1].constant.valid() || spec.inputs[1].constant.elements() != 1)
    return notTaken(spec, "an axis that is not constant");
  const DType dtype = spec.inputs[0].dtype;
  if (!takesInput(spec, 0, dtype) || !takesOutput(spec, 0, dtype) ||
      elementCount(spec.inputs[0].dims) != elementCount(spec.outputs[0].dims))
    return notTaken(spec, "a result of another type or size");
  SS_ASSIGN(const Lines lines, linesOf(spec, elementAsInt(spec.inputs[1].constant.view(), 0)));
  const Running running{spec.attrs.integer("reverse", 0) != 0, spec.attrs.integer("exclusive", 0) != 0};
  switch (dtype) {
    case DType::kF32: return makeCumSumOf<float>(lines, running);
    case DType::kI32: return makeCumSumOf<std::int32_t>(lines, running);
    case DType::kI64: return makeCumSumOf<std::int64_t>(lines, running);
    default: return notTaken(spec, "elements of type " + std::string(dtypeName(dtype)));
  }
}

}  // namespace stepscope::cuda
