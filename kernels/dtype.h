// Element types. The numbers are those of onnx.TensorProto.DataType, so they may be stored and sent as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stepscope {

enum class DType : std::uint8_t {
  kUndefined = 0,
  kF32 = 1,
  kU8 = 2,
  kI8 = 3,
  kU16 = 4,
  kI16 = 5,
  kI32 = 6,
  kI64 = 7,
  kString = 8,  // one std::string per element
  kBool = 9,    // one byte per element, 0 or 1
  kF16 = 10,
  kF64 = 11,
  kU32 = 12,
  kU64 = 13,
  kBF16 = 16,
};

// Bytes of one element; sizeof(std::string) for kString, 0 for kUndefined.
std::size_t dtypeSize(DType dtype);

// "float32", "int64", "bool" …; "undefined" for kUndefined.
std::string_view dtypeName(DType dtype);

// The inverse of dtypeName.
std::optional<DType> dtypeFromName(std::string_view name);

// The DType for an ONNX data type number, or nothing where the engine does not carry that type.
std::optional<DType> dtypeFromOnnx(int number);

// float32, float64, float16, bfloat16: the types that gradients flow through.
constexpr bool isFloating(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 || dtype == DType::kBF16;
}
// float16 and bfloat16: the two that training in low precision computes in.
constexpr bool isLow(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }
constexpr bool isUnsigned(DType dtype) {
  return dtype == DType::kU8 || dtype == DType::kU16 || dtype == DType::kU32 || dtype == DType::kU64;
}
// Signed or unsigned integers; bool is not one.
constexpr bool isInteger(DType dtype) {
  return isUnsigned(dtype) || dtype == DType::kI8 || dtype == DType::kI16 || dtype == DType::kI32 || dtype == DType::kI64;
}

}  // namespace stepscope
