// Pad in all modes, with elements added or removed, and PadGrad: rows of the last axis that changes are copied whole, and
// only their ends are looked up. Operands that do not fit are left to the reference kernel, which names mistakes.
#include <cstring>

#include "kernels/cpu/loops/strided.h"
#include "kernels/reference/movement/common.h"
#include "kernels/reference/movement/pad_mode.h"

namespace stepscope::cpu {
namespace {

using reference::Extents;
using reference::PadMode;

// Axes of the data and of the padded tensor, and where each position of the latter comes from. The lists lie in the
// workspace.
struct Plan {
  Dims data, padded;
  PadMode mode = PadMode::kConstant;
  std::size_t padsInput = 1;
  Extents begin{};
  std::size_t last = 0;                                     // the last axis that changes
  std::array<std::int64_t*, reference::kMaxRank> source{};  // of the axes before it, by padded position; -1 = the constant
  std::int64_t rowUnit = 1;                                 // elements behind one position of it
  std::int64_t whole = 0, wholeEnd = 0;                     // positions of `last` that lie in the data

  std::int64_t sourceInRow(std::int64_t i) const { return reference::padSource(mode, i - begin[last], data[last]); }

  std::size_t rank() const { return data.size(); }
  std::int64_t listed() const {
    std::int64_t n = 0;
    for (std::size_t a = 0; a + 1 < rank(); ++a) n += padded[a];
    return n;
  }
};

// Reads the pads of this run. False: they do not lead from the data to the padded tensor.
bool readPads(Plan& plan, const KernelCall& call) {
  plan.begin = {};
  Extents end{};
  const TensorView& pads = call.inputs[plan.padsInput];
  const std::size_t axesInput = 3;
  const bool hasAxes = call.inputPresent(axesInput);
  const auto rank = static_cast<std::int64_t>(plan.rank());
  const std::int64_t count = hasAxes ? call.inputs[axesInput].elements() : rank;
  if (pads.elements() != 2 * count) return false;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto axis = normalizeAxis(hasAxes ? elementAsInt(call.inputs[axesInput], i) : i, rank);
    if (!axis) return false;
    plan.begin[static_cast<std::size_t>(*axis)] = elementAsInt(pads, i);
    end[static_cast<std::size_t>(*axis)] = elementAsInt(pads, count + i);
  }
  plan.last = 0;
  for (std::size_t a = 0; a < plan.rank(); ++a) {
    std::int64_t extent = 0;
    if (__builtin_add_overflow(plan.data[a], plan.begin[a], &extent) || __builtin_add_overflow(extent, end[a], &extent) ||
        extent != plan.padded[a])
      return false;
    if (plan.begin[a] != 0 || end[a] != 0) plan.last = a;
  }
  auto* lists = reinterpret_cast<std::int64_t*>(call.workspace.data());
  for (std::size_t a = 0; a < plan.last; ++a) {
    plan.source[a] = lists;
    for (std::int64_t i = 0; i < plan.padded[a]; ++i)
      *lists++ = reference::padSource(plan.mode, i - plan.begin[a], plan.data[a]);
  }
  plan.rowUnit = 1;
  for (std::size_t a = plan.last + 1; a < plan.rank(); ++a) plan.rowUnit *= plan.data[a];
  plan.whole = std::clamp<std::int64_t>(plan.begin[plan.last], 0, plan.padded[plan.last]);
  plan.wholeEnd = std::clamp<std::int64_t>(plan.begin[plan.last] + plan.data[plan.last], plan.whole, plan.padded[plan.last]);
  return true;
}

template <typename T>
void padRows(const Plan& plan, T* y, const T* x, T fill, int threads) {
  const Extents strides = reference::stridesOf(plan.data);
  const std::int64_t extent = plan.padded[plan.last], unit = plan.rowUnit;
  std::int64_t rows = 1;
  for (std::size_t a = 0; a < plan.last; ++a) rows *= plan.padded[a];
  parallelRows(rows, extent * unit, threads, [&](std::int64_t first, std::int64_t behind) {
    for (std::int64_t row = first; row < behind; ++row) {
      T* to = y + row * extent * unit;
      const T* from = x;
      std::int64_t rest = row;
      for (std::size_t a = plan.last; a-- > 0 && from != nullptr;) {
        const std::int64_t at = plan.source[a][rest % plan.padded[a]];
        rest /= plan.padded[a];
        from = at < 0 ? nullptr : from + at * strides[a];
      }
      if (from == nullptr) {
        std::fill(to, to + extent * unit, fill);
        continue;
      }
      const auto lookUp = [&](std::int64_t i) {
        const std::int64_t source = plan.sourceInRow(i);
        if (source < 0)
          std::fill(to + i * unit, to + (i + 1) * unit, fill);
        else if (unit == 1)
          to[i] = from[source];
        else
          std::memcpy(to + i * unit, from + source * unit, static_cast<std::size_t>(unit) * sizeof(T));
      };
      for (std::int64_t i = 0; i < plan.whole; ++i) lookUp(i);
      if (plan.wholeEnd > plan.whole)
        std::memcpy(to + plan.whole * unit, from + (plan.whole - plan.begin[plan.last]) * unit,
                    static_cast<std::size_t>((plan.wholeEnd - plan.whole) * unit) * sizeof(T));
      for (std::int64_t i = plan.wholeEnd; i < extent; ++i) lookUp(i);
    }
  });
}

SS_CLONES void add(float* to, const float* from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
}

// Every row of dx collects the rows of dy that came from it: for each axis before the last, the positions that point to it.
void gradientRows(const Plan& plan, std::int64_t* positions, float* dx, const float* dy, int threads) {
  const Extents strides = reference::stridesOf(plan.padded);
  const std::int64_t extent = plan.data[plan.last], unit = plan.rowUnit;
  // Lists by axis: data position p has positions[starts[a][p] .. starts[a][p + 1]).
  std::array<std::int64_t*, reference::kMaxRank> starts{}, lists{};
  std::int64_t rows = 1;
  for (std::size_t a = 0; a < plan.last; ++a) {
    rows *= plan.data[a];
    starts[a] = positions;
    lists[a] = positions + plan.data[a] + 1;
    positions = lists[a] + plan.padded[a];
    std::fill(starts[a], lists[a], 0);
    for (std::int64_t i = 0; i < plan.padded[a]; ++i)
      if (plan.source[a][i] >= 0) ++starts[a][plan.source[a][i] + 1];
    for (std::int64_t p = 0; p < plan.data[a]; ++p) starts[a][p + 1] += starts[a][p];
    // Filling moves every start to the next one; they are moved back afterwards.
    for (std::int64_t i = 0; i < plan.padded[a]; ++i)
      if (plan.source[a][i] >= 0) lists[a][starts[a][plan.source[a][i]]++] = i;
    for (std::int64_t p = plan.data[a]; p > 0; --p) starts[a][p] = starts[a][p - 1];
    starts[a][0] = 0;
  }
  parallelRows(rows, extent * unit, threads, [&](std::int64_t first, std::int64_t behind) {
    for (std::int64_t row = first; row < behind; ++row) {
      float* to = dx + row * extent * unit;
      std::fill(to, to + extent * unit, 0.0F);
      Extents from{}, until{};
      bool any = true;
      std::int64_t rest = row;
      for (std::size_t a = plan.last; a-- > 0;) {
        const std::int64_t p = rest % plan.data[a];
        rest /= plan.data[a];
        from[a] = starts[a][p];
        until[a] = starts[a][p + 1];
        any &= from[a] < until[a];
      }
      for (Extents at = from; any;) {
        const float* values = dy;
        for (std::size_t a = 0; a < plan.last; ++a) values += lists[a][at[a]] * strides[a];
        const auto collect = [&](std::int64_t i) {
          if (const std::int64_t source = plan.sourceInRow(i); source >= 0) add(to + source * unit, values + i * unit, unit);
        };
        for (std::int64_t i = 0; i < plan.whole; ++i) collect(i);
        add(to + (plan.whole - plan.begin[plan.last]) * unit, values + plan.whole * unit,
            (plan.wholeEnd - plan.whole) * unit);
        for (std::int64_t i = plan.wholeEnd; i < plan.padded[plan.last]; ++i) collect(i);
        any = false;
        for (std::size_t a = plan.last; a-- > 0 && !any;) {
          any = ++at[a] < until[a];
          if (!any) at[a] = from[a];
        }
      }
    }
  });
}

Result<Plan> planOf(const KernelSpec& spec, const OperandSpec& data, const OperandSpec& padded, std::size_t padsInput) {
  SS_ASSIGN(const PadMode mode, reference::padMode(spec));
  if (data.dims.size() != padded.dims.size() || data.dims.empty() || data.dims.size() > reference::kMaxRank)
    return notTaken(spec, "ranks");
  Plan plan;
  plan.data = data.dims;
  plan.padded = padded.dims;
  plan.mode = mode;
  plan.padsInput = padsInput;
  return plan;
}

}  // namespace

