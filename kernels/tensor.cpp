#include "kernels/tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

#include "kernels/dispatch.h"
#include "kernels/integer_of.h"

namespace stepscope {
namespace {

// Weights and moments are read and written in long streams every step: where they are large, huge pages save page walks.
constexpr std::size_t kAlignment = 64, kHugePage = std::size_t{2} << 20;

// Zeros of the system: a page is there from its first use on, and given back at once when the tensor goes.
std::shared_ptr<const void> allocateHuge(std::size_t bytes, void** data) {
  const std::size_t mapped = bytes + kHugePage;
  void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  const auto aligned = (reinterpret_cast<std::uintptr_t>(memory) + kHugePage - 1) / kHugePage * kHugePage;
  *data = reinterpret_cast<void*>(aligned);
  madvise(*data, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return {memory, [mapped](const void* p) { munmap(const_cast<void*>(p), mapped); }};
}

std::shared_ptr<const void> allocateBytes(std::size_t bytes, void** data) {
  if (bytes >= kHugePage) return allocateHuge(bytes, data);
  void* memory = ::operator new(std::max<std::size_t>(bytes, 1), std::align_val_t{kAlignment});
  std::memset(memory, 0, bytes);
  *data = memory;
  return {memory, [](const void* p) { ::operator delete(const_cast<void*>(p), std::align_val_t{kAlignment}); }};
}

}  // namespace

Tensor::Tensor(DType dtype, Dims dims) {
  const auto count = checkedElementCount(dims);
  SS_CHECK(count.has_value());
  view_.dtype = dtype;
  view_.dims = std::move(dims);
  if (dtype == DType::kString) {
    auto strings = std::make_shared<std::vector<std::string>>(static_cast<std::size_t>(*count));
    view_.data = strings->data();
    owner_ = std::move(strings);
  } else {
    owner_ = allocateBytes(view_.bytes(), &view_.data);
  }
}

Tensor::Tensor(DType dtype, Dims dims, std::shared_ptr<const void> owner, void* data)
    : view_{data, dtype, std::move(dims)}, owner_(std::move(owner)) {}

Tensor Tensor::ints(std::span<const std::int64_t> values) {
  return of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
}

Tensor Tensor::scalar(DType dtype, double value) {
  Tensor tensor(dtype, {});
  storeElement(tensor.view(), 0, value);
  return tensor;
}

Tensor Tensor::strings(Dims dims, std::vector<std::string> values) {
  Tensor tensor(DType::kString, std::move(dims));
  SS_CHECK(static_cast<std::size_t>(tensor.elements()) == values.size());
  std::move(values.begin(), values.end(), tensor.as<std::string>().begin());
  return tensor;
}

Tensor Tensor::clone() const {
  if (!valid()) return {};
  Tensor copy(dtype(), dims());
  if (dtype() == DType::kString)
    std::copy(as<std::string>().begin(), as<std::string>().end(), copy.as<std::string>().begin());
  else if (bytes() > 0)
    std::memcpy(copy.data(), data(), bytes());
  return copy;
}

Tensor Tensor::reshaped(Dims dims) const {
  SS_CHECK(elementCount(dims) == elements());
  return {dtype(), std::move(dims), owner_, view_.data};
}

namespace {

template <typename To, typename From>
To converted(From value) {
  if constexpr (std::is_same_v<From, Float16> || std::is_same_v<From, BFloat16>) {
    return converted<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return integerOf<To>(static_cast<double>(value));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace

double elementAsDouble(const TensorView& view, std::int64_t index) {
  double value = 0;
  dispatchFixed(view.dtype, [&](auto tag) {
    using T = decltype(tag);
    value = static_cast<double>(static_cast<const T*>(view.data)[index]);
  });
  return value;
}

std::int64_t elementAsInt(const TensorView& view, std::int64_t index) {
  std::int64_t value = 0;
  dispatchFixed(view.dtype, [&](auto tag) {
    using T = decltype(tag);
    value = converted<std::int64_t>(static_cast<const T*>(view.data)[index]);
  });
  return value;
}

void storeElement(const TensorView& view, std::int64_t index, double value) {
  dispatchFixed(view.dtype, [&](auto tag) {
    using T = decltype(tag);
    static_cast<T*>(view.data)[index] = converted<T>(value);
  });
}

std::vector<std::int64_t> intElements(const TensorView& view) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(view.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = elementAsInt(view, static_cast<std::int64_t>(i));
  return values;
}

Tensor convertTensor(const TensorView& view, DType dtype) {
  Tensor result(dtype, view.dims);
  dispatchFixed(view.dtype, [&](auto from) {
    using From = decltype(from);
    dispatchFixed(dtype, [&](auto to) {
      using To = decltype(to);
      const auto source = view.as<From>();
      const auto target = result.as<To>();
      for (std::size_t i = 0; i < source.size(); ++i) target[i] = converted<To>(source[i]);
    });
  });
  return result;
}

}  // namespace stepscope
