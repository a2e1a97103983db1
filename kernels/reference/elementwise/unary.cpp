// Functions of one number.
#include <cmath>

#include "kernels/reference/elementwise/families.h"
#include "kernels/reference/elementwise/loops.h"

namespace stepscope::reference {
namespace {

template <double (*kF)(double)>
Status unary(const KernelSpec& spec, const KernelCall& call) {
  return mapFloat(spec, call, kF);
}

template <typename F>
Status numeric(const KernelSpec& spec, const KernelCall& call) {
  return mapNumeric(spec, call, F{});
}

double reciprocal(double x) { return 1 / x; }
double sigmoid(double x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const double power = std::exp(x);
  return power / (1 + power);
}
double softplus(double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))) + (std::isnan(x) ? x : 0); }
double softsign(double x) { return x / (1 + std::fabs(x)); }
double mish(double x) { return x * std::tanh(softplus(x)); }
double hardSwish(double x) { return x * std::fmin(std::fmax(x / 6 + 0.5, 0), 1); }

struct Absolute {
  template <typename T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) return std::fabs(x);
    return static_cast<T>(x < T{0} ? 0 - bitsOf(x) : bitsOf(x));
  }
};
struct Negate {
  template <typename T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) return -x;
    return static_cast<T>(0 - bitsOf(x));
  }
};
struct SignOf {
  template <typename T>
  T operator()(T x) const {
    if (x != x) return x;
    return static_cast<T>((x > T{0}) - (x < T{0}));
  }
};
struct Rectify {
  template <typename T>
  T operator()(T x) const {
    return x < T{0} ? T{0} : x;  // NaN passes
  }
};

double naturalExp(double x) { return std::exp(x); }
double naturalLog(double x) { return std::log(x); }
double squareRoot(double x) { return std::sqrt(x); }
double cosine(double x) { return std::cos(x); }
double sine(double x) { return std::sin(x); }
double tangent(double x) { return std::tan(x); }
double arcCosine(double x) { return std::acos(x); }
double arcSine(double x) { return std::asin(x); }
double arcTangent(double x) { return std::atan(x); }
double coshOf(double x) { return std::cosh(x); }
double sinhOf(double x) { return std::sinh(x); }
double tanhOf(double x) { return std::tanh(x); }
double acoshOf(double x) { return std::acosh(x); }
double asinhOf(double x) { return std::asinh(x); }
double atanhOf(double x) { return std::atanh(x); }
double errorFunction(double x) { return std::erf(x); }
double ceilOf(double x) { return std::ceil(x); }
double floorOf(double x) { return std::floor(x); }
double roundHalfEven(double x) { return std::nearbyint(x); }

}  // namespace

std::span<const KernelEntry> unaryKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"", "Abs", reading<1, numeric<Absolute>>},    {"", "Acos", reading<1, unary<arcCosine>>},
      {"", "Acosh", reading<1, unary<acoshOf>>},     {"", "Asin", reading<1, unary<arcSine>>},
      {"", "Asinh", reading<1, unary<asinhOf>>},     {"", "Atan", reading<1, unary<arcTangent>>},
      {"", "Atanh", reading<1, unary<atanhOf>>},     {"", "Ceil", reading<1, unary<ceilOf>>},
      {"", "Cos", reading<1, unary<cosine>>},        {"", "Cosh", reading<1, unary<coshOf>>},
      {"", "Erf", reading<1, unary<errorFunction>>}, {"", "Exp", reading<1, unary<naturalExp>>},
      {"", "Floor", reading<1, unary<floorOf>>},     {"", "HardSwish", reading<1, unary<hardSwish>>},
      {"", "Log", reading<1, unary<naturalLog>>},    {"", "Mish", reading<1, unary<mish>>},
      {"", "Neg", reading<1, numeric<Negate>>},      {"", "Reciprocal", reading<1, unary<reciprocal>>},
      {"", "Relu", reading<1, numeric<Rectify>>},    {"", "Round", reading<1, unary<roundHalfEven>>},
      {"", "Sigmoid", reading<1, unary<sigmoid>>},   {"", "Sign", reading<1, numeric<SignOf>>},
      {"", "Sin", reading<1, unary<sine>>},          {"", "Sinh", reading<1, unary<sinhOf>>},
      {"", "Softplus", reading<1, unary<softplus>>}, {"", "Softsign", reading<1, unary<softsign>>},
      {"", "Sqrt", reading<1, unary<squareRoot>>},   {"", "Tan", reading<1, unary<tangent>>},
      {"", "Tanh", reading<1, unary<tanhOf>>},
  };
  return kEntries;
}

}  // namespace stepscope::reference
