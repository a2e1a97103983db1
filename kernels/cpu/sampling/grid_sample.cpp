// GridSample and its two gradients, sixteen channels at a time. The taps of the points are found once for all channels of an
// image. A thread has groups of channels of whole images (of a share of the points where those are few), or for the gradient
// of the grid points of whole images.
#include <array>
#include <cmath>

#include "kernels/cpu/loops/support.h"
#include "kernels/cpu/sampling/lane_planes.h"
#include "kernels/cpu/sampling/sampling.h"
#include "kernels/cpu/sampling/taps.h"
#include "kernels/reference/linear/grid_taps.h"

namespace stepscope::cpu {
namespace {

using reference::GridRule;
using reference::GridTaps;

constexpr std::size_t kAxes = 3;
constexpr std::int64_t kTile = 64;  // points whose results turn from lanes to planes at once

// x [N, C, spatial], grid [N, points, axes], y [N, C, points]; missing axes lead with extent 1 and one tap.
struct Sampling {
  GridRule rule;
  std::int64_t axes = 0, batch = 0, channels = 0, inputs = 1, points = 1;
  std::array<std::int64_t, kAxes> extents{1, 1, 1}, taps{1, 1, 1};
  int threads = 1;

  std::int64_t groups() const { return (channels + kLanes - 1) / kLanes; }
  std::int64_t lanes(std::int64_t group) const { return std::min(kLanes, channels - group * kLanes); }
  std::int64_t perPoint() const { return taps[0] + taps[1] + taps[2]; }
  // Parts of the points: one, or where `items` are fewer than the threads as many as those.
  std::int64_t shares(std::int64_t items) const { return items >= threads ? 1 : std::min<std::int64_t>(threads, points); }
  std::int64_t shareBegin(std::int64_t share, std::int64_t shares) const { return points * share / shares; }
};

Result<Sampling> samplingOf(const KernelSpec& spec, const OperandSpec& x, const OperandSpec& grid, const OperandSpec& y) {
  if (!takes(x) || !takes(grid) || !takes(y)) return notTaken(spec, "elements other than float32");
  const std::size_t rank = x.dims.size();
  if (rank < 3 || rank > 2 + kAxes || grid.dims.size() != rank || y.dims.size() != rank ||
      grid.dims.back() != static_cast<std::int64_t>(rank) - 2 || x.dims[0] != grid.dims[0] || y.dims[0] != x.dims[0] ||
      y.dims[1] != x.dims[1])
    return notTaken(spec, "operands that do not fit");
  Sampling s;
  SS_ASSIGN(s.rule, GridRule::parse(spec.attrs));
  s.axes = static_cast<std::int64_t>(rank) - 2;
  for (std::size_t k = 2; k < rank; ++k) {
    if (y.dims[k] != grid.dims[k - 1]) return notTaken(spec, "operands that do not fit");
    s.extents[kAxes + k - rank] = x.dims[k];
    s.taps[kAxes + k - rank] = s.rule.mode == GridRule::Mode::kNearest ? 1 : s.rule.mode == GridRule::Mode::kLinear ? 2 : 4;
    s.inputs *= x.dims[k];
    s.points *= y.dims[k];
  }
  if (s.inputs > INT32_MAX) return notTaken(spec, "planes whose places have more than 31 bits");
  s.batch = x.dims[0];
  s.channels = x.dims[1];
  s.threads = spec.threads;
  return s;
}

// What gridTaps finds for the rule that nearly all models have, linear with zeros outside: taps of one axis for points whose
// coordinates are `step` apart, into records of `perPoint`.
SS_LANE_CLONES void linearTaps(const float* coordinates, std::int64_t step, std::int64_t points, std::int64_t extent,
                               std::int64_t stride, bool alignCorners, std::int64_t perPoint, std::int32_t* place,
                               float* weight, float* slope) {
  const auto size = static_cast<double>(extent);
  const double scale = alignCorners ? (size - 1) / 2 : size / 2;
  for (std::int64_t p = 0; p < points; ++p) {
    const auto coordinate = static_cast<double>(coordinates[p * step]);
    const double meant = alignCorners ? (coordinate + 1) * scale : ((coordinate + 1) * size - 1) / 2;
    const double at = std::fabs(meant) < 1e9 ? meant : -100, base = std::floor(at),
                 t = at - base;  // far out, and NaN: left of everything
    const auto low = static_cast<std::int64_t>(base);
    for (std::int64_t k = 0; k < 2; ++k) {
      const bool inside = low + k >= 0 && low + k < extent;
      place[p * perPoint + k] = inside ? static_cast<std::int32_t>((low + k) * stride) : -1;
      weight[p * perPoint + k] = inside ? static_cast<float>(k == 0 ? 1 - t : t) : 0;
      if (slope != nullptr) slope[p * perPoint + k] = inside ? static_cast<float>(k == 0 ? -scale : scale) : 0;
    }
  }
}

// The taps of some points, axis by axis, as places, weights and (where there is memory for them) slopes of the weights.
struct Table {
  const Sampling* s;
  std::int32_t* place;
  float *weight, *slope;  // slope may be null

