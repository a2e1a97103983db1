// Reductions of float32 along any axes, joined in double. A result is cut into parts by the shape alone; each part is joined
// by one block (axes that lie side by side in memory) or one thread (leading axes), then the parts in their order.
#include <limits>

#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/row_parts.h"
#include "kernels/cuda/support.h"
#include "kernels/cuda/walk.h"
#include "kernels/reference/reduction/loops.h"

namespace stepscope::cuda {
inline namespace reduce_cu {

enum class Term { kValue, kSquare, kAbsolute };
enum class Finish { kNone, kMean, kRoot, kLog };

struct Plan {
  Walk<1> kept, reduced;
  std::int64_t outputs = 1, count = 1, parts = 1;
  Finish finish = Finish::kNone;
  bool rows = false;  // the elements of a result lie side by side, a multiple of four from such a place
};

template <Term kTerm>
SS_DEVICE double termOf(float x) {
  const double v = static_cast<double>(x);
  return kTerm == Term::kSquare ? v * v : kTerm == Term::kAbsolute ? fabs(v) : v;
}
SS_DEVICE double finished(const Plan& plan, double value) {
  if (plan.finish == Finish::kMean) return value / static_cast<double>(plan.count);
  if (plan.finish == Finish::kLog) return log(value);
  return plan.finish == Finish::kRoot ? sqrt(value) : value;
}

// Positions [begin, begin + step, …) below end of one result.
template <typename Join, Term kTerm>
SS_DEVICE double joinSome(const Plan& plan, Global<const float> x, std::int64_t base, std::int64_t begin, std::int64_t end,
                          std::int64_t step, double start) {
  double value = start;
  for (std::int64_t i = begin; i < end; i += step) {
    std::int64_t at[1];
    plan.reduced.offsets(i, at);
    value = Join::of(value, termOf<kTerm>(x[base + at[0]]));
  }
  return value;
}

// The same of the quads begin, begin + step … below end, which lie side by side from `base` on.
template <typename Join, Term kTerm>
SS_DEVICE double joinQuads(Global<const float> x, std::int64_t base, std::int64_t begin, std::int64_t end, std::int64_t step,
                           double start, bool wide) {
  double value = start;
  for (std::int64_t q = begin; q < end; q += step) {
    float part[kQuad];
    loadPart(x, base + q * kQuad, wide, part);
    for (const float one : part) value = Join::of(value, termOf<kTerm>(one));
  }
  return value;
}

// y: [outputs, parts]. One block per result and part. wide: as loadPart has it.
template <typename Join, Term kTerm, typename Y>
SS_GLOBAL void reduceByBlocks(Global<const float> x, Global<Y> y, Plan plan, double start, bool wide) {
  const std::int64_t output = gpu::blockIndex() / plan.parts, part = gpu::blockIndex() % plan.parts;
  std::int64_t base[1];
  plan.kept.offsets(output, base);
  const std::int64_t items = plan.rows ? plan.count / kQuad : plan.count, begin = items * part / plan.parts,
                     first = begin + gpu::threadIndex(), end = items * (part + 1) / plan.parts;
  const double own = plan.rows ? joinQuads<Join, kTerm>(x, base[0], first, end, gpu::blockSize(), start, wide)
                               : joinSome<Join, kTerm>(plan, x, base[0], first, end, gpu::blockSize(), start);
  const double value = joinBlock<Join>(own);
  if (gpu::threadIndex() == 0) y[gpu::blockIndex()] = static_cast<Y>(plan.parts == 1 ? finished(plan, value) : value);
}

// y: [parts, outputs]. One thread per result and part.
template <typename Join, Term kTerm, typename Y>
SS_GLOBAL void reduceByThreads(Global<const float> x, Global<Y> y, Plan plan, double start, bool) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= plan.outputs * plan.parts) return;
  const std::int64_t output = i % plan.outputs, part = i / plan.outputs;
  std::int64_t base[1];
  plan.kept.offsets(output, base);
  const double value = joinSome<Join, kTerm>(plan, x, base[0], plan.count * part / plan.parts,
                                             plan.count * (part + 1) / plan.parts, 1, start);
  y[i] = static_cast<Y>(plan.parts == 1 ? finished(plan, value) : value);
}

// parts of result o: partial[o * stride + part * step] → y[outputs].
template <typename Join>
SS_GLOBAL void joinParts(Global<const double> partial, Global<float> y, Plan plan, std::int64_t stride, std::int64_t step) {
  const std::int64_t output = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (output >= plan.outputs) return;
  double value = partial[output * stride];
  for (std::int64_t part = 1; part < plan.parts; ++part)
    value = Join::of(value, static_cast<double>(partial[output * stride + part * step]));
  y[output] = static_cast<float>(finished(plan, value));
}

template <typename Join, Term kTerm>
std::unique_ptr<Kernel> makeOf(const Plan& plan, bool byBlocks, double start) {
  const std::int64_t partials = plan.outputs * plan.parts;
  const int threads = byBlocks ? threadsForRow(plan.count / plan.parts) : kThreads;
  const std::int64_t blocks = byBlocks ? partials : blocksFor(partials);
  const auto isWide = [](Launcher& gpu) { return movesQuads(kQuad, {gpu.call().inputs[0].data}); };
  if (plan.parts == 1)
    return makeLaunched("reduction", [=](Launcher& gpu) {
      return gpu.run(
          "reduction",
          byBlocks ? gpu::function<reduceByBlocks<Join, kTerm, float>> : gpu::function<reduceByThreads<Join, kTerm, float>>,
          blocks, threads, gpu.in<float>(0), gpu.out<float>(0), plan, start, isWide(gpu));
    });
  const auto body = [=](Launcher& gpu) -> Status {
    SS_TRY(gpu.run(
        "reduction: parts",
        byBlocks ? gpu::function<reduceByBlocks<Join, kTerm, double>> : gpu::function<reduceByThreads<Join, kTerm, double>>,
        blocks, threads, gpu.in<float>(0), gpu.room<double>(0, partials), plan, start, isWide(gpu)));
    return gpu.run("reduction", gpu::function<joinParts<Join>>, blocksFor(plan.outputs), kThreads,
                   gpu.readRoom<double>(0, partials), gpu.out<float>(0), plan, byBlocks ? plan.parts : 1,
                   byBlocks ? 1 : plan.outputs);
  };
  return makeLaunched("reduction in " + std::to_string(plan.parts) + " parts", body,
                      static_cast<std::size_t>(partials) * sizeof(double));
}

