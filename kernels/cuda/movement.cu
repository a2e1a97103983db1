// What copies elements to other places: Transpose, Expand, Tile, Slice and its gradient, Concat, Split. One thread moves one
// element of 1, 2, 4 or 8 bytes, or 16 bytes where runs allow it; the walk goes along the result, so that writes are
// coalesced.
#include "kernels/cuda/support.h"
#include "kernels/cuda/walk.h"
#include "kernels/reference/movement/common.h"
#include "kernels/reference/movement/slice_window.h"
#include "kernels/strided_view.h"

namespace stepscope::cuda {
inline namespace movement_cu {

// Tensor 0 is the source, tensor 1 the target.
struct Copy {
  Walk<2> walk;
  std::int64_t total = 1, fromOffset = 0, toOffset = 0;

  bool add(std::int64_t extent, std::int64_t from, std::int64_t to) {
    total *= extent;
    const std::int64_t strides[2] = {from, to};
    return walk.add(extent, strides);
  }
};

// The same copy in words of `elements` elements; false where runs or their places are no multiples.
bool widen(Copy& copy, std::int64_t elements) {
  Walk<2>& walk = copy.walk;
  if (walk.rank == 0 || copy.fromOffset % elements != 0 || copy.toOffset % elements != 0) return false;
  const int last = walk.rank - 1;
  if (walk.strides[0][last] != 1 || walk.strides[1][last] != 1 || walk.extents[last] % elements != 0) return false;
  for (int t = 0; t < 2; ++t)
    for (int a = 0; a < last; ++a)
      if (walk.strides[t][a] % elements != 0) return false;
  for (int t = 0; t < 2; ++t)
    for (int a = 0; a < last; ++a) walk.strides[t][a] /= elements;
  walk.extents[last] /= elements;
  copy.fromOffset /= elements;
  copy.toOffset /= elements;
  copy.total /= elements;
  return true;
}

template <typename Word>
SS_GLOBAL void moveElements(Global<const Word> x, Global<Word> y, Copy copy) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= copy.total) return;
  std::int64_t at[2];
  copy.walk.offsets(i, at);
  const Word word = x[copy.fromOffset + at[0]];
  y[copy.toOffset + at[1]] = word;
}

template <typename Word>
SS_GLOBAL void fillZeros(Global<Word> y, std::int64_t total) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i < total) y[i] = Word{0};
}

// Calls f with an unsigned number of as many bytes as the element has. False: it has none.
template <typename F>
bool withWord(DType dtype, F&& f) {
  switch (dtypeSize(dtype)) {
    case 1: f(std::uint8_t{}); return true;
    case 2: f(std::uint16_t{}); return true;
    case 4: f(std::uint32_t{}); return true;
    case 8: f(std::uint64_t{}); return true;
    default: return false;
  }
}

Status move(Launcher& gpu, DType dtype, std::size_t input, std::size_t output, const Copy& copy, Access access) {
  if (copy.total == 0) return {};
  const auto moveAs = [&]<typename Word>(Word, const Copy& words) {
    return gpu.run("copy of elements", gpu::function<moveElements<Word>>, blocksFor(words.total), kThreads,
                   gpu.in<Word>(input), gpu.out<Word>(output, access), words);
  };
  Copy wide = copy;
  const KernelCall& call = gpu.call();
  if (const auto bytes = static_cast<std::int64_t>(dtypeSize(dtype));
      movesWide(call.inputs[input].data, call.outputs[output].data, 0) && bytes < 16 && widen(wide, 16 / bytes) &&
      call.inputs[input].bytes() % 16 == 0 && call.outputs[output].bytes() % 16 == 0)
    return moveAs(Wide{}, wide);
  Status status;
  withWord(dtype, [&](auto word) { status = moveAs(word, copy); });
  return status;
}

bool movable(const KernelSpec& spec) {
  return !spec.inputs.empty() && !spec.outputs.empty() && spec.inputs[0].dtype != DType::kString &&
         takesInput(spec, 0, spec.outputs[0].dtype) && takesOutput(spec, 0, spec.inputs[0].dtype);
}

