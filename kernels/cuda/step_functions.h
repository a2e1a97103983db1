// One step of an elementwise chain: the steps of kernels/pointwise_program.h, and those that only stand alone. Masks are 0
// and
// 1. `p` and `q` are attributes of the op.
//
// This file is read twice: by the compilers of kernels/cuda, behind body.h, and at run time by NVRTC, before the kernel of a
// chain (chain_source.h). So it includes nothing, and has SS_DEVICE, gpu::Half and gpu::BFloat alone of the language.
#pragma once

namespace stepscope::cuda {

enum class Step : int {
  kAbs,
  kAdd,
  kDiv,
  kErf,
  kExp,
  kGreater,
  kGreaterOrEqual,
  kLess,
  kLessOrEqual,
  kLog,
  kMax,
  kMin,
  kMul,
  kNeg,
  kNot,
  kPow,
  kReciprocal,
  kRelu,
  kSigmoid,
  kSqrt,
  kSub,
  kTanh,
  kWhere,
  kAnd,
  kCeil,
  kEqual,
  kFloor,
  kFromMask,
  kGeluErf,
  kGeluErfGrad,  // dy, x
  kGeluTanh,
  kGeluTanhGrad,  // dy, x
  kHardSwish,
  kIsNan,
  kMish,
  kOr,
  kReluGrad,  // dy, y
  kRound,
  kSign,
  kSoftplus,
  kSoftsign,
  kToBFloat16,
  kToFloat16,
  // Not of a chain that a pass writes.
  kCelu,      // p = alpha
  kClipHigh,  // a, bound
  kClipLow,   // a, bound
  kCos,
  kElu,          // p = alpha, q = gamma
  kHardSigmoid,  // p = alpha, q = beta
  kIsInf,        // p: whether +inf counts, q: whether -inf does
  kLeakyRelu,    // p = alpha
  kPRelu,        // x, slope
  kQuickGelu,    // p = alpha
  kScale,        // p
  kSin,
  kThresholdedRelu,  // p = alpha
  kXor,
  kCount
};

// Without overflow for large arguments of either sign.
SS_DEVICE float sigmoidOf(float x) { return x >= 0 ? 1.0F / (1.0F + expf(-x)) : expf(x) / (1.0F + expf(x)); }
SS_DEVICE float softplusOf(float x) { return fmaxf(x, 0.0F) + log1pf(expf(-fabsf(x))); }

// The largest float32, and constants of Gelu.
inline constexpr float kLargest = 3.40282347e38F, kRootHalf = 0.70710678F, kRootTwoOverPi = 0.79788456F,
                       kInverseRootTwoPi = 0.39894228F;

// Gelu by erf, and its slope; at the infinities their limits.
SS_DEVICE float geluErfOf(float x) { return 0.5F * x * erfcf(-x * kRootHalf); }
SS_DEVICE float geluErfSlopeOf(float x) {
  const float bell = fabsf(x) > kLargest ? 0.0F : x * expf(-0.5F * x * x);
  return 0.5F * erfcf(-x * kRootHalf) + bell * kInverseRootTwoPi;
}
// 0.5 (1 + tanh(u)) = sigmoid(2 u), without the cancellation for large negative u.
SS_DEVICE float geluTanhOf(float x) { return x * sigmoidOf(2.0F * kRootTwoOverPi * (x + 0.044715F * x * x * x)); }
SS_DEVICE float geluTanhSlopeOf(float x) {
  if (fabsf(x) > kLargest) return x > 0 ? 1.0F : 0.0F;
  const float s = sigmoidOf(2.0F * kRootTwoOverPi * (x + 0.044715F * x * x * x)), rest = s * (1.0F - s);
  return rest == 0.0F ? s : s + 2.0F * x * rest * kRootTwoOverPi * (1.0F + 0.134145F * x * x);
}

// The result of one step; operands it has not are not looked at.
SS_DEVICE float stepOf(Step step, float a, float b, float c, float p, float q) {
  switch (step) {
    case Step::kAbs: return fabsf(a);
    case Step::kAdd: return a + b;
    case Step::kDiv: return a / b;
    case Step::kErf: return erff(a);
    case Step::kExp: return expf(a);
    case Step::kGreater: return a > b ? 1.0F : 0.0F;
    case Step::kGreaterOrEqual: return a >= b ? 1.0F : 0.0F;
    case Step::kLess: return a < b ? 1.0F : 0.0F;
    case Step::kLessOrEqual: return a <= b ? 1.0F : 0.0F;
    case Step::kLog: return logf(a);
    case Step::kMax: return a > b || a != a ? a : b;
    case Step::kMin: return a < b || a != a ? a : b;
    case Step::kMul: return a * b;
    case Step::kNeg: return -a;
    case Step::kNot: return 1.0F - a;
    case Step::kPow: return powf(a, b);
    case Step::kReciprocal: return 1.0F / a;
    case Step::kRelu: return a < 0 ? 0.0F : a;
    case Step::kSigmoid: return sigmoidOf(a);
    case Step::kSqrt: return sqrtf(a);
    case Step::kSub: return a - b;
    case Step::kTanh: return tanhf(a);
    case Step::kWhere: return a != 0 ? b : c;
    case Step::kAnd: return fminf(a, b);
    case Step::kFromMask: return a;
    case Step::kOr: return fmaxf(a, b);
    case Step::kToBFloat16: return static_cast<float>(static_cast<gpu::BFloat>(a));
    case Step::kToFloat16: return static_cast<float>(static_cast<gpu::Half>(a));
    case Step::kCeil: return ceilf(a);
    case Step::kCelu: return a > 0 ? a : p * expm1f(a / p);
    case Step::kClipHigh: return a > b ? b : a;
    case Step::kClipLow: return a < b ? b : a;
    case Step::kCos: return cosf(a);
    case Step::kElu: return q * (a > 0 ? a : p * expm1f(a));
    case Step::kEqual: return a == b ? 1.0F : 0.0F;
    case Step::kFloor: return floorf(a);
    case Step::kGeluErf: return geluErfOf(a);
    case Step::kGeluErfGrad: return a * geluErfSlopeOf(b);
    case Step::kGeluTanh: return geluTanhOf(a);
    case Step::kGeluTanhGrad: return a * geluTanhSlopeOf(b);
    case Step::kHardSigmoid: return fminf(fmaxf(p * a + q, 0.0F), 1.0F) + (a != a ? a : 0.0F);
    case Step::kHardSwish: return a * fminf(fmaxf(a / 6.0F + 0.5F, 0.0F), 1.0F);
    case Step::kIsInf: return (a > kLargest && p != 0) || (a < -kLargest && q != 0) ? 1.0F : 0.0F;
    case Step::kIsNan: return a != a ? 1.0F : 0.0F;
    case Step::kLeakyRelu: return a < 0 ? p * a : a;
    case Step::kMish: return a * tanhf(softplusOf(a));
    case Step::kPRelu: return a < 0 ? b * a : a;
    case Step::kQuickGelu: return a * sigmoidOf(p * a);
    case Step::kReluGrad: return b <= 0 ? 0.0F : a;
    case Step::kRound: return rintf(a);
    case Step::kScale: return a * p;
    case Step::kSign: return a > 0 ? 1.0F : a < 0 ? -1.0F : a;
    case Step::kSin: return sinf(a);
    case Step::kSoftplus: return softplusOf(a);
    case Step::kSoftsign: return a / (1.0F + fabsf(a));
    case Step::kThresholdedRelu: return a <= p ? 0.0F : a;
    case Step::kXor: return a != b ? 1.0F : 0.0F;
    case Step::kCount: break;
  }
  return a;
}

}  // namespace stepscope::cuda
