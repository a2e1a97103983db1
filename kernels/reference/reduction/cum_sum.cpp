#include "kernels/reference/reduction/kernels.h"
#include "kernels/reference/reduction/loops.h"

namespace stepscope::reference {
namespace {

// `step` is the distance of neighbours in the direction of the sum; x and y point at its first element.
template <typename T>
void sumLine(const T* x, T* y, std::int64_t length, std::int64_t step, bool exclusive) {
  using Wide = std::conditional_t<kIsFloat<T>, double, std::uint64_t>;  // unsigned: integer overflow wraps
  Wide sum = 0;
  for (std::int64_t a = 0; a < length; ++a) {
    const auto v = static_cast<Wide>(x[a * step]);
    y[a * step] = static_cast<T>(exclusive ? sum : sum + v);
    sum += v;
  }
}

Status cumSum(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  SS_TRY(expectElements(spec, "axis", call.inputs[1], 1));
  SS_ASSIGN(const Lines lines, linesOf(spec, x.dims, elementAsInt(call.inputs[1], 0)));
  const bool exclusive = spec.attrs.integer("exclusive", 0) != 0;
  const bool reverse = spec.attrs.integer("reverse", 0) != 0;
  const std::int64_t first = reverse ? (lines.axis - 1) * lines.inner : 0;
  if (lines.axis == 0) return {};
  const bool known = dispatchNumeric(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    forEachLine(lines, [&](std::int64_t at) {
      sumLine(readAs<T>(x) + at + first, writeAs<T>(call.outputs[0]) + at + first, lines.axis,
              reverse ? -lines.inner : lines.inner, exclusive);
    });
  });
  if (!known) return badType(spec, x.dtype);
  return {};
}

constexpr KernelEntry kCumSumEntries[] = {{"", "CumSum", plain<cumSum>}};

}  // namespace

std::span<const KernelEntry> cumSumKernels() { return kCumSumEntries; }

}  // namespace stepscope::reference
