#include "kernels/reference/reduction/kernels.h"
#include "kernels/reference/reduction/loops.h"

namespace stepscope::reference {
namespace {

// The index of the extreme element of one line; a NaN beats every number, as in NumPy and PyTorch.
template <typename T, bool kMax>
std::int64_t argLine(const T* x, const Lines& lines, bool selectLast) {
  using Wide = std::conditional_t<kIsFloat<T>, double, T>;
  std::int64_t best = 0;
  auto value = static_cast<Wide>(x[0]);
  for (std::int64_t a = 1; a < lines.axis; ++a) {
    const auto v = static_cast<Wide>(x[a * lines.inner]);
    const bool better = kMax ? v > value : v < value;
    const bool nan = v != v, hadNan = value != value;
    if ((better && !hadNan) || (nan && !hadNan) || (selectLast && (v == value || (nan && hadNan)))) {
      best = a;
      value = v;
    }
  }
  return best;
}

template <bool kMax>
Status argReduce(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  SS_ASSIGN(const Lines lines, linesOf(spec, x.dims, spec.attrs.integer("axis", 0)));
  SS_TRY(expectElements(spec, "output", call.outputs[0], lines.outer * lines.inner));
  if (lines.axis == 0 && lines.outer * lines.inner > 0) return invalid(spec.op + ": the axis is empty; expected an element");
  const bool selectLast = spec.attrs.integer("select_last_index", 0) != 0;
  auto* y = writeAs<std::int64_t>(call.outputs[0]);
  const bool known = dispatchNumeric(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    std::int64_t result = 0;
    forEachLine(lines, [&](std::int64_t at) { y[result++] = argLine<T, kMax>(readAs<T>(x) + at, lines, selectLast); });
  });
  if (!known) return badType(spec, x.dtype);
  return {};
}

constexpr KernelEntry kArgReduceEntries[] = {
    {"", "ArgMax", plain<argReduce<true>>},
    {"", "ArgMin", plain<argReduce<false>>},
};

}  // namespace

std::span<const KernelEntry> argReduceKernels() { return kArgReduceEntries; }

}  // namespace stepscope::reference
