// Gather and GatherGrad, FlattenAndUnpad and PadAndUnflatten. An index out of range is left to the reference kernel, which
// names it.
#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/cpu/loops/low_operands.h"
#include "kernels/cpu/loops/prefetch.h"
#include "kernels/reference/movement/common.h"

namespace stepscope::cpu {
namespace {

// x is [outer, extent, inner], the picked tensor [outer, picks, inner]; inner in bytes for Gather.
struct Extents {
  std::int64_t outer = 1, extent = 0, inner = 1, picks = 0;
  bool wide = true;  // int64 indices
};

Result<Extents> extentsOf(const KernelSpec& spec, const Dims& data, const OperandSpec& indices, const Dims& picked) {
  const auto axis = normalizeAxis(spec.attrs.integer("axis", 0), static_cast<std::int64_t>(data.size()));
  if (!axis || (!takes(indices, DType::kI64) && !takes(indices, DType::kI32)))
    return notTaken(spec, "an axis or indices out of the common");
  const auto a = static_cast<std::size_t>(*axis);
  const std::span<const std::int64_t> all(data);
  const Extents e{elementCount(all.first(a)), data[a], elementCount(all.subspan(a + 1)), elementCount(indices.dims),
                  indices.dtype == DType::kI64};
  if (elementCount(picked) != e.outer * e.picks * e.inner) return notTaken(spec, "a result of another size");
  return e;
}

constexpr std::int64_t kAhead = 2;  // rows that are fetched ahead

template <typename I>
bool inRange(const I* indices, const Extents& e) {
  for (std::int64_t k = 0; k < e.picks; ++k)
    if (indices[k] < -e.extent || indices[k] >= e.extent) return false;
  return true;
}

// Calls f with the typed indices when all are in range.
template <typename F>
bool withIndices(const KernelCall& call, const Extents& e, F&& f) {
  const auto typed = [&](const auto* indices) {
    if (!inRange(indices, e)) return false;
    f([indices, &e](std::int64_t k) {
      return static_cast<std::int64_t>(indices[k] < 0 ? indices[k] + e.extent : indices[k]);
    });
    return true;
  };
  return e.wide ? typed(input<std::int64_t>(call, 1)) : typed(input<std::int32_t>(call, 1));
}

template <typename T, typename Index>
void pickElements(const T* x, T* y, const Extents& e, const Index& index, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) y[i] = x[i / e.picks * e.extent + index(i % e.picks)];
}

SS_CLONES void addRun(float* to, const float* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

// `padded` is [B, S, ...], `rows` [picks, ...] of B * S.
Result<Extents> rowsOf(const KernelSpec& spec, const Dims& padded, const OperandSpec& indices, const Dims& rows) {
  if (padded.size() < 2 || (!takes(indices, DType::kI64) && !takes(indices, DType::kI32)))
    return notTaken(spec, "rank or indices out of the common");
  const std::span<const std::int64_t> all(padded);
  const Extents e{1, padded[0] * padded[1], elementCount(all.subspan(2)), elementCount(indices.dims),
                  indices.dtype == DType::kI64};
  if (elementCount(rows) != e.picks * e.inner) return notTaken(spec, "a result of another size");
  return e;
}

// Names the first index that is out of range.
Status wrongIndex(const KernelSpec& spec, const KernelCall& call, const Extents& e) {
  for (std::int64_t k = 0; k < e.picks; ++k) {
    const std::int64_t index = e.wide ? input<std::int64_t>(call, 1)[k] : input<std::int32_t>(call, 1)[k];
    if (index < -e.extent || index >= e.extent) return reference::indexError(spec, index, k, e.extent);
  }
  return {};
}

// Float32 rows that are added to a result in a low type: those of one row are added up in float32, in the order of their
// indices, and the sum is rounded once.
Result<std::unique_ptr<Kernel>> makeLowGatherGrad(const KernelSpec& spec) {
  const DType low = spec.outputs[0].dtype;
  if (!takesInput(spec, 0) || !takesInput(spec, 3, low) || !takesOutput(spec, 0, low) ||
      elementCount(spec.inputs[3].dims) != elementCount(spec.outputs[0].dims))
    return notTaken(spec, "rows other than float32, or an addend of another size or type");
  SS_ASSIGN(const Extents e, extentsOf(spec, spec.outputs[0].dims, spec.inputs[1], spec.inputs[0].dims));
  if (e.outer != 1) return notTaken(spec, "an axis behind others");
  struct Pick {
    std::int64_t row, pick;
    bool operator<(const Pick& other) const { return row != other.row ? row < other.row : pick < other.pick; }
  };
  const auto body = [=, threads = spec.threads](const KernelCall& call) -> Status {
    const float* dy = input(call, 0);
    const auto* addend = input<std::byte>(call, 3);
    auto* dx = output<std::byte>(call, 0);
    const FloatSource before(call.inputs[3]);
    const FloatTarget after(call.outputs[0]);
    const std::span<Pick> picks(reinterpret_cast<Pick*>(call.workspace.data()), static_cast<std::size_t>(e.picks));
    const bool good = withIndices(call, e, [&](const auto& index) {
      for (std::int64_t k = 0; k < e.picks; ++k) picks[static_cast<std::size_t>(k)] = {index(k), k};
      std::sort(picks.begin(), picks.end());
      parallelRows(e.extent, e.inner, threads, [&](std::int64_t begin, std::int64_t end) {
        const std::size_t row = static_cast<std::size_t>(e.inner) * dtypeSize(low);
        if (addend != dx)
          std::memcpy(dx + static_cast<std::size_t>(begin) * row, addend + static_cast<std::size_t>(begin) * row,
                      static_cast<std::size_t>(end - begin) * row);
        std::array<float, 1024> room, sum;
        auto at = std::lower_bound(picks.begin(), picks.end(), Pick{begin, 0});
        while (at != picks.end() && at->row < end) {
          const auto last = std::find_if(at, picks.end(), [&](const Pick& pick) { return pick.row != at->row; });
          for (std::int64_t i = 0; i < e.inner; i += 1024) {
            const std::int64_t n = std::min<std::int64_t>(1024, e.inner - i), place = at->row * e.inner + i;
            std::copy_n(before.read(place, n, room.data()), n, sum.data());
            for (auto pick = at; pick != last; ++pick) addRun(sum.data(), dy + pick->pick * e.inner + i, n);
            after.write(place, n, sum.data());
          }
          at = last;
        }
      });
    });
    return good ? Status{} : wrongIndex(spec, call, e);
  };
  return makeBodyKernel("row sums rounded once", body, static_cast<std::size_t>(e.picks) * sizeof(Pick));
}

bool canCopy(const KernelSpec& spec) {
  return spec.inputs.size() >= 2 && !spec.outputs.empty() && spec.inputs[0].dtype != DType::kString &&
         takesInput(spec, 0, spec.outputs[0].dtype) && takesOutput(spec, 0, spec.inputs[0].dtype);
}

Result<std::unique_ptr<Kernel>> makeCopies(const KernelSpec& spec, const Extents& e) {
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  const std::size_t size = dtypeSize(spec.inputs[0].dtype);
  return makeBodyKernel("row copies", [=, threads = spec.threads](const KernelCall& call) -> Status {
    const auto* x = input<std::byte>(call, 0);
    auto* y = output<std::byte>(call, 0);
    const bool good = withIndices(call, e, [&](const auto& index) {
      parallelRows(e.outer * e.picks, e.inner, threads, [&](std::int64_t begin, std::int64_t end) {
        if (e.inner == 1 && size == 4)
          return pickElements(input<std::uint32_t>(call, 0), output<std::uint32_t>(call, 0), e, index, begin, end);
        if (e.inner == 1 && size == 8)
          return pickElements(input<std::uint64_t>(call, 0), output<std::uint64_t>(call, 0), e, index, begin, end);
        const std::size_t run = static_cast<std::size_t>(e.inner) * size;
        const auto row = [&](std::int64_t i) {
          return x + static_cast<std::size_t>(i / e.picks * e.extent + index(i % e.picks)) * run;
        };
        for (std::int64_t i = begin; i < end; ++i) {
          if (i + kAhead < end) prefetchRow(row(i + kAhead), run);
          std::memcpy(y + static_cast<std::size_t>(i) * run, row(i), run);
        }
      });
    });
    return good ? Status{} : reference->run(call);
  });
}

// Every thread zeroes a range of the rows (or takes what they are added to) and then adds the picks that fall into it, in
// their order: no two threads write one row.
Result<std::unique_ptr<Kernel>> makeSums(const KernelSpec& spec, const Extents& e) {
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  return makeBodyKernel("row sums", [=, threads = spec.threads](const KernelCall& call) -> Status {
    const float* dy = input(call, 0);
    float* dx = output(call, 0);
    const float* addend = call.inputPresent(3) ? input(call, 3) : nullptr;
    const bool good = withIndices(call, e, [&](const auto& index) {
      // A dense result larger than the caches is not read again before the optimizer.
      const bool stream = e.outer * e.extent * e.inner * 4 > kStreamBytes;
      parallelRows(e.outer * e.extent, e.inner, threads, [&](std::int64_t begin, std::int64_t end) {
        float* zeros = dx + begin * e.inner;
        if (addend) {
          if (addend != dx) std::copy_n(addend + begin * e.inner, (end - begin) * e.inner, zeros);
        } else if (stream) {
          streamZeros(zeros, (end - begin) * e.inner);
          finishStreams();
        } else {
          std::fill_n(zeros, (end - begin) * e.inner, 0.0F);
        }
        for (std::int64_t o = begin / e.extent; o * e.extent < end; ++o)
          for (std::int64_t k = 0; k < e.picks; ++k) {
            const std::int64_t row = o * e.extent + index(k);
            if (row >= begin && row < end) addRun(dx + row * e.inner, dy + (o * e.picks + k) * e.inner, e.inner);
          }
      });
    });
    return good ? Status{} : reference->run(call);
  });
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeGather(const KernelSpec& spec) {
  if (!canCopy(spec)) return notTaken(spec, "elements that cannot be copied");
  SS_ASSIGN(const Extents e, extentsOf(spec, spec.inputs[0].dims, spec.inputs[1], spec.outputs[0].dims));
  return makeCopies(spec, e);
}

Result<std::unique_ptr<Kernel>> makeFlattenAndUnpad(const KernelSpec& spec) {
  if (!canCopy(spec) || spec.outputs.size() != 1) return notTaken(spec, "elements that cannot be copied, or extents");
  SS_ASSIGN(const Extents e, rowsOf(spec, spec.inputs[0].dims, spec.inputs[1], spec.outputs[0].dims));
  return makeCopies(spec, e);
}

Result<std::unique_ptr<Kernel>> makeGatherGrad(const KernelSpec& spec) {
  if (spec.inputPresent(3) && !spec.outputs.empty() && isLow(spec.outputs[0].dtype)) return makeLowGatherGrad(spec);
  if (spec.inputs.size() < 2 || !takesInput(spec, 0) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  if (!takesOptional(spec, 3, elementCount(spec.outputs[0].dims)))
    return notTaken(spec, "an addend of another size or type");
  SS_ASSIGN(const Extents e, extentsOf(spec, spec.outputs[0].dims, spec.inputs[1], spec.inputs[0].dims));
  return makeSums(spec, e);
}

Result<std::unique_ptr<Kernel>> makePadAndUnflatten(const KernelSpec& spec) {
  if (spec.inputs.size() != 3 || !takesInput(spec, 0) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Extents e, rowsOf(spec, spec.outputs[0].dims, spec.inputs[1], spec.inputs[0].dims));
  return makeSums(spec, e);
}

}  // namespace stepscope::cpu