std::unique_ptr<Kernel> makeCopy(const KernelSpec& spec, const Copy& copy) {
  return makeLaunched("copy of elements", [=, dtype = spec.inputs[0].dtype](Launcher& gpu) {
    return move(gpu, dtype, 0, 0, copy, Access::kWrite);
  });
}

// The copy between the window of a tensor of shape `whole` and the tensor that holds the window alone.
Copy copyOf(const reference::SliceWindow& window, const Dims& whole, bool toWindow) {
  const Dims wide = rowMajorStrides(whole);
  Dims extents(window.extents.begin(), window.extents.begin() + static_cast<std::ptrdiff_t>(window.rank));
  const Dims own = rowMajorStrides(extents);
  Copy copy;
  for (std::size_t a = 0; a < window.rank; ++a) {
    (toWindow ? copy.toOffset : copy.fromOffset) += window.starts[a] * wide[a];
    // One element: the step is never taken, and a huge one must not be multiplied.
    const std::int64_t stride = window.extents[a] > 1 ? wide[a] * window.steps[a] : 0;
    copy.add(window.extents[a], toWindow ? own[a] : stride, toWindow ? stride : own[a]);
  }
  return copy;
}

// What Slice and SliceGrad read on the host.
bool takesWindow(const KernelSpec& spec, std::size_t first) {
  if (spec.inputs.size() < first + 2 || spec.inputs[0].dims.size() > kMostAxes) return false;
  for (std::size_t i = first; i < spec.inputs.size(); ++i)
    if (spec.inputPresent(i) && spec.inputs[i].space != Space::kHost) return false;
  return true;
}

Result<reference::SliceWindow> windowOf(const KernelSpec& spec, const KernelCall& call, const Dims& whole, const Dims& part,
                                        std::size_t first) {
  SS_ASSIGN(const reference::SliceWindow window, reference::sliceWindow(spec, call, whole, first));
  if (part.size() != window.rank || !std::equal(part.begin(), part.end(), window.extents.begin()))
    return invalid(spec.op + ": a window of other extents than " + dimsText(part) + ", which the plan was made for");
  return window;
}

// Parts of one axis: extents before, along and behind it.
struct Parts {
  std::int64_t outer = 1, axis = 1, inner = 1;
  std::vector<std::int64_t> extents;
};
Result<Parts> partsOf(const KernelSpec& spec, const OperandSpec& whole, const std::vector<OperandSpec>& operands) {
  const auto axis = normalizeAxis(spec.attrs.integer("axis", 0), static_cast<std::int64_t>(whole.dims.size()));
  if (!axis || whole.dtype == DType::kString || !takes(whole, whole.dtype))
    return notTaken(spec, "an axis out of range, or text");
  const auto a = static_cast<std::size_t>(*axis);
  const std::span<const std::int64_t> all(whole.dims);
  Parts parts{elementCount(all.first(a)), whole.dims[a], elementCount(all.subspan(a + 1)), {}};
  std::int64_t sum = 0;
  for (const OperandSpec& operand : operands) {
    if (operand.dtype != whole.dtype || operand.dynamic || operand.layout != Layout::kPlain ||
        operand.dims.size() != whole.dims.size())
      return notTaken(spec, "parts of other types or ranks");
    for (std::size_t j = 0; j < whole.dims.size(); ++j)
      if (j != a && operand.dims[j] != whole.dims[j]) return notTaken(spec, "parts that do not fit");
    parts.extents.push_back(operand.dims[a]);
    sum += operand.dims[a];
  }
  if (sum != parts.axis) return notTaken(spec, "parts that do not fill the axis");
  return parts;
}

// Runs of part `k`, in the whole and alone.
Copy copyOf(const Parts& parts, std::size_t k, bool toWhole) {
  std::int64_t offset = 0;
  for (std::size_t j = 0; j < k; ++j) offset += parts.extents[j] * parts.inner;
  const std::int64_t run = parts.extents[k] * parts.inner, whole = parts.axis * parts.inner;
  Copy copy;
  (toWhole ? copy.toOffset : copy.fromOffset) = offset;
  copy.add(parts.outer, toWhole ? run : whole, toWhole ? whole : run);
  copy.add(run, 1, 1);
  return copy;
}

}  // namespace movement_cu

