// Mixed precision: option `precision` names a low type, and every op computes in the type that its class asks for
// (OpDef::precision, after PyTorch's autocast). Casts are nodes like any other. Parameters, optimizer state and the loss
// stay float32; gradients follow, because the gradient of a cast is the cast back.
//
//  - kLow: floating operands in the low type. kF32: in float32.
//  - kFollows, kWide: in the widest type among the operands. One number (a scalar, a constant of one element) does not widen
//    the others: it is cast to their type, as PyTorch does with numbers.
//  - Add of a product and a parameter of one axis is the bias of a layer: it computes in the low type, as the layer does in
//    PyTorch, where the bias belongs to it.
//  - A Softmax between two products stays in the low type: its kernel computes in float32 and rounds once.
//  - The node that makes the loss computes in float32.
//  - A constant or weight whose numbers are infinite in float16 is a warning that names it and the node.
// A value is cast once for all its readers. Operands that the host reads and float64 stay as they are, as do the operands of
// BatchNormalization other than x, which have a type of their own.
//
// Runs after the fusions before the gradient, so that a recognised Gelu or LayerNormalization has one class and no casts
// within.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status assignPrecision(Graph& graph, PassContext& context);

}  // namespace stepscope
