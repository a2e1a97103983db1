// What the elementwise ops share: shape rules with type checks, folding of integer contents, and parts of gradients.
#pragma once

#include <string_view>

#include "engine/ops/elementwise/contents.h"
#include "engine/ops/gradient_context.h"
#include "engine/ops/op_def.h"
#include "engine/ops/shape_context.h"

namespace stepscope::ops {

inline constexpr std::string_view kPiecewiseConstant = "piecewise constant: zero almost everywhere";
inline constexpr std::string_view kIntegerResult = "integer result";
inline constexpr std::string_view kBoolResult = "bool result";
inline constexpr std::string_view kRandomDraw = "a random draw";
inline constexpr std::string_view kOptimizerStep = "optimizer update: nothing is differentiated through it";

// --- checks; an input whose type is not known yet passes
Status requireFloat(const ShapeContext& c, std::size_t input);
Status requireType(const ShapeContext& c, std::size_t input, DType dtype);
// All present inputs from `first` on have one element type.
Status requireSameTypes(const ShapeContext& c, std::size_t first = 0);

// Elementwise ops run in any layout that their full-sized operands share.
inline constexpr LayoutRule kSharedLayout{.inputs = kAllInputs, .outputs = bit(0), .together = true, .elementwise = true};
// The same for arithmetic, whose kernel reads one element per channel next to them.
inline constexpr LayoutRule kVectorLayout{
    .inputs = kAllInputs, .outputs = bit(0), .together = true, .elementwise = true, .vectors = true};

// The type of a sum over many elements of `dtype`: float32 for float16 and bfloat16, whose range and digits it leaves.
constexpr DType sumType(DType dtype) { return isLow(dtype) ? DType::kF32 : dtype; }

// --- shape rules
Status floatUnary(ShapeContext& c);              // floating input; output 0 like input 0
Status floatBroadcast(ShapeContext& c);          // floating inputs of one type, broadcast together
Status binary(ShapeContext& c);                  // inputs of one type, broadcast together
Status compare(ShapeContext& c);                 // inputs of one type, broadcast together; bool result
Status logical(ShapeContext& c);                 // bool inputs, broadcast together
Status castContents(ShapeContext& c, DType to);  // output 0: input 0 in type `to`, integer contents converted
// binary / compare / logical, and the integer contents folded from left to right.
template <DimBinary kFold>
Status foldedBinary(ShapeContext& c) {
  SS_TRY(binary(c));
  foldContents(c, kFold);
  return {};
}
template <DimBinary kFold>
Status foldedCompare(ShapeContext& c) {
  SS_TRY(compare(c));
  foldContents(c, kFold);
  return {};
}
template <DimBinary kFold>
Status foldedLogical(ShapeContext& c) {
  SS_TRY(logical(c));
  foldContents(c, kFold);
  return {};
}

// --- gradients
// dy times the slope of gelu at x, for the form with erf or the one with tanh: one node, because its terms share an
// exponential.
ValueId geluGradient(GradientContext& g, ValueId dy, ValueId x, bool tanhForm);
// Max and Min: every input that attains the result gets an even share. Of two, NaN beats nobody and is beaten by nobody, as
// in PyTorch: both get all of it.
Status evenShareGradient(GradientContext& g);
// x where condition, else 0.
ValueId keepWhere(GradientContext& g, ValueId condition, ValueId x);
// 0 where condition, else x. Not the same as keepWhere of the opposite comparison when NaN is about.
ValueId dropWhere(GradientContext& g, ValueId condition, ValueId x);

}  // namespace stepscope::ops
