// The type that kernels see of an element of each DType. Templates of kernels take a DType, because the 16-bit floats of
// nvcc have other names than those of the host compiler, and a GPU finds a kernel by its name.
#pragma once

#include "kernels/cuda/body.h"

namespace stepscope::cuda {

struct Bool {
  std::uint8_t value;
};
template <DType kType>
struct Element;
template <>
struct Element<DType::kBool> {
  using Type = Bool;
};
template <>
struct Element<DType::kF16> {
  using Type = gpu::Half;
};
template <>
struct Element<DType::kBF16> {
  using Type = gpu::BFloat;
};
template <>
struct Element<DType::kF32> {
  using Type = float;
};
template <>
struct Element<DType::kF64> {
  using Type = double;
};
template <>
struct Element<DType::kI32> {
  using Type = std::int32_t;
};
template <>
struct Element<DType::kI64> {
  using Type = std::int64_t;
};

}  // namespace stepscope::cuda
