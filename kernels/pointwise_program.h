// What stepscope.Pointwise computes: a chain of elementwise steps, written as text in the attribute `steps`.
//
//   steps = {"Mul 0 1", "Add 3 2", "Tanh 4"}      with three inputs: 3 is the first step's result, 4 the second's; the last
//   is the output
//
// Attributes view0, view1 … pick what the chain sees of its inputs (kernels/strided_view.h); without one it sees all of it.
//
// Operands may be float32, float16 and bfloat16 beside one another; steps compute in float32, and the last result is rounded
// to the type of the output. ToFloat16 and ToBFloat16 round a number in between, so that a chain has the bits of its nodes.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/attributes.h"
#include "kernels/status.h"

namespace stepscope {

// ONNX ops of the same names, and
//   FromMask           1 where the mask holds, else 0
//   GeluTanh           Gelu with approximate = tanh
//   GeluGrad, ReluGrad, GeluTanhGrad   stepscope.GeluGrad(dy, x), stepscope.ReluGrad(dy, y)
//   ToBFloat16, ToFloat16   the nearest number of that type
// Comparisons give masks, which And, FromMask, Not, Or and Where read.
enum class PointwiseOp : std::uint8_t {
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
  kGelu,
  kGeluGrad,
  kGeluTanh,
  kGeluTanhGrad,
  kHardSwish,
  kIsNaN,
  kMish,
  kOr,
  kReluGrad,
  kRound,
  kSign,
  kSoftplus,
  kSoftsign,
  kToBFloat16,
  kToFloat16
};

struct PointwiseOpInfo {
  std::string_view name;
  std::size_t arity = 1;
  bool mask = false;      // the result is a mask
  std::size_t masks = 0;  // leading operands that are masks
};
const PointwiseOpInfo& infoOf(PointwiseOp op);
std::optional<PointwiseOp> pointwiseOp(std::string_view name);

struct PointwiseStep {
  PointwiseOp op;
  std::array<std::size_t, 3> operands{};  // below the number of inputs: an input; else the result of a step before
};

// More is refused: kernels keep a pointer per input and step on the stack.
inline constexpr std::size_t kMostPointwiseSteps = 48, kMostPointwiseInputs = 24;

struct PointwiseProgram {
  std::size_t inputs = 0;
  std::vector<PointwiseStep> steps;

  // Errors: no steps, too many, an unknown op, operands that are not there yet, a mask where a number belongs or the other
  // way round (`maskInputs`: which inputs are bool), a mask as the result.
  static Result<PointwiseProgram> of(const Attributes& attrs, const std::vector<bool>& maskInputs);
  std::vector<std::string> text() const;
};

}  // namespace stepscope
