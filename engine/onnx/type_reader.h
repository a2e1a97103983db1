// TypeProto to ValueType and back; dims as text to Dim and back.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "engine/ir/graph.h"

namespace stepscope {

// "8", "batch", "sequence + 1", "2*batch*heads" as polynomials; whatever does not read as one is a symbol by its whole text.
// Inverse of Dim::text() for what Dim writes.
Dim dimFromText(const std::string& text);

// The type of value `name`. Dims without a name or number become symbols of their own, "<name>.dim<axis>".
// Errors: kUnsupported for element types and kinds that the engine does not carry (map, sparse, opaque), kInvalidArgument
// for negative dims, kLimitExceeded for a rank above the limit. A proto without a type gives dtype kUndefined without shape.
Result<ValueType> valueTypeFromProto(const onnx::TypeProto& proto, const std::string& name);

// Nothing is written for an undefined dtype.
void valueTypeToProto(const ValueType& type, onnx::TypeProto& proto);

}  // namespace stepscope