Result<std::unique_ptr<Kernel>> makeTranspose(const KernelSpec& spec) {
  if (!movable(spec)) return notTaken(spec, "elements that cannot be copied");
  const Dims &x = spec.inputs[0].dims, &y = spec.outputs[0].dims;
  Dims perm = spec.attrs.integers("perm");
  if (perm.empty())
    for (std::size_t i = x.size(); i-- > 0;) perm.push_back(static_cast<std::int64_t>(i));
  Dims sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  if (perm.size() != x.size() || y.size() != x.size()) return notTaken(spec, "a permutation of other axes");
  const Dims own = rowMajorStrides(x), to = rowMajorStrides(y);
  Copy copy;
  for (std::size_t a = 0; a < y.size(); ++a) {
    if (sorted[a] != static_cast<std::int64_t>(a)) return notTaken(spec, "a permutation of other axes");
    if (!copy.add(y[a], own[static_cast<std::size_t>(perm[a])], to[a])) return notTaken(spec, "more than eight axes");
  }
  return makeCopy(spec, copy);
}

Result<std::unique_ptr<Kernel>> makeExpand(const KernelSpec& spec) {
  if (!movable(spec)) return notTaken(spec, "elements that cannot be copied");
  const Dims &x = spec.inputs[0].dims, &y = spec.outputs[0].dims;
  if (x.size() > y.size()) return notTaken(spec, "a result of lower rank");
  const Dims own = rowMajorStrides(x), to = rowMajorStrides(y);
  const std::size_t lead = y.size() - x.size();
  Copy copy;
  for (std::size_t a = 0; a < y.size(); ++a) {
    const std::int64_t extent = a < lead ? 1 : x[a - lead];
    if (extent != y[a] && extent != 1) return notTaken(spec, "a shape that does not broadcast");
    if (!copy.add(y[a], extent == 1 ? 0 : own[a - lead], to[a])) return notTaken(spec, "more than eight axes");
  }
  return makeCopy(spec, copy);
}

Result<std::unique_ptr<Kernel>> makeTile(const KernelSpec& spec) {
  if (!movable(spec)) return notTaken(spec, "elements that cannot be copied");
  const Dims &x = spec.inputs[0].dims, &y = spec.outputs[0].dims;
  if (x.size() != y.size()) return notTaken(spec, "a result of another rank");
  const Dims own = rowMajorStrides(x), to = rowMajorStrides(y);
  Copy copy;
  for (std::size_t a = 0; a < y.size(); ++a)
    if (y[a] % x[a] != 0 || !copy.add(y[a] / x[a], 0, to[a] * x[a]) || !copy.add(x[a], own[a], to[a]))
      return notTaken(spec, "a shape that does not tile");
  return makeCopy(spec, copy);
}

Result<std::unique_ptr<Kernel>> makeSlice(const KernelSpec& spec) {
  if (!movable(spec) || !takesWindow(spec, 1)) return notTaken(spec, "elements that cannot be copied");
  return makeLaunched("copy of elements", [=](Launcher& gpu) -> Status {
    const Dims& whole = spec.inputs[0].dims;
    SS_ASSIGN(const auto window, windowOf(spec, gpu.call(), whole, spec.outputs[0].dims, 1));
    return move(gpu, spec.inputs[0].dtype, 0, 0, copyOf(window, whole, false), Access::kWrite);
  });
}

Result<std::unique_ptr<Kernel>> makeSliceGrad(const KernelSpec& spec) {
  if (!movable(spec) || !takesWindow(spec, 2)) return notTaken(spec, "elements that cannot be copied");
  return makeLaunched("copy of elements", [=](Launcher& gpu) -> Status {
    const Dims& whole = spec.outputs[0].dims;
    const std::int64_t total = elementCount(whole);
    SS_ASSIGN(const auto window, windowOf(spec, gpu.call(), whole, spec.inputs[0].dims, 2));
    const Copy copy = copyOf(window, whole, true);
    Status status;
    if (copy.total != total)
      withWord(spec.outputs[0].dtype, [&](auto word) {
        using Word = decltype(word);
        status = gpu.run("zeros", gpu::function<fillZeros<Word>>, blocksFor(total), kThreads, gpu.out<Word>(0), total);
      });
    SS_TRY(status);
    return move(gpu, spec.inputs[0].dtype, 0, 0, copy, Access::kPart);
  });
}

