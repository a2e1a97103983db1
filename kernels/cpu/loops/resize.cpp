// Resize and its gradient over the last two axes (or one of them), every mode: a sparse matrix per axis, from the tables of
// the reference kernel, made once. A row of the result is a weighted sum of rows, then of columns; the gradient is the same
// with both matrices turned.
#include <array>
#include <bit>
#include <memory>
#include <vector>

#include "kernels/cpu/loops/lanes_last.h"
#include "kernels/cpu/loops/support.h"
#include "kernels/reference/linear/resize_axes.h"

namespace stepscope::cpu {
namespace {

// Which positions of the source one position of the target takes, with what weights.
struct Taps {
  std::int64_t from = 1, to = 1;
  std::vector<std::size_t> start{0, 1};  // to + 1 entries
  std::vector<std::int32_t> position{0};
  std::vector<float> weight{1};
  // The same for loops over targets side by side: as many for each, tap by tap; 0 where a target has none, or too many.
  std::size_t each = 0;
  std::vector<std::int32_t> positions;  // [each, to]
  std::vector<float> weights;

  // Targets at the borders have fewer. Their last tap then counts as several, whose weights are halves of it: exact, and
  // nothing is touched that is not theirs.
  void evenOut() {
    std::size_t most = 0, fewest = start[1] - start[0];
    for (std::size_t t = 0; t + 1 < start.size(); ++t) {
      most = std::max(most, start[t + 1] - start[t]);
      fewest = std::min(fewest, start[t + 1] - start[t]);
    }
    each = fewest == 0 || most > 8 ? 0 : std::bit_ceil(most);
    const std::size_t targets = start.size() - 1;
    positions.resize(each * targets);
    weights.resize(each * targets);
    for (std::size_t t = 0; each > 0 && t < targets; ++t)
      for (std::size_t k = 0; k < each; ++k) {
        const std::size_t tap = std::min(start[t] + k, start[t + 1] - 1);
        float share = weight[tap];
        for (std::size_t half = start[t + 1] - 1 - start[t]; half < std::min(k + 1, each - 1); ++half) share *= 0.5F;
        positions[k * targets + t] = position[tap];
        weights[k * targets + t] = share;
      }
  }
};

Taps tapsOf(const reference::ResizeAxis& axis, bool turned) {
  Taps taps;
  taps.from = turned ? axis.out : axis.in;
  taps.to = turned ? axis.in : axis.out;
  std::vector<std::vector<std::pair<std::int64_t, double>>> lists(static_cast<std::size_t>(taps.to));
  for (std::size_t o = 0; o + 1 < axis.start.size(); ++o)
    for (std::size_t tap = axis.start[o]; tap < axis.start[o + 1]; ++tap) {
      const std::int64_t own = static_cast<std::int64_t>(o), other = axis.position[tap];
      lists[static_cast<std::size_t>(turned ? other : own)].emplace_back(turned ? own : other, axis.weight[tap]);
    }
  taps.start.assign(1, 0);
  taps.position.clear();
  taps.weight.clear();
  for (const auto& list : lists) {
    for (const auto& [position, weight] : list) {
      taps.position.push_back(static_cast<std::int32_t>(position));
      taps.weight.push_back(static_cast<float>(weight));
    }
    taps.start.push_back(taps.position.size());
  }
  taps.evenOut();
  return taps;
}

bool isIdentity(const reference::ResizeAxis& axis) {
  for (std::size_t i = 0; i < axis.position.size(); ++i)
    if (axis.position[i] != static_cast<std::int64_t>(i) || axis.weight[i] != 1) return false;
  return axis.in == axis.out;
}

// Up to two rows at a time, the first ones or those that come to what is there.
template <bool kAdd>
SS_CLONES void weighRow(const float* x, float weight, float* y, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = kAdd ? y[i] + weight * x[i] : weight * x[i];
}
template <bool kAdd>
SS_CLONES void weighTwoRows(const float* a, float ofA, const float* b, float ofB, float* y, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = kAdd ? y[i] + ofA * a[i] + ofB * b[i] : ofA * a[i] + ofB * b[i];
}

// Row t of the target from rows of `length` floats.
void weighRows(const Taps& taps, std::int64_t t, const float* x, std::int64_t length, float* y) {
  const std::size_t first = taps.start[static_cast<std::size_t>(t)], end = taps.start[static_cast<std::size_t>(t) + 1];
  const auto row = [&](std::size_t tap) { return x + taps.position[tap] * length; };
  if (first == end) {
    std::fill_n(y, length, 0.0F);
    return;
  }
  if (end - first == 1)
    weighRow<false>(row(first), taps.weight[first], y, length);
  else
    weighTwoRows<false>(row(first), taps.weight[first], row(first + 1), taps.weight[first + 1], y, length);
  for (std::size_t tap = first + 2; tap < end; tap += 2) {
    if (tap + 1 < end)
      weighTwoRows<true>(row(tap), taps.weight[tap], row(tap + 1), taps.weight[tap + 1], y, length);
    else
      weighRow<true>(row(tap), taps.weight[tap], y, length);
  }
}

template <std::size_t kEach>
SS_CLONES void columns(const float* x, const std::int32_t* position, const float* weight, float* y, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    float sum = 0;
    for (std::int64_t k = 0; k < static_cast<std::int64_t>(kEach); ++k) sum += weight[k * n + i] * x[position[k * n + i]];
    y[i] = sum;
  }
}

// Sixteen channels per position.
SS_CLONES void weighLanes(const std::int32_t* position, const float* weight, std::size_t taps, const float* x, float* y) {
  std::array<float, kLayoutLanes> sums{};
  for (std::size_t tap = 0; tap < taps; ++tap) {
    const float* from = x + position[tap] * kLayoutLanes;
    for (std::size_t lane = 0; lane < kLayoutLanes; ++lane) sums[lane] += weight[tap] * from[lane];
  }
  std::copy(sums.begin(), sums.end(), y);
}

void weighColumns(const Taps& taps, std::int64_t lanes, const float* x, float* y) {
  if (lanes > 1) {
    for (std::int64_t t = 0; t < taps.to; ++t) {
      const std::size_t first = taps.start[static_cast<std::size_t>(t)], end = taps.start[static_cast<std::size_t>(t) + 1];
      weighLanes(taps.position.data() + first, taps.weight.data() + first, end - first, x, y + t * lanes);
    }
    return;
  }
  const std::int32_t* position = taps.positions.data();
  const float* weight = taps.weights.data();
  if (taps.each == 1) return columns<1>(x, position, weight, y, taps.to);
  if (taps.each == 2) return columns<2>(x, position, weight, y, taps.to);
  if (taps.each == 4) return columns<4>(x, position, weight, y, taps.to);
  if (taps.each == 8) return columns<8>(x, position, weight, y, taps.to);
  for (std::int64_t t = 0; t < taps.to; ++t) {
    const std::size_t first = taps.start[static_cast<std::size_t>(t)], end = taps.start[static_cast<std::size_t>(t) + 1];
    float sum = 0;
    for (std::size_t tap = first; tap < end; ++tap) sum += taps.weight[tap] * x[taps.position[tap]];
    y[t] = sum;
  }
}

// The matrices of the last two axes; those before them stay as they are.
struct Plan {
  std::int64_t planes = 1, lanes = 1;  // lanes: floats of one position that lie side by side
  Taps rows, lines;                    // of the last axis but one, of the last
  bool columnsFirst() const { return rows.from < rows.to; }
  std::int64_t roomFloats() const { return columnsFirst() ? rows.from * lines.to * lanes : lines.from * lanes; }
};

// Where the result has more rows, the columns of each row of the operand come first: their positions are picked one by one,
// while rows are added as they lie. `room` holds roomFloats().
void resizePlane(const Plan& plan, const float* x, float* y, float* room) {
  const Taps& rows = plan.rows;
  const std::int64_t from = plan.lines.from * plan.lanes, to = plan.lines.to * plan.lanes;
  if (plan.columnsFirst()) {
    for (std::int64_t r = 0; r < rows.from; ++r) weighColumns(plan.lines, plan.lanes, x + r * from, room + r * to);
    for (std::int64_t t = 0; t < rows.to; ++t) weighRows(rows, t, room, to, y + t * to);
    return;
  }
  for (std::int64_t t = 0; t < rows.to; ++t) {
    const std::size_t first = rows.start[static_cast<std::size_t>(t)],
                      taps = rows.start[static_cast<std::size_t>(t) + 1] - first;
    const bool asItIs = taps == 1 && rows.weight[first] == 1;
    if (!asItIs) weighRows(rows, t, x, from, room);
    weighColumns(plan.lines, plan.lanes, asItIs ? x + rows.position[first] * from : room, y + t * to);
  }
}

// `x` and `y` are the extents of the forward operands; input `roi` and the two behind it must be known.
Result<Plan> planOf(const KernelSpec& spec, const Dims& x, const Dims& y, std::size_t roi, bool turned) {
  std::vector<TensorView> views(spec.inputs.size());
  for (std::size_t i = roi; i < spec.inputs.size(); ++i) {
    if (!spec.inputPresent(i)) continue;
    if (!spec.inputs[i].constant.valid()) return notTaken(spec, "scales or sizes that are not constant");
    views[i] = spec.inputs[i].constant.view();
  }
  KernelCall call{views, {}, {}, {}, {}};
  SS_ASSIGN(const reference::ResizeAxes axes, reference::resizeAxes(spec.attrs, call, roi, x, y));
  Plan plan;
  for (std::size_t a = 0; a < axes.axes.size(); ++a) {
    const reference::ResizeAxis& axis = axes.axes[a];
    if (std::find(axis.outside.begin(), axis.outside.end(), true) != axis.outside.end())
      return notTaken(spec, "positions outside of the operand");
    if (axis.in > INT32_MAX || axis.out > INT32_MAX) return notTaken(spec, "extents beyond 31 bits");
    if (a + 1 == axes.axes.size()) {
      plan.lines = tapsOf(axis, turned);
    } else if (a + 2 == axes.axes.size()) {
      plan.rows = tapsOf(axis, turned);
    } else {
      if (!isIdentity(axis)) return notTaken(spec, "more than two resized axes");
      plan.planes *= axis.in;
    }
  }
  return plan;
}

Result<std::unique_ptr<Kernel>> make(const KernelSpec& spec, const Dims& x, const Dims& y, std::size_t roi, bool turned) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0) || x.empty()) return notTaken(spec, "elements other than float32");
  SS_ASSIGN(Plan made, planOf(spec, x, y, roi, turned));
  if (anyBlocked(spec)) {
    if (!isBlocked(spec.inputs[0]) || !isBlocked(spec.outputs[0]) || x.size() > 4)
      return notTaken(spec, "operands in several layouts");
    // The channels are planes: with one spatial axis the matrix over them changes nothing.
    if (x.size() == 3) {
      made.planes *= x[1];
      made.rows = {};
    }
    made.planes /= kLayoutLanes;
    made.lanes = kLayoutLanes;
  }
  const auto plan = std::make_shared<const Plan>(std::move(made));
  const std::int64_t from = plan->rows.from * plan->lines.from * plan->lanes,
                     to = plan->rows.to * plan->lines.to * plan->lanes;
  const Parts parts = partsOf(plan->planes, 4 * std::max(from, to), spec.threads);
  const std::size_t roomBytes = (static_cast<std::size_t>(plan->roomFloats()) * sizeof(float) + 63) / 64 * 64;
  const auto body = [=](const KernelCall& call) -> Status {
    parallelParts(plan->planes, parts, 1, [&](int part, std::int64_t begin, std::int64_t end) {
      auto* room = reinterpret_cast<float*>(call.workspace.data() + static_cast<std::size_t>(part) * roomBytes);
      for (std::int64_t p = begin; p < end; ++p)
        resizePlane(*plan, input(call, 0) + p * from, output(call, 0) + p * to, room);
    });
    return {};
  };
  return makeBodyKernel("row and column sums", body, roomBytes * static_cast<std::size_t>(parts));
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeResize(const KernelSpec& spec) {
  return make(spec, spec.inputs[0].dims, spec.outputs[0].dims, 1, false);
}
Result<std::unique_ptr<Kernel>> makeResizeGrad(const KernelSpec& spec) {
  return make(spec, spec.outputs[0].dims, spec.inputs[0].dims, 2, true);
}

}  // namespace stepscope::cpu
