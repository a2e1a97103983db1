// Gather and its gradient. The gradient is deterministic without a sort: of all picks of a row, the first one's warp adds
// them up in their order. With attribute `unordered` (option deterministic=off) every element is added atomically instead.
#include "kernels/cuda/support.h"
#include "kernels/reference/movement/common.h"

namespace stepscope::cuda {
inline namespace gather_cu {

// x: [outer, extent, inner], indices: [picks], y: [outer, picks, inner].
struct Extents {
  std::int64_t outer = 1, extent = 0, inner = 1, picks = 0;
};

SS_DEVICE std::int64_t inRange(std::int64_t index, std::int64_t extent) { return index < 0 ? index + extent : index; }

// One thread per element, or per 16 bytes of a row. An index out of range gives zeros and a complaint.
template <typename Word, typename Index>
SS_GLOBAL void gatherElements(Global<const Word> x, Global<const Index> indices, Global<Word> y, Extents e,
                              Complaint complaint) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= e.outer * e.picks * e.inner) return;
  const std::int64_t column = i % e.inner, pick = i / e.inner % e.picks, o = i / e.inner / e.picks;
  const Index given = indices[pick];
  const std::int64_t index = inRange(given, e.extent);
  Word word{};
  if (index >= 0 && index < e.extent)
    word = x[(o * e.extent + index) * e.inner + column];
  else
    complaint.raise(pick, given);
  y[i] = word;
}

// dx = addend, or zeros.
SS_GLOBAL void begin(Global<const float> addend, Global<float> dx, std::int64_t count) {
  const std::int64_t first = (gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex()) * 4;
  if (first + 4 <= count) {
    dx.setFour(first, addend.present() ? addend.four(first) : gpu::Four<float>{});
    return;
  }
  for (std::int64_t i = first; i < count; ++i) dx[i] = addend.present() ? static_cast<float>(addend[i]) : 0.0F;
}

// dy: [outer, picks, inner] is added to rows of dx: [outer, extent, inner]. One warp per pick and outer index; it does
// nothing when an earlier pick is of the same row.
template <typename Index>
SS_GLOBAL void addPicks(Global<const float> dy, Global<const Index> indices, Global<float> dx, Extents e,
                        Complaint complaint) {
  const std::int64_t mine = gpu::blockIndex() % e.picks, o = gpu::blockIndex() / e.picks;
  const int lane = gpu::threadIndex();
  const Index given = indices[mine];
  const std::int64_t row = inRange(given, e.extent);
  if (row < 0 || row >= e.extent) {
    if (lane == 0) complaint.raise(mine, given);
    return;
  }
  for (std::int64_t first = 0; first < mine; first += 32) {
    const std::int64_t k = first + lane;
    if (gpu::ballot(k < mine && inRange(indices[k < mine ? k : mine], e.extent) == row) != 0) return;
  }
  for (std::int64_t first = mine / 32 * 32; first < e.picks; first += 32) {
    const std::int64_t k = first + lane;
    unsigned same = gpu::ballot(k >= mine && k < e.picks && inRange(indices[k < e.picks ? k : mine], e.extent) == row);
    for (; same != 0; same &= same - 1) {
      const std::int64_t pick = first + gpu::firstBit(same);
      for (std::int64_t j = lane; j < e.inner; j += 32)
        dx[(o * e.extent + row) * e.inner + j] += dy[(o * e.picks + pick) * e.inner + j];
    }
  }
}

// The same with a thread per element of dy, in the order in which threads arrive.
template <typename Index>
SS_GLOBAL void addAtOnce(Global<const float> dy, Global<const Index> indices, Global<float> dx, Extents e,
                         Complaint complaint) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= e.outer * e.picks * e.inner) return;
  const std::int64_t column = i % e.inner, pick = i / e.inner % e.picks, o = i / e.inner / e.picks;
  const Index given = indices[pick];
  const std::int64_t row = inRange(given, e.extent);
  if (row < 0 || row >= e.extent)
    complaint.raise(pick, given);
  else
    dx.atomicAdd((o * e.extent + row) * e.inner + column, dy[i]);
}

Result<Extents> extentsOf(const KernelSpec& spec, const Dims& data, const Dims& picked) {
  const auto axis = normalizeAxis(spec.attrs.integer("axis", 0), static_cast<std::int64_t>(data.size()));
  if (!axis || (!takesInput(spec, 1, DType::kI64) && !takesInput(spec, 1, DType::kI32)))
    return notTaken(spec, "an axis or indices out of the common");
  const auto a = static_cast<std::size_t>(*axis);
  const std::span<const std::int64_t> all(data);
  const Extents e{elementCount(all.first(a)), data[a], elementCount(all.subspan(a + 1)), elementCount(spec.inputs[1].dims)};
  if (elementCount(picked) != e.outer * e.picks * e.inner) return notTaken(spec, "a result of another size");
  return e;
}

