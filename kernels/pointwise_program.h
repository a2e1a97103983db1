// What stepscope.Pointwise computes: a chain of elementwise steps, written as text in the attribute `steps`.
//
//   steps = {"Mul 0 1", "Add 3 2", "Tanh 4"}      with three inputs: 3 is the first step's result, 4 the second's; the last
//   is the output
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/attributes.h"
#include "kernels/status.h"

namespace stepscope {

// ONNX ops of the same names; comparisons give masks, which only Where and Not read.
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
  kWhere
};

struct PointwiseOpInfo {
  std::string_view name;
  std::size_t arity = 1;
  bool mask = false;       // the result is a mask
  bool readsMask = false;  // operand 0 is one
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
