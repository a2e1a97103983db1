// Folding of integer contents: what elementwise ops do to the small tensors of which exporters build shapes.
#pragma once

#include <optional>

#include "engine/ops/shape_context.h"

namespace stepscope::ops {

// One element of the result, or nothing where it cannot be known. Truth values are 0 and 1.
using DimUnary = std::optional<Dim> (*)(const Dim& a);
using DimBinary = std::optional<Dim> (*)(const Dim& a, const Dim& b);

// Contents of input i: what the context knows, or those of a small integer or bool constant.
std::optional<Contents> operandContents(const ShapeContext& c, std::size_t i);
// Sets the contents of output 0 when every element of every present input is known: unary, or folded from left to right with
// a single element against a vector. Inputs of rank above 1 and floats leave the output unknown.
void foldContents(ShapeContext& c, DimUnary fold);
void foldContents(ShapeContext& c, DimBinary fold);
// Element i of contents that broadcast from one element.
const Dim& broadcastElement(const Contents& contents, std::size_t i);

// Whether the dim cannot be negative, taking symbols as extents.
bool nonNegative(const Dim& a);

// What an operator makes of two extents; nothing where the result has no polynomial.
std::optional<Dim> addDims(const Dim& a, const Dim& b);
std::optional<Dim> subDims(const Dim& a, const Dim& b);
std::optional<Dim> mulDims(const Dim& a, const Dim& b);
std::optional<Dim> divDims(const Dim& a, const Dim& b);   // truncates, as ONNX Div does
std::optional<Dim> modDims(const Dim& a, const Dim& b);   // sign of the divisor
std::optional<Dim> fmodDims(const Dim& a, const Dim& b);  // sign of the dividend
std::optional<Dim> minDims(const Dim& a, const Dim& b);
std::optional<Dim> maxDims(const Dim& a, const Dim& b);
std::optional<Dim> powDims(const Dim& a, const Dim& b);
std::optional<Dim> equalDims(const Dim& a, const Dim& b);
std::optional<Dim> lessDims(const Dim& a, const Dim& b);
std::optional<Dim> greaterDims(const Dim& a, const Dim& b);
std::optional<Dim> lessOrEqualDims(const Dim& a, const Dim& b);
std::optional<Dim> greaterOrEqualDims(const Dim& a, const Dim& b);
std::optional<Dim> andDims(const Dim& a, const Dim& b);
std::optional<Dim> orDims(const Dim& a, const Dim& b);
std::optional<Dim> xorDims(const Dim& a, const Dim& b);
std::optional<Dim> negDim(const Dim& a);
std::optional<Dim> absDim(const Dim& a);
std::optional<Dim> signDim(const Dim& a);
std::optional<Dim> notDim(const Dim& a);
std::optional<Dim> sameDim(const Dim& a);
std::optional<Dim> reluDim(const Dim& a);
// The value after Cast to an integer type or bool, when it is known to fit.
std::optional<Dim> castDim(const Dim& a, DType to);

}  // namespace stepscope::ops
