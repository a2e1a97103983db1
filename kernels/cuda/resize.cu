// Resize and its gradient over the last two axes, every mode but regions: a sparse matrix per axis, made once from the
// tables of the reference kernel. They go to the device with every call, as parameters of small launches; the gradient is
// the same with both matrices turned, so that each element is summed by one thread in the order of the taps.
#include <limits>
#include <memory>
#include <vector>

#include "kernels/cuda/support.h"
#include "kernels/reference/linear/resize_axes.h"

namespace stepscope::cuda {
inline namespace resize_cu {

constexpr int kChunk = 512;
template <typename T>
struct Chunk {
  T value[kChunk];
  int count = 0;
};

// table[first …]: what the chunk holds. One block.
template <typename T>
SS_GLOBAL void writeTable(Chunk<T> chunk, Global<T> table, std::int64_t first) {
  for (int i = gpu::threadIndex(); i < chunk.count; i += gpu::blockSize()) table[first + i] = chunk.value[i];
}

// Extents of a plane of the operand and of the result, and where the tables of the rows and of the columns begin. Of target
// t the taps start[t] … start[t + 1] - 1 are taken, of which each has a position and a weight.
struct Sampling {
  std::int64_t fromRows = 1, fromColumns = 1, toRows = 1, toColumns = 1;
  std::int64_t rowStarts = 0, columnStarts = 0, rowPositions = 0, columnPositions = 0;  // in `places`
  std::int64_t rowWeights = 0, columnWeights = 0;                                       // in `weights`
  std::int64_t count = 0;                                                               // elements of the result
};

// x: [planes, fromRows, fromColumns], y: [planes, toRows, toColumns]. One thread per element of y.
SS_GLOBAL void resizeElements(Global<const float> x, Global<const std::int32_t> places, Global<const float> weights,
                              Global<float> y, Sampling s) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= s.count) return;
  const std::int64_t column = i % s.toColumns, row = i / s.toColumns % s.toRows, plane = i / s.toColumns / s.toRows;
  const int firstRow = places[s.rowStarts + row], endRow = places[s.rowStarts + row + 1];
  const int firstColumn = places[s.columnStarts + column], endColumn = places[s.columnStarts + column + 1];
  float sum = 0;
  for (int r = firstRow; r < endRow; ++r) {
    const std::int64_t line = (plane * s.fromRows + places[s.rowPositions + r]) * s.fromColumns;
    float part = 0;
    for (int c = firstColumn; c < endColumn; ++c)
      part += weights[s.columnWeights + c] * x[line + places[s.columnPositions + c]];
    sum += weights[s.rowWeights + r] * part;
  }
  y[i] = sum;
}

// Tables of both axes, behind each other.
struct Tables {
  Sampling sampling;
  std::vector<std::int32_t> places;
  std::vector<float> weights;

  std::size_t placesBytes() const { return (places.size() * sizeof(std::int32_t) + 15) / 16 * 16; }
  std::size_t bytes() const { return placesBytes() + weights.size() * sizeof(float); }
};

// Adds an axis of `to` targets; turned: targets are the positions of x.
void addAxis(const reference::ResizeAxis& axis, bool turned, Tables& tables, std::int64_t& starts, std::int64_t& positions,
             std::int64_t& weights) {
  const auto to = static_cast<std::size_t>(turned ? axis.in : axis.out);
  std::vector<std::vector<std::pair<std::int32_t, float>>> taps(to);
  for (std::size_t o = 0; o + 1 < axis.start.size(); ++o)
    for (std::size_t tap = axis.start[o]; tap < axis.start[o + 1]; ++tap) {
      const auto own = static_cast<std::int32_t>(o), other = static_cast<std::int32_t>(axis.position[tap]);
      taps[static_cast<std::size_t>(turned ? other : own)].emplace_back(turned ? own : other,
                                                                        static_cast<float>(axis.weight[tap]));
    }
  starts = static_cast<std::int64_t>(tables.places.size());
  weights = static_cast<std::int64_t>(tables.weights.size());
  std::int32_t count = 0;
  for (const auto& list : taps) {
    tables.places.push_back(count);
    count += static_cast<std::int32_t>(list.size());
  }
  tables.places.push_back(count);
  positions = static_cast<std::int64_t>(tables.places.size());
  for (const auto& list : taps)
    for (const auto& [position, weight] : list) {
      tables.places.push_back(position);
      tables.weights.push_back(weight);
    }
}

bool keepsAxis(const reference::ResizeAxis& axis) {
  for (std::size_t i = 0; i < axis.position.size(); ++i)
    if (axis.position[i] != static_cast<std::int64_t>(i) || axis.weight[i] != 1) return false;
  return axis.in == axis.out;
}

