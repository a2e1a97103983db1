// ONNX data types for people, those that the engine does not carry among them.
#pragma once

#include <string>

namespace stepscope {

// The number with its name in TensorProto.DataType (ONNX 1.19): "17 (float8e4m3fn)"; "99" where no type has that number.
std::string onnxTypeText(long long number);

}  // namespace stepscope
