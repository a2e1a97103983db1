// Operands in float16 or bfloat16 that a float32 loop reads and writes block by block, so that no float32 copy of a tensor
// goes to memory.
#pragma once

#include <cstddef>

#include "kernels/cpu/loops/support.h"

namespace stepscope::cpu {

// Converts `count` elements; results of float16 and bfloat16 are rounded to nearest even.
using ConvertLoop = void (*)(const void* from, void* to, std::int64_t count);
// Null where there is none: see the table of cast.cpp.
ConvertLoop convertLoop(DType from, DType to);

// SquareSum of a tensor in a low type; accumulate.cpp.
Result<std::unique_ptr<Kernel>> makeLowSquareSum(const KernelSpec& spec);

// Whether the operand is float32, float16 or bfloat16, and has so many elements.
inline bool takesAnyFloat(const OperandSpec& operand, std::int64_t elements) {
  return (takes(operand) || takes(operand, DType::kF16) || takes(operand, DType::kBF16)) &&
         elementCount(operand.dims) == elements;
}

class FloatSource {
 public:
  FloatSource() = default;
  explicit FloatSource(const TensorView& x)
      : data_(static_cast<const std::byte*>(x.data)), size_(dtypeSize(x.dtype)), widen_(convertLoop(x.dtype, DType::kF32)) {}

  // Elements `at` to at + n: where they lie, or in `room` for n floats.
  const float* read(std::int64_t at, std::int64_t n, float* room) const {
    const std::byte* from = data_ + static_cast<std::size_t>(at) * size_;
    if (!widen_) return reinterpret_cast<const float*>(from);
    widen_(from, room, n);
    return room;
  }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  ConvertLoop widen_ = nullptr;  // null: it is float32
};

// A copy in another type, or none.
class FloatTarget {
 public:
  FloatTarget() = default;
  explicit FloatTarget(const TensorView& y)
      : data_(static_cast<std::byte*>(y.data)), size_(dtypeSize(y.dtype)), narrow_(convertLoop(DType::kF32, y.dtype)) {}

  void write(std::int64_t at, std::int64_t n, const float* from) const {
    if (!data_) return;
    std::byte* to = data_ + static_cast<std::size_t>(at) * size_;
    if (narrow_)
      narrow_(from, to, n);
    else
      std::copy_n(from, n, reinterpret_cast<float*>(to));
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  ConvertLoop narrow_ = nullptr;  // null: it is float32
};

}  // namespace stepscope::cpu
