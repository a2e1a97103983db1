#include <vector>

#include "kernels/reference/reduction/kernels.h"
#include "kernels/reference/reduction/loops.h"

namespace stepscope::reference {
namespace {

// One line of neighbours, in the direction of the product.
struct Line {
  std::int64_t first = 0, step = 1, length = 0;
  std::int64_t at(std::int64_t i) const { return first + i * step; }
};

template <typename Visit>
void forEachProductLine(const KernelSpec& spec, const Lines& lines, Visit&& visit) {
  const bool reverse = spec.attrs.integer("reverse", 0) != 0;
  const std::int64_t begin = reverse ? (lines.axis - 1) * lines.inner : 0;
  if (lines.axis == 0) return;
  forEachLine(lines, [&](std::int64_t at) { visit(Line{at + begin, reverse ? -lines.inner : lines.inner, lines.axis}); });
}

Status cumProd(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  SS_TRY(expectElements(spec, "axis", call.inputs[1], 1));
  SS_ASSIGN(const Lines lines, linesOf(spec, x.dims, elementAsInt(call.inputs[1], 0)));
  const bool exclusive = spec.attrs.integer("exclusive", 0) != 0;
  const bool known = dispatchNumeric(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    using Wide = std::conditional_t<kIsFloat<T>, double, std::uint64_t>;  // unsigned: integer overflow wraps
    const T* in = readAs<T>(x);
    T* out = writeAs<T>(call.outputs[0]);
    forEachProductLine(spec, lines, [&](const Line& line) {
      Wide product = 1;
      for (std::int64_t i = 0; i < line.length; ++i) {
        const auto v = static_cast<Wide>(in[line.at(i)]);
        out[line.at(i)] = static_cast<T>(exclusive ? product : product * v);
        product *= v;
      }
    });
  });
  return known ? Status{} : badType(spec, x.dtype);
}

// dx_i = (product of x before i) · s_i, where s_i is what the later results get of dy through the factors behind i:
// s_i = dy_i + x_{i+1} s_{i+1}; where results leave out their own element, s_i = dy_{i+1} + x_{i+1} s_{i+1}. A factor of
// zero cuts off what is infinite on its other side, as in PyTorch.
Status cumProdGrad(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &dy = call.inputs[0], &x = call.inputs[1];
  SS_TRY(expectElements(spec, "axis", call.inputs[2], 1));
  SS_ASSIGN(const Lines lines, linesOf(spec, x.dims, elementAsInt(call.inputs[2], 0)));
  const bool exclusive = spec.attrs.integer("exclusive", 0) != 0;
  const bool known = dispatchFloat(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const T *slopes = readAs<T>(dy), *in = readAs<T>(x);
    T* out = writeAs<T>(call.outputs[0]);
    std::vector<double> behind(static_cast<std::size_t>(lines.axis));
    forEachProductLine(spec, lines, [&](const Line& line) {
      double sum = 0;
      for (std::int64_t i = line.length; i-- > 0;) {
        const bool last = i + 1 == line.length;
        const double factor = last ? 0 : static_cast<double>(in[line.at(i + 1)]);
        const double arriving = !exclusive ? static_cast<double>(slopes[line.at(i)])
                                : last     ? 0
                                           : static_cast<double>(slopes[line.at(i + 1)]);
        sum = factor == 0 ? arriving : arriving + factor * sum;
        behind[static_cast<std::size_t>(i)] = sum;
      }
      double product = 1;
      for (std::int64_t i = 0; i < line.length; ++i) {
        out[line.at(i)] = static_cast<T>(product == 0 ? 0 : product * behind[static_cast<std::size_t>(i)]);
        product *= static_cast<double>(in[line.at(i)]);
      }
    });
  });
  return known ? Status{} : badType(spec, x.dtype);
}

constexpr KernelEntry kCumProdEntries[] = {{"", "CumProd", plain<cumProd>},
                                           {"stepscope", "CumProdGrad", plain<cumProdGrad>}};

}  // namespace

std::span<const KernelEntry> cumProdKernels() { return kCumProdEntries; }

}  // namespace stepscope::reference
