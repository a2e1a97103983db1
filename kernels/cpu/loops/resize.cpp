// Resize and its gradient over the last two axes (or one of them), every mode: a sparse matrix per axis, from the tables of the reference
// kernel, made once. A row of the result is a weighted sum of rows, then of columns; the gradient is the same with both matrices turned.
#include <array>
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
  std::size_t each = 1;  // as many for every target; 0: not the same number

  void countEach() {
    each = start[1];
    for (std::size_t t = 0; t + 1 < start.size(); ++t)
      if (start[t + 1] - start[t] != each) each = 0;
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
  taps.countEach();
  return taps;
}

bool isIdentity(const reference::ResizeAxis& axis) {
  for (std::size_t i = 0; i < axis.position.size(); ++i)
    if (axis.position[i] != static_cast<std::int64_t>(i) || axis.weight[i] != 1) return false;
  return axis.in == axis.out;
}

SS_CLONES void weighRow(const float* x, float weight, float* y, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = weight * x[i];
}
SS_CLONES void addRow(const float* x, float weight, float* y, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] += weight * x[i];
}

template <std::size_t kEach>
SS_CLONES void columns(const float* x, const std::int32_t* position, const float* weight, float* y, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    float sum = 0;
    for (std::size_t k = 0; k < kEach; ++k) sum += weight[static_cast<std::size_t>(i) * kEach + k] * x[position[static_cast<std::size_t>(i) * kEach + k]];
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

void weighColumns(const Taps& taps, const float* x, float* y) {
  const std::int32_t* position = taps.position.data();
  const float* weight = taps.weight.data();
  if (taps.each == 1) return columns<1>(x, position, weight, y, taps.to);
  if (taps.each == 2) return columns<2>(x, position, weight, y, taps.to);
  if (taps.each == 4) return columns<4>(x, position, weight, y, taps.to);
  for (std::int64_t t = 0; t < taps.to; ++t) {
    const std::size_t first = taps.start[static_cast<std::size_t>(t)], end = taps.start[static_cast<std::size_t>(t) + 1];
    float sum = 0;
    for (std::size_t tap = first; tap < end; ++tap) sum += weight[tap] * x[position[tap]];
    y[t] = sum;
  }
}

// The matrices of the last two axes; those before them stay as they are.
struct Plan {
  std::int64_t planes = 1, lanes = 1;  // lanes: floats of one position that lie side by side
  Taps rows, lines;  // of the last axis but one, of the last
};

void resizePlane(const Plan& plan, const float* x, float* y, float* row) {
  const Taps& rows = plan.rows;
  const std::int64_t length = plan.lines.from * plan.lanes;
  for (std::int64_t t = 0; t < rows.to; ++t, y += plan.lines.to * plan.lanes) {
    const std::size_t first = rows.start[static_cast<std::size_t>(t)], end = rows.start[static_cast<std::size_t>(t) + 1];
    if (first == end) {
      std::fill_n(y, plan.lines.to * plan.lanes, 0.0F);
      continue;
    }
    const float* from = x + rows.position[first] * length;
    if (end - first > 1 || rows.weight[first] != 1) {
      weighRow(from, rows.weight[first], row, length);
      for (std::size_t tap = first + 1; tap < end; ++tap) addRow(x + rows.position[tap] * length, rows.weight[tap], row, length);
      from = row;
    }
    if (plan.lanes == 1)
      weighColumns(plan.lines, from, y);
    else
      for (std::int64_t c = 0; c < plan.lines.to; ++c) {
        const std::size_t begin = plan.lines.start[static_cast<std::size_t>(c)];
        weighLanes(plan.lines.position.data() + begin, plan.lines.weight.data() + begin, plan.lines.start[static_cast<std::size_t>(c) + 1] - begin, from, y + c * plan.lanes);
      }
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
    if (std::find(axis.outside.begin(), axis.outside.end(), true) != axis.outside.end()) return notTaken(spec, "positions outside of the operand");
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
    if (!isBlocked(spec.inputs[0]) || !isBlocked(spec.outputs[0]) || x.size() > 4) return notTaken(spec, "operands in several layouts");
    // The channels are planes: with one spatial axis the matrix over them changes nothing.
    if (x.size() == 3) {
      made.planes *= x[1];
      made.rows = {};
    }
    made.planes /= kLayoutLanes;
    made.lanes = kLayoutLanes;
  }
  const auto plan = std::make_shared<const Plan>(std::move(made));
  const std::int64_t from = plan->rows.from * plan->lines.from * plan->lanes, to = plan->rows.to * plan->lines.to * plan->lanes;
  const int parts = partsOf(plan->planes, 4 * std::max(from, to), spec.threads);
  const std::size_t rowBytes = (static_cast<std::size_t>(plan->lines.from * plan->lanes) * sizeof(float) + 63) / 64 * 64;
  const auto body = [=](const KernelCall& call) -> Status {
    parallelParts(plan->planes, parts, 1, [&](int part, std::int64_t begin, std::int64_t end) {
      auto* row = reinterpret_cast<float*>(call.workspace.data() + static_cast<std::size_t>(part) * rowBytes);
      for (std::int64_t p = begin; p < end; ++p) resizePlane(*plan, input(call, 0) + p * from, output(call, 0) + p * to, row);
    });
    return {};
  };
  return makeBodyKernel("row and column sums", body, rowBytes * static_cast<std::size_t>(parts));
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeResize(const KernelSpec& spec) { return make(spec, spec.inputs[0].dims, spec.outputs[0].dims, 1, false); }
Result<std::unique_ptr<Kernel>> makeResizeGrad(const KernelSpec& spec) { return make(spec, spec.outputs[0].dims, spec.inputs[0].dims, 2, true); }

}  // namespace stepscope::cpu