template <typename Word, typename Index>
std::unique_ptr<Kernel> makeGatherOf(const KernelSpec& spec, const Extents& e) {
  return makeLaunched("gather", [=](Launcher& gpu) {
    const Complaint complaint = gpu.complaint([=](std::int64_t position, std::int64_t value) {
      return reference::indexError(spec, value, position, e.extent).value();
    });
    const KernelCall& call = gpu.call();
    const auto gatherAs = [&]<typename T>(T, const Extents& words) {
      return gpu.run("gather", gpu::function<gatherElements<T, Index>>, blocksFor(words.outer * words.picks * words.inner),
                     kThreads, gpu.in<T>(0), gpu.in<Index>(1), gpu.out<T>(0), words, complaint);
    };
    if (!movesWide(call.inputs[0].data, call.outputs[0].data, e.inner * static_cast<std::int64_t>(sizeof(Word))))
      return gatherAs(Word{}, e);
    Extents wide = e;
    wide.inner /= static_cast<std::int64_t>(sizeof(Wide) / sizeof(Word));
    return gatherAs(Wide{}, wide);
  });
}

template <typename Word>
std::unique_ptr<Kernel> makeGatherOf(const KernelSpec& spec, const Extents& e) {
  return spec.inputs[1].dtype == DType::kI64 ? makeGatherOf<Word, std::int64_t>(spec, e)
                                             : makeGatherOf<Word, std::int32_t>(spec, e);
}

template <typename Index>
std::unique_ptr<Kernel> makeGatherGradOf(const KernelSpec& spec, const Extents& e) {
  const bool unordered = isUnordered(spec);
  const auto body = [=](Launcher& gpu) -> Status {
    const std::int64_t total = e.outer * e.extent * e.inner;
    const bool inPlace = gpu.call().inputPresent(3) && gpu.call().inputs[3].data == gpu.call().outputs[0].data;
    if (!inPlace)
      SS_TRY(gpu.run("gather gradient: begin", gpu::function<begin>, blocksFor(total, kThreads * 4), kThreads,
                     gpu.in<float>(3), gpu.out<float>(0), total));
    const Complaint complaint = gpu.complaint([=](std::int64_t position, std::int64_t value) {
      return reference::indexError(spec, value, position, e.extent).value();
    });
    if (unordered)
      return gpu.run("gather gradient", gpu::function<addAtOnce<Index>>, blocksFor(e.outer * e.picks * e.inner), kThreads,
                     gpu.in<float>(0), gpu.in<Index>(1), gpu.out<float>(0, Access::kReadWrite), e, complaint);
    return gpu.run("gather gradient", gpu::function<addPicks<Index>>, e.outer * e.picks, 32, gpu.in<float>(0),
                   gpu.in<Index>(1), gpu.out<float>(0, Access::kReadWrite), e, complaint);
  };
  if (unordered) return makeLaunched("atomic sums", body, 0, inOrderOfArrival("the picks of a row"));
  return makeLaunched("row sums", body, 0, Determinism::fixed("the picks of a row are added in their order by one warp"));
}

}  // namespace gather_cu

Result<std::unique_ptr<Kernel>> makeGather(const KernelSpec& spec) {
  if (spec.inputs.size() < 2 || spec.outputs.empty() || spec.inputs[0].dtype == DType::kString ||
      !takesInput(spec, 0, spec.outputs[0].dtype) || !takesOutput(spec, 0, spec.inputs[0].dtype))
    return notTaken(spec, "elements that cannot be copied");
  SS_ASSIGN(const Extents e, extentsOf(spec, spec.inputs[0].dims, spec.outputs[0].dims));
  switch (dtypeSize(spec.inputs[0].dtype)) {
    case 1: return makeGatherOf<std::uint8_t>(spec, e);
    case 2: return makeGatherOf<std::uint16_t>(spec, e);
    case 4: return makeGatherOf<std::uint32_t>(spec, e);
    default: return makeGatherOf<std::uint64_t>(spec, e);
  }
}

Result<std::unique_ptr<Kernel>> makeGatherGrad(const KernelSpec& spec) {
  if (spec.inputs.size() < 2 || !takesInput(spec, 0) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  if (!takesOptional(spec, 3, elementCount(spec.outputs[0].dims)))
    return notTaken(spec, "an addend of another size or type");
  SS_ASSIGN(const Extents e, extentsOf(spec, spec.outputs[0].dims, spec.inputs[0].dims));
  return spec.inputs[1].dtype == DType::kI64 ? makeGatherGradOf<std::int64_t>(spec, e)
                                             : makeGatherGradOf<std::int32_t>(spec, e);
}

}  // namespace stepscope::cuda
