// Tensors in memory: a view that borrows and a tensor that shares ownership. Both are contiguous and row-major.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/half.h"
#include "kernels/shape.h"
#include "kernels/shared_dims.h"

namespace stepscope {

// Borrows memory of `elementCount(dims)` elements of `dtype`. An absent optional input has dtype kUndefined.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::kUndefined;
  SharedDims dims;

  bool present() const { return dtype != DType::kUndefined; }
  std::int64_t elements() const { return elementCount(dims); }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * dtypeSize(dtype); }
  // The elements as T. The caller has checked dtype; bool is read as std::uint8_t or bool.
  template <typename T>
  std::span<T> as() const {
    return {static_cast<T*>(data), static_cast<std::size_t>(elements())};
  }
};

// Owns its memory (64-byte aligned, zero-filled; strings are empty) and shares it between copies of the Tensor.
class Tensor {
 public:
  Tensor() = default;
  // Aborts on invalid dims: check them with checkedElementCount first when they come from outside.
  Tensor(DType dtype, Dims dims);
  // Wraps memory kept alive by `owner` (a file mapping, say).
  Tensor(DType dtype, Dims dims, std::shared_ptr<const void> owner, void* data);

  template <typename T>
  static Tensor of(Dims dims, std::span<const T> values);
  static Tensor ints(std::span<const std::int64_t> values);  // rank 1, int64
  static Tensor scalar(DType dtype, double value);           // rank 0, any numeric dtype
  static Tensor strings(Dims dims, std::vector<std::string> values);

  bool valid() const { return view_.present(); }
  DType dtype() const { return view_.dtype; }
  const Dims& dims() const { return view_.dims; }
  std::int64_t elements() const { return view_.elements(); }
  std::size_t bytes() const { return view_.bytes(); }
  const TensorView& view() const { return view_; }
  void* data() const { return view_.data; }
  template <typename T>
  std::span<T> as() const {
    return view_.as<T>();
  }

  Tensor clone() const;              // deep copy
  Tensor reshaped(Dims dims) const;  // same memory; the element count must agree

 private:
  TensorView view_;
  std::shared_ptr<const void> owner_;
};

// The DType of a C++ type.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kF32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kF64;
};
template <>
struct DTypeOf<Float16> {
  static constexpr DType value = DType::kF16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::kBF16;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::kI8;
};
template <>
struct DTypeOf<std::int16_t> {
  static constexpr DType value = DType::kI16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::kI32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::kI64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::kU8;
};
template <>
struct DTypeOf<std::uint16_t> {
  static constexpr DType value = DType::kU16;
};
template <>
struct DTypeOf<std::uint32_t> {
  static constexpr DType value = DType::kU32;
};
template <>
struct DTypeOf<std::uint64_t> {
  static constexpr DType value = DType::kU64;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};

// Copies; SS_CHECKs that dims and number of values agree.
template <typename T>
Tensor Tensor::of(Dims dims, std::span<const T> values) {
  Tensor tensor(DTypeOf<T>::value, std::move(dims));
  SS_CHECK(static_cast<std::size_t>(tensor.elements()) == values.size());
  std::copy(values.begin(), values.end(), tensor.as<T>().begin());
  return tensor;
}

// One element as double / int64, whatever numeric dtype the view has (int64 above 2^53 lose bits in the first).
double elementAsDouble(const TensorView& view, std::int64_t index);
std::int64_t elementAsInt(const TensorView& view, std::int64_t index);
// Stores with the usual conversion of C; bool becomes value != 0.
void storeElement(const TensorView& view, std::int64_t index, double value);

// All elements of an integer tensor (any integer dtype) as int64.
std::vector<std::int64_t> intElements(const TensorView& view);

// A copy in another numeric dtype.
Tensor convertTensor(const TensorView& view, DType dtype);

}  // namespace stepscope