  static std::size_t bytes(const Sampling& s, std::int64_t points, bool slopes) {
    return static_cast<std::size_t>(s.perPoint() * points) * (slopes ? 12 : 8);
  }
  static Table in(const Sampling& s, std::byte* memory, std::int64_t points, bool slopes) {
    auto* place = reinterpret_cast<std::int32_t*>(memory);
    auto* weight = reinterpret_cast<float*>(place + s.perPoint() * points);
    return {&s, place, weight, slopes ? weight + s.perPoint() * points : nullptr};
  }

  // Coordinates of the points follow each other, last axis first.
  void find(const float* coordinates, std::int64_t points) const {
    const bool usual = s->rule.mode == GridRule::Mode::kLinear && s->rule.padding == GridRule::Padding::kZeros;
    const std::int64_t perPoint = s->perPoint(), missing = static_cast<std::int64_t>(kAxes) - s->axes;
    std::int64_t at = 0, stride = s->inputs;
    for (std::size_t k = 0; k < kAxes; at += s->taps[k++]) {
      stride /= s->extents[k];
      const float* along = coordinates + static_cast<std::int64_t>(kAxes - 1 - k);
      if (static_cast<std::int64_t>(k) < missing)
        set(
            at, points,
            [](std::int64_t) {
              return GridTaps{1, {}, {1}, {}};
            },
            k, stride);
      else if (usual)
        linearTaps(along, s->axes, points, s->extents[k], stride, s->rule.alignCorners, perPoint, place + at, weight + at,
                   slope == nullptr ? nullptr : slope + at);
      else
        set(
            at, points,
            [&](std::int64_t p) {
              return reference::gridTaps(s->rule, static_cast<double>(along[p * s->axes]), s->extents[k]);
            },
            k, stride);
    }
  }

 private:
  // The taps of axis k, from word `at` of every point on.
  template <typename Taps>
  void set(std::int64_t at, std::int64_t points, Taps&& tapsOf, std::size_t k, std::int64_t stride) const {
    for (std::int64_t p = 0; p < points; ++p, at += s->perPoint()) {
      const GridTaps taps = tapsOf(p);
      for (std::int64_t t = 0; t < s->taps[k]; ++t) {
        const auto i = static_cast<std::size_t>(t);
        const bool inside = t < taps.count;
        place[at + t] = inside ? static_cast<std::int32_t>(taps.position[i] * stride) : -1;
        weight[at + t] = inside ? static_cast<float>(taps.weight[i]) : 0;
        if (slope != nullptr) slope[at + t] = inside ? static_cast<float>(taps.slope[i]) : 0;
      }
    }
  }
};

// kTaps of every axis that there is; the leading ones may have one. Known to the compiler, so that the loops over taps are
// unrolled.
template <int kTaps>
struct Walk {
  std::int64_t planes, rows;
  const std::int32_t* place;
  const float *weight, *slope;