Result<std::unique_ptr<Kernel>> makeConcat(const KernelSpec& spec) {
  if (spec.outputs.empty() || (spec.outputs.size() > 1 && spec.outputPresent(1)))
    return notTaken(spec, "other than one result");
  SS_ASSIGN(const Parts parts, partsOf(spec, spec.outputs[0], spec.inputs));
  return makeLaunched("copy of parts", [=, dtype = spec.outputs[0].dtype](Launcher& gpu) -> Status {
    for (std::size_t k = 0; k < parts.extents.size(); ++k)
      SS_TRY(move(gpu, dtype, k, 0, copyOf(parts, k, true), Access::kPart));
    return {};
  });
}

// Of views (kernels/strided_view.h).
Result<std::unique_ptr<Kernel>> makeJoin(const KernelSpec& spec) {
  if (spec.outputs.size() != 1) return notTaken(spec, "other than one result");
  const Dims& y = spec.outputs[0].dims;
  const Dims strides = rowMajorStrides(y);
  const auto axis = static_cast<std::size_t>(spec.attrs.integer("axis", 0));
  if (axis >= y.size()) return notTaken(spec, "an axis that is not there");
  std::vector<Copy> parts;
  std::int64_t begin = 0;
  for (std::size_t k = 0; k < spec.inputs.size(); ++k) {
    if (!takesInput(spec, k, spec.outputs[0].dtype)) return notTaken(spec, "operands of several types");
    SS_ASSIGN(const StridedView seen, seenOperand(spec.domain, spec.op, k, spec.inputs[k].dims, spec.attrs));
    Dims fitting = y;
    if (seen.dims.size() == y.size()) fitting[axis] = seen.dims[axis];
    if (seen.dims != fitting) return notTaken(spec, "parts that do not fit");
    Copy copy;
    copy.fromOffset = seen.offset;
    copy.toOffset = begin * strides[axis];
    for (std::size_t a = 0; a < y.size(); ++a)
      if (!copy.add(seen.dims[a], seen.strides[a], strides[a])) return notTaken(spec, "more than eight axes");
    parts.push_back(copy);
    begin += seen.dims[axis];
  }
  if (begin != y[axis]) return notTaken(spec, "parts that do not fill the axis");
  return makeLaunched("copy of parts",
                      [=, parts = std::move(parts), dtype = spec.outputs[0].dtype](Launcher& gpu) -> Status {
                        for (std::size_t k = 0; k < parts.size(); ++k)
                          SS_TRY(move(gpu, dtype, k, 0, parts[k], Access::kPart));
                        return {};
                      });
}

Result<std::unique_ptr<Kernel>> makeSplit(const KernelSpec& spec) {
  if (spec.inputs.empty()) return notTaken(spec, "no operand");
  SS_ASSIGN(const Parts parts, partsOf(spec, spec.inputs[0], spec.outputs));
  if (spec.inputPresent(1)) {
    if (!spec.inputs[1].constant.valid() || intElements(spec.inputs[1].constant.view()) != parts.extents)
      return notTaken(spec, "sizes that differ from the results");
  } else if (spec.attrs.integer("num_outputs", static_cast<std::int64_t>(spec.outputs.size())) !=
             static_cast<std::int64_t>(spec.outputs.size())) {
    return notTaken(spec, "results that are left out");
  }
  return makeLaunched("copy of parts", [=, dtype = spec.inputs[0].dtype](Launcher& gpu) -> Status {
    for (std::size_t k = 0; k < parts.extents.size(); ++k)
      SS_TRY(move(gpu, dtype, 0, k, copyOf(parts, k, false), Access::kWrite));
    return {};
  });
}

}  // namespace stepscope::cuda