// `x` and `y` are the extents of the forward operands; input `roi` and the two behind it must be known.
Result<Tables> tablesOf(const KernelSpec& spec, const Dims& x, const Dims& y, std::size_t roi, bool turned) {
  std::vector<TensorView> views(spec.inputs.size());
  for (std::size_t i = roi; i < spec.inputs.size(); ++i) {
    if (!spec.inputPresent(i)) continue;
    if (!spec.inputs[i].constant.valid()) return notTaken(spec, "scales or sizes that are not constant");
    views[i] = spec.inputs[i].constant.view();
  }
  const KernelCall call{views, {}, {}, {}, 0, {}};
  SS_ASSIGN(const reference::ResizeAxes axes, reference::resizeAxes(spec.attrs, call, roi, x, y));
  const std::size_t rank = axes.axes.size();
  std::int64_t taps = 0;
  for (std::size_t a = 0; a < rank; ++a) {
    const reference::ResizeAxis& axis = axes.axes[a];
    if (std::ranges::find(axis.outside, true) != axis.outside.end())
      return notTaken(spec, "positions outside of the operand");
    if (a + 2 < rank && !keepsAxis(axis)) return notTaken(spec, "more than two resized axes");
    if (a + 2 >= rank) taps += static_cast<std::int64_t>(axis.position.size()) + axis.in + axis.out;
  }
  if (taps > (std::int64_t{1} << 20)) return notTaken(spec, "tables of more than a million taps");
  Tables tables;
  Sampling& s = tables.sampling;
  reference::ResizeAxis one{1, 1, {0, 1}, {0}, {1}, {false}};
  const reference::ResizeAxis &rows = rank > 1 ? axes.axes[rank - 2] : one, &columns = axes.axes[rank - 1];
  addAxis(rows, turned, tables, s.rowStarts, s.rowPositions, s.rowWeights);
  addAxis(columns, turned, tables, s.columnStarts, s.columnPositions, s.columnWeights);
  s.fromRows = turned ? rows.out : rows.in, s.fromColumns = turned ? columns.out : columns.in;
  s.toRows = turned ? rows.in : rows.out, s.toColumns = turned ? columns.in : columns.out;
  s.count = elementCount(turned ? x : y);
  return tables;
}

template <typename T>
Status writeTables(Launcher& gpu, const std::vector<T>& values, std::size_t offset) {
  const auto count = static_cast<std::int64_t>(values.size());
  for (std::int64_t first = 0; first < count; first += kChunk) {
    Chunk<T> chunk{};
    chunk.count = static_cast<int>(std::min<std::int64_t>(kChunk, count - first));
    std::copy_n(values.begin() + first, chunk.count, chunk.value);
    SS_TRY(gpu.run("resize: tables", gpu::function<writeTable<T>>, 1, kThreads, chunk,
                   gpu.room<T>(offset, count, Access::kPart), first));
  }
  return {};
}

Result<std::unique_ptr<Kernel>> makeSampled(const KernelSpec& spec, const Dims& x, const Dims& y, std::size_t roi,
                                            bool turned) {
  SS_ASSIGN(Tables made, tablesOf(spec, x, y, roi, turned));
  const auto tables = std::make_shared<const Tables>(std::move(made));
  const auto body = [tables](Launcher& gpu) -> Status {
    SS_TRY(writeTables(gpu, tables->places, 0));
    SS_TRY(writeTables(gpu, tables->weights, tables->placesBytes()));
    return gpu.run("resize", gpu::function<resizeElements>, blocksFor(tables->sampling.count), kThreads, gpu.in<float>(0),
                   gpu.readRoom<std::int32_t>(0, static_cast<std::int64_t>(tables->places.size())),
                   gpu.readRoom<float>(tables->placesBytes(), static_cast<std::int64_t>(tables->weights.size())),
                   gpu.out<float>(0), tables->sampling);
  };
  return makeLaunched("resize", body, tables->bytes(),
                      Determinism::fixed("one thread adds the taps of an element in order"));
}

}  // namespace resize_cu

// x, roi?, scales?, sizes?
Result<std::unique_ptr<Kernel>> makeResize(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0) || spec.inputs[0].dims.empty())
    return notTaken(spec, "elements other than float32");
  return makeSampled(spec, spec.inputs[0].dims, spec.outputs[0].dims, 1, false);
}
// dy, shape of x, roi?, scales?, sizes? → dx
Result<std::unique_ptr<Kernel>> makeResizeGrad(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0) || spec.inputs[0].dims.empty())
    return notTaken(spec, "elements other than float32");
  return makeSampled(spec, spec.outputs[0].dims, spec.inputs[0].dims, 2, true);
}

}  // namespace stepscope::cuda