  SS_INLINE AxisTaps rowTaps(std::int64_t at) const { return {place + at + planes, weight + at + planes, rows}; }
  SS_INLINE AxisTaps columnTaps(std::int64_t at) const {
    return {place + at + planes + rows, weight + at + planes + rows, kTaps};
  }
};

// y [points, 16]
template <int kTaps>
SS_LANE_CLONES void samplePoints(const Walk<kTaps>& w, std::int64_t first, std::int64_t points, const float* x, float* y) {
  const std::int64_t perPoint = w.planes + w.rows + kTaps;
  for (std::int64_t p = 0; p < points; ++p) {
    const std::int64_t at = (first + p) * perPoint;
    Floats sum{};
    for (std::int64_t a = 0; a < w.planes; ++a) {
      if (w.place[at + a] < 0) continue;
      Floats plane{};
      sumTaps(w.rowTaps(at), w.columnTaps(at), x + std::int64_t{w.place[at + a]} * kLanes, plane);
      sum += w.weight[at + a] * plane;
    }
    store(sum, y + p * kLanes);
  }
}

// dy [points, 16], dx [inputs, 16]
template <int kTaps>
SS_LANE_CLONES void scatterPoints(const Walk<kTaps>& w, std::int64_t first, std::int64_t points, const float* dy,
                                  float* dx) {
  const std::int64_t perPoint = w.planes + w.rows + kTaps;
  for (std::int64_t p = 0; p < points; ++p) {
    const std::int64_t at = (first + p) * perPoint;
    Floats value;
    load(dy + p * kLanes, value);
    for (std::int64_t a = 0; a < w.planes; ++a)
      if (w.place[at + a] >= 0)
        scatterTaps(w.rowTaps(at), w.columnTaps(at), w.weight[at + a] * value, dx + std::int64_t{w.place[at + a]} * kLanes);
  }
}

// The upper half joins the lower one four times.
SS_INLINE float sumOfProducts(const Floats& a, const Floats& b) {
  Floats v = a * b;
  v += __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
  v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  return v[0] + v[1];
}

// dgrid[p * axes …] += slopes of x at the points times dy, the last axis first
template <int kTaps>
SS_LANE_CLONES void slopePoints(const Walk<kTaps>& w, std::int64_t first, std::int64_t points, const float* x,
                                const float* dy, std::int64_t axes, float* dgrid) {
  const std::int64_t perPoint = w.planes + w.rows + kTaps;
  for (std::int64_t p = 0; p < points; ++p) {
    const std::int64_t at = (first + p) * perPoint;
    const AxisTaps rows = w.rowTaps(at), columns = w.columnTaps(at);
    const float *rowSlope = w.slope + at + w.planes, *columnSlope = rowSlope + w.rows;
    Floats alongPlanes{}, alongRows{}, alongColumns{};
    for (std::int64_t a = 0; a < w.planes; ++a) {
      if (w.place[at + a] < 0) continue;
      Floats plain{}, rowWise{}, columnWise{};
      for (std::int64_t r = 0; r < rows.count; ++r) {
        if (rows.place[r] < 0) continue;
        const float* row = x + (std::int64_t{w.place[at + a]} + rows.place[r]) * kLanes;
        Floats sum{}, slope{};
        for (std::int64_t c = 0; c < kTaps; ++c) {
          if (columns.place[c] < 0) continue;
          Floats value;
          load(row + std::int64_t{columns.place[c]} * kLanes, value);
          sum += columns.weight[c] * value;
          slope += columnSlope[c] * value;
        }
        plain += rows.weight[r] * sum;
        rowWise += rowSlope[r] * sum;
        columnWise += rows.weight[r] * slope;
      }
      alongPlanes += w.slope[at + a] * plain;
      alongRows += w.weight[at + a] * rowWise;
      alongColumns += w.weight[at + a] * columnWise;
    }
    Floats arriving;
    load(dy + p * kLanes, arriving);
    dgrid[p * axes] += sumOfProducts(alongColumns, arriving);
    if (axes > 1) dgrid[p * axes + 1] += sumOfProducts(alongRows, arriving);
    if (axes > 2) dgrid[p * axes + 2] += sumOfProducts(alongPlanes, arriving);
  }
}

// body(walk) with the walk over the table's taps.
template <typename Body>
void withWalk(const Sampling& s, const Table& t, Body&& body) {
  if (s.taps[2] == 1) return body(Walk<1>{s.taps[0], s.taps[1], t.place, t.weight, t.slope});
  if (s.taps[2] == 2) return body(Walk<2>{s.taps[0], s.taps[1], t.place, t.weight, t.slope});
  body(Walk<4>{s.taps[0], s.taps[1], t.place, t.weight, t.slope});
}

// body(first, count) for the tiles of [begin, end).
template <typename Body>
void forEachTile(std::int64_t begin, std::int64_t end, Body&& body) {
  for (std::int64_t at = begin; at < end; at += kTile) body(at, std::min(kTile, end - at));
}

// What a thread works in: the table of a share of the points, then sixteen channels of an image.
struct Memory {
  std::size_t table = 0, own = 0;
  static Memory of(const Sampling& s, std::int64_t shares, bool slopes) {
    const std::size_t table = (Table::bytes(s, (s.points + shares - 1) / shares, slopes) + 63) / 64 * 64;
    return {table, table + static_cast<std::size_t>(s.inputs * kLanes) * sizeof(float)};
  }
  std::byte* of(const KernelCall& call, int part) const {
    return call.workspace.data() + static_cast<std::size_t>(part) * own;
  }
};

using Tile = std::array<float, kTile * kLanes>;

}  // namespace

Result<std::unique_ptr<Kernel>> makeGridSample(const KernelSpec& spec) {
  if (spec.inputs.size() != 2) return notTaken(spec, "other than two operands");
  SS_ASSIGN(const Sampling s, samplingOf(spec, spec.inputs[0], spec.inputs[1], spec.outputs[0]));
  const std::int64_t shares = s.shares(s.batch * s.groups()), items = s.batch * shares * s.groups();
  const Memory memory = Memory::of(s, shares, false);
  const auto body = [=](const KernelCall& call) -> Status {
    parallelParts(
        items, partsOf(items, s.points * kLanes, s.threads), 1, [&](int part, std::int64_t begin, std::int64_t end) {
          const Table table = Table::in(s, memory.of(call, part), (s.points + shares - 1) / shares, false);
          auto* lanes = reinterpret_cast<float*>(memory.of(call, part) + memory.table);
          Tile tile;
          for (std::int64_t item = begin; item < end; ++item) {
            const std::int64_t group = item % s.groups(), share = item / s.groups() % shares, n = item / s.groups() / shares,
                               plane = n * s.channels + group * kLanes;
            const std::int64_t from = s.shareBegin(share, shares), until = s.shareBegin(share + 1, shares);
            if (item == begin || group == 0) table.find(input(call, 1) + (n * s.points + from) * s.axes, until - from);
            lanesOfPlanes(input(call, 0) + plane * s.inputs, s.inputs, s.lanes(group), s.inputs, lanes);
            withWalk(s, table, [&](const auto& walk) {
              forEachTile(from, until, [&](std::int64_t at, std::int64_t count) {
                samplePoints(walk, at - from, count, lanes, tile.data());
                planesOfLanes(tile.data(), count, output(call, 0) + plane * s.points + at, s.points, s.lanes(group));
              });
            });
          }
        });
    return {};
  };
  return makeBodyKernel("taps of 16 channels", body, memory.own * static_cast<std::size_t>(s.threads));
}

// dy, grid, shape of x → dx
Result<std::unique_ptr<Kernel>> makeGridSampleInputGrad(const KernelSpec& spec) {
  if (spec.inputs.size() < 2) return notTaken(spec, "fewer than two operands");
  SS_ASSIGN(const Sampling s, samplingOf(spec, spec.outputs[0], spec.inputs[1], spec.inputs[0]));
  const Memory memory = Memory::of(s, 1, false);
  const auto body = [=](const KernelCall& call) -> Status {
    const std::int64_t items = s.batch * s.groups();
    parallelParts(
        items, partsOf(items, s.points * kLanes, s.threads), 1, [&](int part, std::int64_t begin, std::int64_t end) {
          const Table table = Table::in(s, memory.of(call, part), s.points, false);
          auto* lanes = reinterpret_cast<float*>(memory.of(call, part) + memory.table);
          Tile tile;
          for (std::int64_t item = begin; item < end; ++item) {
            const std::int64_t group = item % s.groups(), n = item / s.groups(), plane = n * s.channels + group * kLanes;
            if (item == begin || group == 0) table.find(input(call, 1) + n * s.points * s.axes, s.points);
            std::fill_n(lanes, s.inputs * kLanes, 0.0F);
            withWalk(s, table, [&](const auto& walk) {
              forEachTile(0, s.points, [&](std::int64_t at, std::int64_t count) {
                lanesOfPlanes(input(call, 0) + plane * s.points + at, s.points, s.lanes(group), count, tile.data());
                scatterPoints(walk, at, count, tile.data(), lanes);
              });
            });
            planesOfLanes(lanes, s.inputs, output(call, 0) + plane * s.inputs, s.inputs, s.lanes(group));
          }
        });
    return {};
  };
  return makeBodyKernel("taps of 16 channels", body, memory.own * static_cast<std::size_t>(s.threads));
}

// dy, x, grid → dgrid
Result<std::unique_ptr<Kernel>> makeGridSampleGridGrad(const KernelSpec& spec) {
  if (spec.inputs.size() != 3) return notTaken(spec, "other than three operands");
  SS_ASSIGN(const Sampling s, samplingOf(spec, spec.inputs[1], spec.inputs[2], spec.inputs[0]));
  if (!takesOutput(spec, 0) || spec.outputs[0].dims != spec.inputs[2].dims)
    return notTaken(spec, "a result of another size");
  const std::int64_t shares = s.shares(s.batch), items = s.batch * shares;
  const Memory memory = Memory::of(s, shares, true);
  const auto body = [=](const KernelCall& call) -> Status {
    parallelParts(
        items, partsOf(items, s.points * s.channels, s.threads), 1, [&](int part, std::int64_t begin, std::int64_t end) {
          const Table table = Table::in(s, memory.of(call, part), (s.points + shares - 1) / shares, true);
          auto* lanes = reinterpret_cast<float*>(memory.of(call, part) + memory.table);
          Tile tile;
          for (std::int64_t item = begin; item < end; ++item) {
            const std::int64_t n = item / shares, from = s.shareBegin(item % shares, shares),
                               until = s.shareBegin(item % shares + 1, shares);
            table.find(input(call, 2) + (n * s.points + from) * s.axes, until - from);
            float* dgrid = output(call, 0) + n * s.points * s.axes;
            std::fill(dgrid + from * s.axes, dgrid + until * s.axes, 0.0F);
            for (std::int64_t group = 0; group < s.groups(); ++group) {
              const std::int64_t plane = n * s.channels + group * kLanes;
              lanesOfPlanes(input(call, 1) + plane * s.inputs, s.inputs, s.lanes(group), s.inputs, lanes);
              withWalk(s, table, [&](const auto& walk) {
                forEachTile(from, until, [&](std::int64_t at, std::int64_t count) {
                  lanesOfPlanes(input(call, 0) + plane * s.points + at, s.points, s.lanes(group), count, tile.data());
                  slopePoints(walk, at - from, count, lanes, tile.data(), s.axes, dgrid + at * s.axes);
                });
              });
            }
          }
        });
    return {};
  };
  return makeBodyKernel("taps of 16 channels", body, memory.own * static_cast<std::size_t>(s.threads));
}

}  // namespace stepscope::cpu
