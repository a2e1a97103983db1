// What reads or writes elements at places that indices name: GatherElements, GatherND, ScatterElements, ScatterND, their
// gradients, and the rows of PadAndUnflatten and FlattenAndUnpad. Where several updates go to one place they are combined in
// their order (segments.h); sums of float32 with attribute `unordered` (option deterministic=off) are added atomically.
#include "kernels/cuda/segments.h"
#include "kernels/cuda/walk.h"
#include "kernels/reference/movement/element_walk.h"

namespace stepscope::cuda {
inline namespace scatter_cu {

// The places in data that `count` indices, or tuples of indices, name. Place i begins `run` elements.
struct Places {
  Walk<1> walk;   // of index i, along the other axes than the one of the indices; unused for tuples
  int tuple = 0;  // indices of a tuple; 0: each index is on its own
  std::int64_t extents[kMostAxes] = {}, strides[kMostAxes] = {};  // of the axes that the indices of a tuple count along
  std::int64_t perBatch = 1, batchSize = 0;                       // tuples of a batch, elements of data in it
  std::int64_t count = 0, run = 1;

  std::int64_t extentAt(std::int64_t position) const { return extents[tuple == 0 ? 0 : position % tuple]; }
};

// The first element of place i; -1 and a complaint where an index is out of range.
template <typename Index>
SS_DEVICE std::int64_t placeOf(const Places& p, const Global<const Index>& indices, std::int64_t i,
                               const Complaint& complaint) {
  std::int64_t place = 0;
  if (p.tuple == 0) {
    std::int64_t at[1];
    p.walk.offsets(i, at);
    place = at[0];
  } else {
    place = i / p.perBatch * p.batchSize;
  }
  const int indicesOfOne = p.tuple == 0 ? 1 : p.tuple;
  for (int k = 0; k < indicesOfOne; ++k) {
    const std::int64_t position = i * indicesOfOne + k;
    const Index given = indices[position];
    const std::int64_t index = given < 0 ? given + p.extents[k] : given;
    if (index < 0 || index >= p.extents[k]) {
      complaint.raise(position, given);
      return -1;
    }
    place += index * p.strides[k];
  }
  return place;
}

// x → y: [count, run]. One thread per element of y; zeros where an index is out of range.
template <typename Word, typename Index>
SS_GLOBAL void gatherPlaces(Global<const Word> x, Global<const Index> indices, Global<Word> y, Places places,
                            Complaint complaint) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= places.count * places.run) return;
  const std::int64_t place = placeOf(places, indices, i / places.run, complaint);
  Word word{};
  if (place >= 0) word = x[place + i % places.run];
  y[i] = word;
}

// keys[count]: the number of the place, or `none`.
template <typename Index>
SS_GLOBAL void writePlaces(Global<const Index> indices, Global<std::int64_t> keys, Places places, std::int64_t none,
                           Complaint complaint) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= places.count) return;
  const std::int64_t place = placeOf(places, indices, i, complaint);
  keys[i] = place < 0 ? none : place / places.run;
}

// values: [count, run] are added to y in the order in which threads arrive. One thread per element of values.
template <typename Index>
SS_GLOBAL void addAtPlaces(Global<const float> values, Global<const Index> indices, Global<float> y, Places places,
                           Complaint complaint) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= places.count * places.run) return;
  const std::int64_t place = placeOf(places, indices, i / places.run, complaint);
  if (place >= 0) y.atomicAdd(place + i % places.run, values[i]);
}

Complaint complaintOf(Launcher& gpu, const KernelSpec& spec, const Places& places) {
  return gpu.complaint([spec, places](std::int64_t position, std::int64_t value) {
    return reference::indexError(spec, value, position, places.extentAt(position)).value();
  });
}

bool takesIndices(const KernelSpec& spec) { return takesInput(spec, 1, DType::kI64) || takesInput(spec, 1, DType::kI32); }

