#include "kernels/cpu/loops/chain_steps.h"

#include <array>
#include <cmath>

#include "kernels/cpu/loops/low_operands.h"
#include "kernels/cpu/loops/pow.h"
#include "kernels/cpu/loops/vector_math.h"

namespace stepscope::cpu {
namespace {

#define SS_STEP(NAME, EXPRESSION)                                                                                        \
  SS_CLONES void NAME([[maybe_unused]] const float* a, [[maybe_unused]] const float* b, [[maybe_unused]] const float* c, \
                      float* y, std::int64_t n) {                                                                        \
    _Pragma("GCC ivdep") for (std::int64_t i = 0; i < n; ++i) y[i] = EXPRESSION;                                         \
  }
SS_STEP(absolute, std::fabs(a[i]))
SS_STEP(sum, a[i] + b[i])
SS_STEP(quotient, a[i] / b[i])
SS_STEP(errorFunction, erfOf(a[i]))
SS_STEP(exponential, expOf(a[i]))
SS_STEP(greater, a[i] > b[i] ? 1.0F : 0.0F)
SS_STEP(greaterOrEqual, a[i] >= b[i] ? 1.0F : 0.0F)
SS_STEP(less, a[i] < b[i] ? 1.0F : 0.0F)
SS_STEP(lessOrEqual, a[i] <= b[i] ? 1.0F : 0.0F)
SS_STEP(logarithm, logOf(a[i]))
SS_STEP(maximum, a[i] > b[i] || a[i] != a[i] ? a[i] : b[i])
SS_STEP(minimum, a[i] < b[i] || a[i] != a[i] ? a[i] : b[i])
SS_STEP(product, a[i] * b[i])
SS_STEP(negative, -a[i])
SS_STEP(inverted, 1.0F - a[i])
SS_STEP(reciprocal, 1.0F / a[i])
SS_STEP(rectified, a[i] < 0 ? 0.0F : a[i])
SS_STEP(sigmoid, sigmoidOf(a[i]))
SS_STEP(squareRoot, std::sqrt(a[i]))
SS_STEP(difference, a[i] - b[i])
SS_STEP(hyperbolicTangent, tanhOf(a[i]))
SS_STEP(chosen, a[i] != 0 ? b[i] : c[i])
SS_STEP(ceiling, std::ceil(a[i]))
SS_STEP(equal, a[i] == b[i] ? 1.0F : 0.0F)
SS_STEP(floorOf, std::floor(a[i]))
SS_STEP(same, a[i])
SS_STEP(geluErf, geluErfOf(a[i]))
SS_STEP(geluErfGradient, a[i] * geluErfSlopeOf(b[i]))
SS_STEP(geluTanh, geluTanhOf(a[i]))
SS_STEP(geluTanhGradient, a[i] * geluTanhSlopeOf(b[i]))
SS_STEP(notANumber, a[i] != a[i] ? 1.0F : 0.0F)
SS_STEP(reluGradient, b[i] <= 0 ? 0.0F : a[i])
SS_STEP(nearest, std::rint(a[i]))
SS_STEP(sign, a[i] > 0 ? 1.0F : a[i] < 0 ? -1.0F : a[i])
SS_STEP(softplus, softplusOf(a[i]))
SS_STEP(softsign, a[i] / (1.0F + std::fabs(a[i])))
SS_STEP(mish, a[i] * tanhOf(softplusOf(a[i])))
SS_STEP(hardSwish, a[i] * (a[i] / 6 + 0.5F < 0 ? 0.0F : a[i] / 6 + 0.5F > 1 ? 1.0F : a[i] / 6 + 0.5F))
#undef SS_STEP

SS_CLONES bool allEqual(const float* x, std::int64_t n) {
  int equal = 1;
#pragma omp simd reduction(& : equal)
  for (std::int64_t i = 0; i < n; ++i) equal &= static_cast<int>(x[i] == x[0]);
  return equal != 0;
}

// Exponents are one scalar as a rule: its block then holds one number.
void power(const float* a, const float* b, const float*, float* y, std::int64_t n) {
  const SimplePower simple = allEqual(b, n) ? simplePowerOf(*b) : nullptr;
  if (simple != nullptr)
    simple(a, y, n);
  else
    powRun(a, 1, b, 1, y, n);
}

template <DType kLow>
void rounded(const float* a, const float*, const float*, float* y, std::int64_t n) {
  std::array<std::uint16_t, kChainBlock> low;
  convertLoop(DType::kF32, kLow)(a, low.data(), n);
  convertLoop(kLow, DType::kF32)(low.data(), y, n);
}

}  // namespace

StepLoop stepLoopOf(PointwiseOp op) {
  switch (op) {
    case PointwiseOp::kAbs: return absolute;
    case PointwiseOp::kAdd: return sum;
    case PointwiseOp::kDiv: return quotient;
    case PointwiseOp::kErf: return errorFunction;
    case PointwiseOp::kExp: return exponential;
    case PointwiseOp::kGreater: return greater;
    case PointwiseOp::kGreaterOrEqual: return greaterOrEqual;
    case PointwiseOp::kLess: return less;
    case PointwiseOp::kLessOrEqual: return lessOrEqual;
    case PointwiseOp::kLog: return logarithm;
    case PointwiseOp::kMax: return maximum;
    case PointwiseOp::kMin: return minimum;
    case PointwiseOp::kMul: return product;
    case PointwiseOp::kNeg: return negative;
    case PointwiseOp::kNot: return inverted;
    case PointwiseOp::kPow: return power;
    case PointwiseOp::kReciprocal: return reciprocal;
    case PointwiseOp::kRelu: return rectified;
    case PointwiseOp::kSigmoid: return sigmoid;
    case PointwiseOp::kSqrt: return squareRoot;
    case PointwiseOp::kSub: return difference;
    case PointwiseOp::kTanh: return hyperbolicTangent;
    case PointwiseOp::kWhere: return chosen;
    case PointwiseOp::kAnd: return minimum;
    case PointwiseOp::kCeil: return ceiling;
    case PointwiseOp::kEqual: return equal;
    case PointwiseOp::kFloor: return floorOf;
    case PointwiseOp::kFromMask: return same;
    case PointwiseOp::kGelu: return geluErf;
    case PointwiseOp::kGeluGrad: return geluErfGradient;
    case PointwiseOp::kGeluTanh: return geluTanh;
    case PointwiseOp::kGeluTanhGrad: return geluTanhGradient;
    case PointwiseOp::kHardSwish: return hardSwish;
    case PointwiseOp::kIsNaN: return notANumber;
    case PointwiseOp::kMish: return mish;
    case PointwiseOp::kOr: return maximum;
    case PointwiseOp::kReluGrad: return reluGradient;
    case PointwiseOp::kRound: return nearest;
    case PointwiseOp::kSign: return sign;
    case PointwiseOp::kSoftplus: return softplus;
    case PointwiseOp::kSoftsign: return softsign;
    case PointwiseOp::kToBFloat16: return rounded<DType::kBF16>;
    case PointwiseOp::kToFloat16: return rounded<DType::kF16>;
  }
  return nullptr;
}

}  // namespace stepscope::cpu
