// TypeProto to ValueType and back; dims as text to Dim and back.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "engine/ir/graph.h"

namespace stepscope {

// "8", "batch", "sequence + 1", "2*batch*heads" as polynomials, "floor(height/2 - 1/2) + 1", "(s0 - 1)//2", "Max(1, s0)" as
// Dim computes them; whatever does not read as one, or gives no whole number ("height/2"), is a symbol by its whole text.
// Inverse of Dim::text() for what Dim writes.
Dim dimFromText(const std::string& text);

// How many extents of the inputs, outputs and declared values are -1, which old exporters write for "unknown". They read as
// dims without a name.
std::size_t unknownExtents(const onnx::GraphProto& graph);

// The type of value `name`. Dims without a name or number become symbols of their own, "<name>.dim<axis>".
// Errors: kUnsupported for element types and kinds that the engine does not carry (map, sparse, opaque), kInvalidArgument
// for dims below -1, kLimitExceeded for a rank above the limit. A proto without a type gives dtype kUndefined without shape.
Result<ValueType> valueTypeFromProto(const onnx::TypeProto& proto, const std::string& name);

// Nothing is written for an undefined dtype.
void valueTypeToProto(const ValueType& type, onnx::TypeProto& proto);

}  // namespace stepscope