// Indices of the rank of `data`, along attribute `axis`.
Result<Places> elementPlaces(const KernelSpec& spec, const Dims& data) {
  const Dims& dims = spec.inputs[1].dims;
  const auto axis = normalizeAxis(spec.attrs.integer("axis", 0), static_cast<std::int64_t>(data.size()));
  if (!axis || dims.size() != data.size()) return notTaken(spec, "indices of another rank, or an axis out of range");
  Places p;
  const Dims strides = rowMajorStrides(data);
  for (std::size_t a = 0; a < data.size(); ++a) {
    const bool along = a == static_cast<std::size_t>(*axis);
    if (!along && dims[a] > data[a]) return notTaken(spec, "indices that are wider than the data");
    const std::int64_t stride[1] = {along ? 0 : strides[a]};
    if (!p.walk.add(dims[a], stride)) return notTaken(spec, "more than eight axes");
  }
  p.extents[0] = data[static_cast<std::size_t>(*axis)];
  p.strides[0] = strides[static_cast<std::size_t>(*axis)];
  p.count = elementCount(dims);
  return p;
}

// Tuples of indices, behind `batchDims` axes that they share with `data`.
Result<Places> tuplePlaces(const KernelSpec& spec, const Dims& data, std::int64_t batchDims) {
  const Dims& dims = spec.inputs[1].dims;
  if (dims.empty() || batchDims < 0 || batchDims >= static_cast<std::int64_t>(dims.size()) || dims.back() > kMostAxes ||
      dims.back() + batchDims > static_cast<std::int64_t>(data.size()))
    return notTaken(spec, "indices that do not fit the data");
  const auto skip = static_cast<std::size_t>(batchDims);
  const std::span<const std::int64_t> extents(data);
  if (!std::ranges::equal(extents.first(skip), std::span(dims).first(skip)))
    return notTaken(spec, "batches of indices that the data has not");
  Places p;
  p.tuple = static_cast<int>(dims.back());
  const Dims strides = rowMajorStrides(data);
  for (std::size_t k = 0; k < static_cast<std::size_t>(p.tuple); ++k) {
    p.extents[k] = data[skip + k];
    p.strides[k] = strides[skip + k];
  }
  p.count = elementCount(dims) / dims.back();
  p.perBatch = p.count / elementCount(extents.first(skip));
  p.batchSize = elementCount(extents.subspan(skip));
  p.run = elementCount(extents.subspan(skip + static_cast<std::size_t>(p.tuple)));
  return p;
}

// The positions of rows in the first two axes of `full` as one.
Result<Places> rowPlaces(const KernelSpec& spec, const Dims& full, const Dims& rows) {
  if (full.size() < 2 || rows.empty() || elementCount(spec.inputs[1].dims) != rows[0] ||
      !std::ranges::equal(std::span(full).subspan(2), std::span(rows).subspan(1)))
    return notTaken(spec, "rows that do not fit");
  Places p;
  p.tuple = 1;
  p.run = elementCount(std::span(full).subspan(2));
  p.extents[0] = full[0] * full[1];
  p.strides[0] = p.run;
  p.perBatch = p.count = rows[0];
  return p;
}

template <typename Word, typename Index>
std::unique_ptr<Kernel> makeGatherAs(const KernelSpec& spec, const Places& places) {
  return makeLaunched("gather", [=](Launcher& gpu) {
    const Complaint complaint = complaintOf(gpu, spec, places);
    return gpu.run("gather", gpu::function<gatherPlaces<Word, Index>>, blocksFor(places.count * places.run), kThreads,
                   gpu.in<Word>(0), gpu.in<Index>(1), gpu.out<Word>(0), places, complaint);
  });
}
template <typename Word>
std::unique_ptr<Kernel> makeGatherAs(const KernelSpec& spec, const Places& places) {
  return spec.inputs[1].dtype == DType::kI64 ? makeGatherAs<Word, std::int64_t>(spec, places)
                                             : makeGatherAs<Word, std::int32_t>(spec, places);
}

