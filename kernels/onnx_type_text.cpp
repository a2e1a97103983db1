#include "kernels/onnx_type_text.h"

#include <array>

namespace stepscope {

std::string onnxTypeText(long long number) {
  constexpr std::array kNames{"undefined",      "float32",  "uint8",        "int8",           "uint16",
                              "int16",          "int32",    "int64",        "string",         "bool",
                              "float16",        "float64",  "uint32",       "uint64",         "complex64",
                              "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
                              "float8e5m2fnuz", "uint4",    "int4",         "float4e2m1",     "float8e8m0"};
  const std::string text = std::to_string(number);
  if (number < 0 || number >= static_cast<long long>(kNames.size())) return text;
  return text + " (" + kNames[static_cast<std::size_t>(number)] + ")";
}

}  // namespace stepscope
