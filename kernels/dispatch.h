// Calls a generic lambda with a value of the C++ type that a DType names:
//   dispatchNumeric(dtype, [&](auto tag) { using T = decltype(tag); … });
// Returns false (and does not call) when the dtype is outside the named family.
#pragma once

#include "kernels/tensor.h"

namespace stepscope {

template <typename F>
bool dispatchFloat(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF32: f(float{}); return true;
    case DType::kF64: f(double{}); return true;
    case DType::kF16: f(Float16{}); return true;
    case DType::kBF16: f(BFloat16{}); return true;
    default: return false;
  }
}

// The eight integers, not bool.
template <typename F>
bool dispatchInteger(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kI8: f(std::int8_t{}); return true;
    case DType::kI16: f(std::int16_t{}); return true;
    case DType::kI32: f(std::int32_t{}); return true;
    case DType::kI64: f(std::int64_t{}); return true;
    case DType::kU8: f(std::uint8_t{}); return true;
    case DType::kU16: f(std::uint16_t{}); return true;
    case DType::kU32: f(std::uint32_t{}); return true;
    case DType::kU64: f(std::uint64_t{}); return true;
    default: return false;
  }
}

// Floats and integers, not bool.
template <typename F>
bool dispatchNumeric(DType dtype, F&& f) {
  return dispatchFloat(dtype, f) || dispatchInteger(dtype, f);
}

// Floats, integers and bool.
template <typename F>
bool dispatchFixed(DType dtype, F&& f) {
  if (dtype == DType::kBool) {
    f(bool{});
    return true;
  }
  return dispatchNumeric(dtype, f);
}

// Everything, std::string included: for kernels that only move elements.
template <typename F>
bool dispatchAll(DType dtype, F&& f) {
  if (dtype == DType::kString) {
    f(std::string{});
    return true;
  }
  return dispatchFixed(dtype, f);
}

}  // namespace stepscope