Result<std::unique_ptr<Kernel>> makeGatherOf(const KernelSpec& spec, const Places& places) {
  if (elementCount(spec.outputs[0].dims) != places.count * places.run) return notTaken(spec, "a result of another size");
  switch (dtypeSize(spec.inputs[0].dtype)) {
    case 1: return makeGatherAs<std::uint8_t>(spec, places);
    case 2: return makeGatherAs<std::uint16_t>(spec, places);
    case 4: return makeGatherAs<std::uint32_t>(spec, places);
    default: return makeGatherAs<std::uint64_t>(spec, places);
  }
}

// Data that can be copied, indices, a result of the type of the data.
bool takesGather(const KernelSpec& spec) {
  return spec.inputs.size() >= 2 && !spec.outputs.empty() && spec.inputs[0].dtype != DType::kString &&
         takesInput(spec, 0, spec.inputs[0].dtype) && takesOutput(spec, 0, spec.inputs[0].dtype) && takesIndices(spec);
}

// Input `data` (none: zeros) with input `values` added to it, in any order.
std::unique_ptr<Kernel> makeAtomicSums(const KernelSpec& spec, const Places& places, int data, std::size_t values) {
  const bool wide = spec.inputs[1].dtype == DType::kI64;
  const auto body = [=](Launcher& gpu) -> Status {
    SS_TRY(startResult(gpu, data));
    const Complaint complaint = complaintOf(gpu, spec, places);
    const auto add = [&]<typename Index>(Index) {
      return gpu.run("scatter: add", gpu::function<addAtPlaces<Index>>, blocksFor(places.count * places.run), kThreads,
                     gpu.in<float>(values), gpu.in<Index>(1), gpu.out<float>(0, Access::kReadWrite), places, complaint);
    };
    return wide ? add(std::int64_t{}) : add(std::int32_t{});
  };
  return makeLaunched("atomic sums", body, 0, inOrderOfArrival("the updates of a place"));
}

// Input `data` (none: zeros) with input `values` combined into it.
Result<std::unique_ptr<Kernel>> makeScatterOf(const KernelSpec& spec, const Places& places, int data, std::size_t values,
                                              Combining how) {
  const DType dtype = spec.outputs[0].dtype;
  if (!canCombine(how, dtype) || !takesInput(spec, values, dtype))
    return notTaken(spec, "elements of type " + std::string(dtypeName(dtype)));
  if (elementCount(spec.inputs[values].dims) != places.count * places.run) return notTaken(spec, "updates of another size");
  const bool wide = spec.inputs[1].dtype == DType::kI64;
  if (how == Combining::kAdd && dtype == DType::kF32 && isUnordered(spec)) return makeAtomicSums(spec, places, data, values);
  const Segments segments{places.count, elementCount(spec.outputs[0].dims) / places.run, places.run};
  const auto body = [=](Launcher& gpu) -> Status {
    SS_TRY(startResult(gpu, data));
    const Complaint complaint = complaintOf(gpu, spec, places);
    const auto write = [&]<typename Index>(Index) {
      return gpu.run("scatter: places", gpu::function<writePlaces<Index>>, blocksFor(places.count), kThreads,
                     gpu.in<Index>(1), segments.keys(gpu), places, segments.places, complaint);
    };
    SS_TRY(wide ? write(std::int64_t{}) : write(std::int32_t{}));
    SS_TRY(sortSegments(gpu, segments));
    return combineSegments(gpu, segments, how, dtype, values);
  };
  return makeLaunched("sorted segments", body, segments.bytes(),
                      Determinism::fixed("the updates of a place are sorted and combined in their order by one thread"));
}

