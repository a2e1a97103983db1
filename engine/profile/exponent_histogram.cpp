#include "engine/profile/exponent_histogram.h"

#include <cmath>
#include <limits>

namespace stepscope {
namespace {

struct Limits {
  double near, normal;
  explicit Limits(DType type) : near(largestNumber(type) / 2), normal(smallestNormal(type)) {}
};

void count(double number, const Limits& limits, ExponentHistogram& into) {
  const double magnitude = std::abs(number);
  if (magnitude == 0) {
    ++into.zeros;
  } else if (!std::isfinite(magnitude)) {
    ++into.notFinite;
  } else {
    into.nearOverflow += magnitude >= limits.near;
    into.subnormal += magnitude < limits.normal;
    ++into.byExponent[static_cast<std::size_t>(std::ilogb(magnitude) - ExponentHistogram::kLowest)];
  }
}

template <typename T>
void countAll(const TensorView& view, ExponentHistogram& into) {
  const Limits limits(view.dtype);
  for (const T element : view.as<T>()) count(static_cast<double>(element), limits, into);
}

void begin(ExponentHistogram& histogram, std::int64_t elements) {
  histogram.elements += elements;
  if (histogram.byExponent.empty())
    histogram.byExponent.resize(ExponentHistogram::kHighest - ExponentHistogram::kLowest + 1);
}

}  // namespace

double largestNumber(DType type) {
  switch (type) {
    case DType::kF16: return 65504;
    case DType::kBF16: return 0x1.fep127;
    case DType::kF32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

double smallestNormal(DType type) {
  switch (type) {
    case DType::kF16: return 0x1p-14;
    case DType::kBF16:
    case DType::kF32: return std::numeric_limits<float>::min();
    default: return std::numeric_limits<double>::min();
  }
}

void ExponentHistogram::add(const TensorView& view) {
  if (!isFloating(view.dtype)) return;
  begin(*this, view.elements());
  switch (view.dtype) {
    case DType::kF32: return countAll<float>(view, *this);
    case DType::kF64: return countAll<double>(view, *this);
    case DType::kF16: return countAll<Float16>(view, *this);
    default: return countAll<BFloat16>(view, *this);
  }
}

void ExponentHistogram::add(double number, DType type) {
  begin(*this, 1);
  count(number, Limits(type), *this);
}

}  // namespace stepscope
