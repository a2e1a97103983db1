#include "kernels/cpu/loops/not_finite.h"

#include <bit>

#include "kernels/cpu/loops/loops.h"

namespace stepscope::cpu {
namespace {

// All bits of the exponent are set in what is not finite.
template <typename T, typename Bits>
SS_CLONES bool anyExponent(const T* x, std::int64_t count, Bits exponent) {
  Bits found = 0;
#pragma omp simd reduction(| : found)
  for (std::int64_t i = 0; i < count; ++i)
    found = static_cast<Bits>(found | ((std::bit_cast<Bits>(x[i]) & exponent) == exponent ? 1U : 0U));
  return found != 0;
}

}  // namespace

bool anyNotFinite(const TensorView& view) {
  if (!view.present() || !view.data) return false;
  const std::int64_t count = view.elements();
  switch (view.dtype) {
    case DType::kF32: return anyExponent(static_cast<const float*>(view.data), count, std::uint32_t{0x7f800000});
    case DType::kF64: return anyExponent(static_cast<const double*>(view.data), count, std::uint64_t{0x7ff0000000000000});
    case DType::kF16: return anyExponent(static_cast<const Float16*>(view.data), count, std::uint16_t{0x7c00});
    case DType::kBF16: return anyExponent(static_cast<const BFloat16*>(view.data), count, std::uint16_t{0x7f80});
    default: return false;
  }
}

}  // namespace stepscope::cpu