Result<std::unique_ptr<Kernel>> makeScatterTo(const KernelSpec& spec, const Result<Places>& places) {
  if (!places) return tl::make_unexpected(places.error());
  SS_ASSIGN(const reference::ScatterReduction reduction, reference::scatterReduction(spec));
  static_assert(static_cast<int>(reference::ScatterReduction::kMax) == static_cast<int>(Combining::kLarger));
  return makeScatterOf(spec, *places, 0, 2, static_cast<Combining>(reduction));
}

// Data of the type of the result, indices, updates.
bool takesScatter(const KernelSpec& spec) {
  return spec.inputs.size() >= 3 && spec.outputs.size() == 1 && spec.outputs[0].dtype != DType::kString &&
         takesInput(spec, 0, spec.outputs[0].dtype) && takesOutput(spec, 0, spec.outputs[0].dtype) && takesIndices(spec) &&
         elementCount(spec.inputs[0].dims) == elementCount(spec.outputs[0].dims);
}

// dy, indices → dx: the values are input 0.
bool takesGradient(const KernelSpec& spec) {
  return spec.inputs.size() >= 2 && spec.outputs.size() == 1 && takesOutput(spec, 0) && takesIndices(spec);
}

}  // namespace scatter_cu

Result<std::unique_ptr<Kernel>> makeGatherElements(const KernelSpec& spec) {
  if (!takesGather(spec)) return notTaken(spec, "elements that cannot be copied");
  SS_ASSIGN(const Places places, elementPlaces(spec, spec.inputs[0].dims));
  return makeGatherOf(spec, places);
}
Result<std::unique_ptr<Kernel>> makeGatherNd(const KernelSpec& spec) {
  if (!takesGather(spec)) return notTaken(spec, "elements that cannot be copied");
  SS_ASSIGN(const Places places, tuplePlaces(spec, spec.inputs[0].dims, spec.attrs.integer("batch_dims", 0)));
  return makeGatherOf(spec, places);
}

Result<std::unique_ptr<Kernel>> makeGatherElementsGrad(const KernelSpec& spec) {
  if (!takesGradient(spec)) return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Places places, elementPlaces(spec, spec.outputs[0].dims));
  return makeScatterOf(spec, places, -1, 0, Combining::kAdd);
}
Result<std::unique_ptr<Kernel>> makeGatherNdGrad(const KernelSpec& spec) {
  if (!takesGradient(spec)) return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Places places, tuplePlaces(spec, spec.outputs[0].dims, spec.attrs.integer("batch_dims", 0)));
  return makeScatterOf(spec, places, -1, 0, Combining::kAdd);
}

Result<std::unique_ptr<Kernel>> makeScatterElements(const KernelSpec& spec) {
  if (!takesScatter(spec)) return notTaken(spec, "operands of several types");
  return makeScatterTo(spec, elementPlaces(spec, spec.outputs[0].dims));
}
Result<std::unique_ptr<Kernel>> makeScatterNd(const KernelSpec& spec) {
  if (!takesScatter(spec)) return notTaken(spec, "operands of several types");
  return makeScatterTo(spec, tuplePlaces(spec, spec.outputs[0].dims, 0));
}

// x: [rows, …], indices: [rows], extents → y: [d0, d1, …]
Result<std::unique_ptr<Kernel>> makePadAndUnflatten(const KernelSpec& spec) {
  if (!takesGradient(spec)) return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Places places, rowPlaces(spec, spec.outputs[0].dims, spec.inputs[0].dims));
  return makeScatterOf(spec, places, -1, 0, Combining::kAdd);
}
// x: [d0, d1, …], indices: [rows] → y: [rows, …]
Result<std::unique_ptr<Kernel>> makeFlattenAndUnpad(const KernelSpec& spec) {
  if (!takesGather(spec) || spec.outputPresent(1)) return notTaken(spec, "elements that cannot be copied, or the extents");
  SS_ASSIGN(const Places places, rowPlaces(spec, spec.inputs[0].dims, spec.outputs[0].dims));
  return makeGatherOf(spec, places);
}

}  // namespace stepscope::cuda
