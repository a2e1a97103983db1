// The header of a .npy file.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "kernels/status.h"
#include "kernels/tensor.h"

namespace stepscope {

struct NpyHeader {
  DType dtype = DType::kUndefined;
  bool fortranOrder = false;
  Dims dims;
  std::size_t dataOffset = 0;  // bytes before the elements
  std::size_t dataBytes = 0;   // of the elements
};

inline constexpr std::size_t kNpyPrefixBytes = 12;  // magic, version, and the length in its longer form

// Bytes before the elements according to the first kNpyPrefixBytes (or the whole file when it is shorter).
Result<std::size_t> npyDataOffset(std::span<const std::byte> prefix);
// `bytes` holds at least the npyDataOffset bytes of the header.
Result<NpyHeader> parseNpyHeader(std::span<const std::byte> bytes);
// The header that NumPy would write for C order: padded so that the elements start at a multiple of 64.
std::string npyHeaderText(DType dtype, const Dims& dims);

// Reorders elements from Fortran to C order.
Tensor fromFortranOrder(const Tensor& tensor);

}  // namespace stepscope