Result<std::unique_ptr<Kernel>> makePad(const KernelSpec& spec) {
  if (!movable(spec, 0, 0) || spec.inputs.size() < 2) return notTaken(spec, "elements that cannot be copied");
  if (spec.inputPresent(2) && !takesOptional(spec, 2, 1, spec.inputs[0].dtype))
    return notTaken(spec, "a constant of another type");
  SS_ASSIGN(Plan plan, planOf(spec, spec.inputs[0], spec.outputs[0], 1));
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  const std::size_t workspace = static_cast<std::size_t>(plan.listed()) * sizeof(std::int64_t);
  const auto body = [=, dtype = spec.inputs[0].dtype, threads = spec.threads](const KernelCall& call) mutable -> Status {
    if (!readPads(plan, call)) return reference->run(call);
    reference::dispatchBySize(dtype, [&](auto tag) {
      using T = decltype(tag);
      if constexpr (!std::is_same_v<T, std::string>)
        padRows(plan, output<T>(call, 0), input<T>(call, 0), call.inputPresent(2) ? *input<T>(call, 2) : T{}, threads);
    });
    return {};
  };
  return makeBodyKernel("rows", body, workspace);
}

Result<std::unique_ptr<Kernel>> makePadGrad(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesOutput(spec, 0) || spec.inputs.size() < 3)
    return notTaken(spec, "operands other than float32");
  SS_ASSIGN(Plan plan, planOf(spec, spec.outputs[0], spec.inputs[0], 2));
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  std::int64_t numbers = 2 * plan.listed();
  for (std::size_t a = 0; a + 1 < plan.rank(); ++a) numbers += plan.data[a] + 1;
  const auto body = [=, threads = spec.threads](const KernelCall& call) mutable -> Status {
    if (!readPads(plan, call)) return reference->run(call);
    gradientRows(plan, reinterpret_cast<std::int64_t*>(call.workspace.data()) + plan.listed(), output(call, 0),
                 input(call, 0), threads);
    return {};
  };
  return makeBodyKernel("rows", body, static_cast<std::size_t>(numbers) * sizeof(std::int64_t));
}

}  // namespace stepscope::cpu
