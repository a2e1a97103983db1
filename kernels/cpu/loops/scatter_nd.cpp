// GatherND, its gradient, and ScatterND: every index tuple names a run of elements. Places are computed once; a tuple out of
// range is left to the reference kernel, which names it. Where runs are written, every thread owns a range of them and takes
// the tuples that fall into it, in their order: no two threads write one run, and the bits do not depend on the threads.
#include <atomic>
#include <cstring>

#include "kernels/cpu/loops/prefetch.h"
#include "kernels/cpu/loops/scatter_combine.h"
#include "kernels/cpu/loops/strided.h"

namespace stepscope::cpu {
namespace {

// Data of `batches` parts with `rows` runs of `run` elements each; `tuples` index tuples for each part.
struct Tuples {
  static constexpr std::size_t kAxes = 8;
  std::int64_t batches = 1, tuples = 1, rows = 1, run = 1;
  std::size_t length = 0;                                // of a tuple
  std::array<std::int64_t, kAxes> extents{}, strides{};  // of the axes that a tuple names; strides in runs
  bool wide = true;                                      // int64 indices
  std::int64_t count() const { return batches * tuples; }
};

Result<Tuples> tuplesOf(const KernelSpec& spec, const Dims& data, const OperandSpec& indices, const Dims& picked,
                        std::int64_t batchDims) {
  const std::size_t rank = indices.dims.size();
  if ((!takes(indices, DType::kI64) && !takes(indices, DType::kI32)) || rank == 0 || batchDims < 0 ||
      static_cast<std::size_t>(batchDims) >= rank)
    return notTaken(spec, "indices out of the common");
  const auto skipped = static_cast<std::size_t>(batchDims);
  Tuples t;
  t.length = static_cast<std::size_t>(indices.dims.back());
  t.wide = indices.dtype == DType::kI64;
  if (t.length > Tuples::kAxes || t.length + skipped > data.size())
    return notTaken(spec, "indices that do not fit the data");
  const std::span<const std::int64_t> all(data), index(indices.dims);
  if (!std::equal(data.begin(), data.begin() + batchDims, indices.dims.begin()))
    return notTaken(spec, "indices that do not fit the data");
  t.batches = elementCount(all.first(skipped));
  t.tuples = elementCount(index.subspan(skipped, rank - 1 - skipped));
  t.rows = elementCount(all.subspan(skipped, t.length));
  t.run = elementCount(all.subspan(skipped + t.length));
  std::int64_t stride = 1;
  for (std::size_t k = t.length; k-- > 0;) {
    t.extents[k] = data[skipped + k];
    t.strides[k] = stride;
    stride *= t.extents[k];
  }
  if (elementCount(picked) != t.count() * t.run) return notTaken(spec, "updates of another size");
  return t;
}

// The run of every tuple, counted over all parts; false where one is out of range.
template <typename I>
bool findRows(const Tuples& t, const I* indices, std::int64_t* rows, int threads) {
  std::atomic<bool> good{true};
  parallelRows(t.count(), static_cast<std::int64_t>(t.length), threads, [&](std::int64_t begin, std::int64_t end) {
    bool fits = true;
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t row = i / t.tuples * t.rows;
      const I* tuple = indices + i * static_cast<std::int64_t>(t.length);
      for (std::size_t k = 0; k < t.length; ++k) {
        const auto given = static_cast<std::int64_t>(tuple[k]);
        fits = fits && given >= -t.extents[k] && given < t.extents[k];
        row += (given < 0 ? given + t.extents[k] : given) * t.strides[k];
      }
      rows[i] = row;
    }
    if (!fits) good = false;
  });
  return good;
}

// In the workspace of the call; null where a tuple is out of range.
const std::int64_t* rowsOf(const Tuples& t, const KernelCall& call, int threads) {
  auto* rows = reinterpret_cast<std::int64_t*>(call.workspace.data());
  const bool good = t.wide ? findRows(t, input<std::int64_t>(call, 1), rows, threads)
                           : findRows(t, input<std::int32_t>(call, 1), rows, threads);
  return good ? rows : nullptr;
}

std::size_t workspaceOf(const Tuples& t) { return static_cast<std::size_t>(t.count()) * sizeof(std::int64_t); }

// prepare(begin, end) for a thread's own runs, then its updates.
template <Scatter kHow, typename T, typename Prepare>
void scatterRuns(const Tuples& t, const std::int64_t* rows, const T* updates, T* y, int threads, Prepare&& prepare) {
  parallelRows(t.batches * t.rows, t.run, threads, [&](std::int64_t begin, std::int64_t end) {
    prepare(begin, end);
    for (std::int64_t i = 0; i < t.count(); ++i) {
      if (rows[i] < begin || rows[i] >= end) continue;
      if (t.run == 1)
        combineElement<kHow>(y[rows[i]], updates[i]);
      else if constexpr (kHow == Scatter::kReplace)
        std::copy_n(updates + i * t.run, t.run, y + rows[i] * t.run);
      else
        combineRun<kHow>(y + rows[i] * t.run, updates + i * t.run, t.run);
    }
  });
}

template <Scatter kHow, typename T>
void scatterOver(const Tuples& t, const KernelCall& call, const std::int64_t* rows, int threads) {
  const T* x = input<T>(call, 0);
  T* y = output<T>(call, 0);
  scatterRuns<kHow>(t, rows, input<T>(call, 2), y, threads, [&](std::int64_t begin, std::int64_t end) {
    if (x != y) std::copy(x + begin * t.run, x + end * t.run, y + begin * t.run);
  });
}

}  // namespace