Result<std::unique_ptr<Kernel>> makeReduction(const KernelSpec& spec, const Dims& dims, std::uint64_t mask) {
  SS_ASSIGN(const reference::ReducePlan axes, reference::planReduction(dims, mask));
  if (elementCount(spec.outputs[0].dims) != axes.outputs) return notTaken(spec, "a result of another size");
  Plan plan;
  const auto addAll = [](Walk<1>& walk, const reference::Axes& from) {
    for (int a = 0; a < from.rank; ++a) {
      const std::int64_t stride[1] = {from.strides[static_cast<std::size_t>(a)]};
      if (!walk.add(from.extents[static_cast<std::size_t>(a)], stride)) return false;
    }
    return true;
  };
  const std::int64_t one[1] = {1};
  if (!addAll(plan.kept, axes.kept) || !plan.kept.add(axes.inner, one) || !addAll(plan.reduced, axes.reduced))
    return notTaken(spec, "more than eight axes");
  plan.outputs = axes.outputs;
  plan.count = axes.count;
  const bool byBlocks = axes.inner < 32;
  plan.rows = plan.reduced.rank == 1 && plan.reduced.strides[0][0] == 1 && plan.count % kQuad == 0;
  for (int a = 0; a < plan.kept.rank; ++a) plan.rows = plan.rows && plan.kept.strides[0][a] % kQuad == 0;
  // Enough parts to fill a GPU where results are few.
  if (byBlocks && plan.outputs < 64)
    plan.parts = std::clamp<std::int64_t>(plan.count / 4096, 1, 256);
  else if (!byBlocks && plan.outputs < 16384)
    plan.parts = std::clamp<std::int64_t>(plan.count / 64, 1, 64);
  if (spec.op == "ReduceMean" || spec.op == "GlobalAveragePool") plan.finish = Finish::kMean;
  if (spec.op == "ReduceL2") plan.finish = Finish::kRoot;
  if (spec.op == "ReduceLogSum") plan.finish = Finish::kLog;
  const double infinity = std::numeric_limits<double>::infinity();
  if (spec.op == "ReduceMax" || spec.op == "GlobalMaxPool") return makeOf<Larger, Term::kValue>(plan, byBlocks, -infinity);
  if (spec.op == "ReduceMin") return makeOf<Smaller, Term::kValue>(plan, byBlocks, infinity);
  if (spec.op == "ReduceProd") return makeOf<Times, Term::kValue>(plan, byBlocks, 1);
  if (spec.op == "ReduceLogSumExp") return makeOf<LogPlus, Term::kValue>(plan, byBlocks, -infinity);
  if (spec.op == "ReduceL1") return makeOf<Plus, Term::kAbsolute>(plan, byBlocks, 0);
  if (spec.op == "ReduceL2" || spec.op == "ReduceSumSquare" || spec.op == "SquareSum")
    return makeOf<Plus, Term::kSquare>(plan, byBlocks, 0);
  return makeOf<Plus, Term::kValue>(plan, byBlocks, 0);
}

}  // namespace reduce_cu

Result<std::unique_ptr<Kernel>> makeReduce(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0)) return notTaken(spec, "elements other than float32");
  const Dims &from = spec.inputs[0].dims, &to = spec.outputs[0].dims;
  const std::size_t rank = from.size();
  if (rank > 31) return notTaken(spec, "too many axes");
  std::uint64_t mask = (std::uint64_t{1} << rank) - 1;
  if (spec.op == "ReduceToShape") {
    if (to.size() > rank) return notTaken(spec, "a result of higher rank");
    const std::size_t lead = rank - to.size();
    mask = 0;
    for (std::size_t a = 0; a < rank; ++a) {
      const std::int64_t wanted = a < lead ? 1 : to[a - lead];
      if (wanted != 1 && wanted != from[a]) return notTaken(spec, "a shape that does not broadcast");
      if (wanted == 1) mask |= std::uint64_t{1} << a;
    }
  } else if (spec.op == "TileGrad") {
    // The copies of an axis are an axis of their own, before it.
    if (to.size() != rank) return notTaken(spec, "a result of another rank");
    Dims dims;
    mask = 0;
    for (std::size_t a = 0; a < rank; ++a) {
      if (from[a] % to[a] != 0) return notTaken(spec, "a shape that does not tile");
      dims.push_back(from[a] / to[a]);
      dims.push_back(to[a]);
      mask |= std::uint64_t{1} << (2 * a);
    }
    return makeReduction(spec, dims, mask);
  } else if (spec.op.starts_with("Global")) {
    if (rank < 2) return notTaken(spec, "no channels");
    mask &= ~std::uint64_t{3};
  } else if (spec.op == "SquareSum") {
    if (elementCount(to) != 1) return notTaken(spec, "a result that is no scalar");
  } else if (spec.inputPresent(1) && elementCount(spec.inputs[1].dims) > 0) {
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
  return makeReduction(spec, from, mask);
}

}  // namespace stepscope::cuda