std::optional<Scatter> scatterOf(std::string_view reduction) {
  if (reduction == "none") return Scatter::kReplace;
  if (reduction == "add") return Scatter::kAdd;
  if (reduction == "mul") return Scatter::kMul;
  if (reduction == "min") return Scatter::kMin;
  if (reduction == "max") return Scatter::kMax;
  return std::nullopt;
}

Result<std::unique_ptr<Kernel>> makeGatherNd(const KernelSpec& spec) {
  if (!movable(spec, 0, 0) || spec.inputs.size() != 2) return notTaken(spec, "elements that cannot be copied");
  SS_ASSIGN(const Tuples t,
            tuplesOf(spec, spec.inputs[0].dims, spec.inputs[1], spec.outputs[0].dims, spec.attrs.integer("batch_dims", 0)));
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  const std::size_t bytes = static_cast<std::size_t>(t.run) * dtypeSize(spec.inputs[0].dtype);
  constexpr std::int64_t kAhead = 2;  // runs
  const auto body = [=, threads = spec.threads](const KernelCall& call) -> Status {
    const std::int64_t* rows = rowsOf(t, call, threads);
    if (rows == nullptr) return reference->run(call);
    const std::byte* x = bytesOf(call, 0);
    std::byte* y = resultBytes(call, 0);
    parallelRows(t.count(), t.run, threads, [&](std::int64_t begin, std::int64_t end) {
      if (bytes == sizeof(float)) {
        for (std::int64_t i = begin; i < end; ++i)
          output<std::uint32_t>(call, 0)[i] = input<std::uint32_t>(call, 0)[rows[i]];
        return;
      }
      for (std::int64_t i = begin; i < end; ++i) {
        if (i + kAhead < end) prefetchRow(x + static_cast<std::size_t>(rows[i + kAhead]) * bytes, bytes);
        std::memcpy(y + static_cast<std::size_t>(i) * bytes, x + static_cast<std::size_t>(rows[i]) * bytes, bytes);
      }
    });
    return {};
  };
  return makeBodyKernel("run copies", body, workspaceOf(t));
}

Result<std::unique_ptr<Kernel>> makeGatherNdGrad(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0) || spec.inputs.size() < 2)
    return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Tuples t,
            tuplesOf(spec, spec.outputs[0].dims, spec.inputs[1], spec.inputs[0].dims, spec.attrs.integer("batch_dims", 0)));
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  const auto body = [=, threads = spec.threads](const KernelCall& call) -> Status {
    const std::int64_t* rows = rowsOf(t, call, threads);
    if (rows == nullptr) return reference->run(call);
    float* dx = output(call, 0);
    scatterRuns<Scatter::kAdd>(t, rows, input(call, 0), dx, threads, [&](std::int64_t begin, std::int64_t end) {
      std::fill(dx + begin * t.run, dx + end * t.run, 0.0F);
    });
    return {};
  };
  return makeBodyKernel("run sums", body, workspaceOf(t));
}

Result<std::unique_ptr<Kernel>> makeScatterNd(const KernelSpec& spec) {
  if (!movable(spec, 0, 0) || spec.inputs.size() != 3 || !takesInput(spec, 2, spec.inputs[0].dtype) ||
      elementCount(spec.outputs[0].dims) != elementCount(spec.inputs[0].dims))
    return notTaken(spec, "elements that cannot be copied");
  const auto how = scatterOf(spec.attrs.text("reduction", "none"));
  const std::size_t size = dtypeSize(spec.inputs[0].dtype);
  const bool floats = spec.inputs[0].dtype == DType::kF32;
  if (!how || (*how == Scatter::kReplace ? size < 4 : !floats))
    return notTaken(spec, "elements of 1 or 2 bytes, or sums other than float32");
  SS_ASSIGN(const Tuples t, tuplesOf(spec, spec.inputs[0].dims, spec.inputs[1], spec.inputs[2].dims, 0));
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  const auto body = [=, how = *how, threads = spec.threads](const KernelCall& call) -> Status {
    const std::int64_t* rows = rowsOf(t, call, threads);
    if (rows == nullptr) return reference->run(call);
    if (how == Scatter::kReplace && size == 8)
      scatterOver<Scatter::kReplace, std::uint64_t>(t, call, rows, threads);
    else
      withScatter(how, [&](auto tag) { scatterOver<decltype(tag)::value, float>(t, call, rows, threads); });
    return {};
  };
  return makeBodyKernel("run copies", body, workspaceOf(t));
}

}  // namespace stepscope::cpu
