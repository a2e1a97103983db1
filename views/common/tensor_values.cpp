// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/tensor_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "views/common/format.h"

namespace stepscope {
namespace {

template <typename T>
T load(const std::string& data, std::int64_t i) {
  T x;
  std::memcpy(&x, data.data() + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
  return x;
}

double half(std::uint16_t h) {
  const int exponent = h >> 10 & 31, fraction = h & 1023;
  const double sign = h & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31)
    return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  return exponent == 0 ? sign * std::ldexp(fraction, -24) : sign * std::ldexp(1024 + fraction, exponent - 25);
}

double brain(std::uint16_t b) {
  const std::uint32_t bits = static_cast<std::uint32_t>(b) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

}  // namespace

int TensorValues::elementBytes(const std::string& dtype) {
  if (dtype == "float32" || dtype == "int32" || dtype == "uint32") return 4;
  if (dtype == "float64" || dtype == "int64" || dtype == "uint64" || dtype == "double") return 8;
  if (dtype == "float16" || dtype == "bfloat16" || dtype == "int16" || dtype == "uint16") return 2;
  if (dtype == "int8" || dtype == "uint8" || dtype == "bool") return 1;
  return 0;
}

TensorValues::TensorValues(TensorPtr tensor) : tensor_(std::move(tensor)) {
  if (!tensor_) return;
  const std::string& dtype = tensor_->dtype();
  type_ = dtype == "float32"                        ? Type::kF32
          : dtype == "float64" || dtype == "double" ? Type::kF64
          : dtype == "float16"                      ? Type::kF16
          : dtype == "bfloat16"                     ? Type::kBf16
          : dtype == "int8"                         ? Type::kI8
          : dtype == "int16"                        ? Type::kI16
          : dtype == "int32"                        ? Type::kI32
          : dtype == "int64"                        ? Type::kI64
          : dtype == "uint8"                        ? Type::kU8
          : dtype == "uint16"                       ? Type::kU16
          : dtype == "uint32"                       ? Type::kU32
          : dtype == "uint64"                       ? Type::kU64
          : dtype == "bool"                         ? Type::kBool
          : tensor_->strings_size() > 0             ? Type::kText
                                                    : Type::kNone;
  integral_ = type_ >= Type::kI8;
  const int rank = tensor_->dims_size();
  begin_.assign(static_cast<std::size_t>(rank), 0);
  extent_.assign(tensor_->dims().begin(), tensor_->dims().end());
  if (tensor_->extent_size() == rank) extent_.assign(tensor_->extent().begin(), tensor_->extent().end());
  if (tensor_->begin_size() == rank) begin_.assign(tensor_->begin().begin(), tensor_->begin().end());
  double product = 1;
  for (auto& e : extent_) {
    e = std::max<std::int64_t>(0, e);
    product *= static_cast<double>(e);
  }
  const int bytes = elementBytes(dtype);
  const double there = type_ == Type::kText ? tensor_->strings_size()
                       : bytes > 0          ? static_cast<double>(tensor_->data().size() / static_cast<std::size_t>(bytes))
                                            : 0;
  count_ = static_cast<std::int64_t>(std::min(product, there));
  for (std::int64_t i = 0; i < count_; ++i) {
    const double x = std::abs(at(i));
    if (std::isfinite(x) && x > largest_) largest_ = x;
  }
}

double TensorValues::at(std::int64_t i) const {
  if (i < 0 || i >= count_) return std::numeric_limits<double>::quiet_NaN();
  const std::string& d = tensor_->data();
  switch (type_) {
    case Type::kF32: return load<float>(d, i);
    case Type::kF64: return load<double>(d, i);
    case Type::kF16: return half(load<std::uint16_t>(d, i));
    case Type::kBf16: return brain(load<std::uint16_t>(d, i));
    case Type::kI8: return load<std::int8_t>(d, i);
    case Type::kI16: return load<std::int16_t>(d, i);
    case Type::kI32: return load<std::int32_t>(d, i);
    case Type::kI64: return static_cast<double>(load<std::int64_t>(d, i));
    case Type::kU8: return load<std::uint8_t>(d, i);
    case Type::kU16: return load<std::uint16_t>(d, i);
    case Type::kU32: return load<std::uint32_t>(d, i);
    case Type::kU64: return static_cast<double>(load<std::uint64_t>(d, i));
    case Type::kBool: return load<std::uint8_t>(d, i) != 0;
    case Type::kNone:
    case Type::kText: break;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

QString TensorValues::text(std::int64_t i) const {
  if (i < 0 || i >= count_) return {};
  if (type_ == Type::kText) return format::visible(tensor_->strings(static_cast<int>(i)));
  if (type_ == Type::kI64) return QString::number(load<std::int64_t>(tensor_->data(), i));
  if (type_ == Type::kU64) return QString::number(load<std::uint64_t>(tensor_->data(), i));
  if (integral_) return QString::number(static_cast<qint64>(at(i)));
  // The shortest text that reads back as the same float.
  return type_ == Type::kF32 && std::isfinite(at(i)) ? QString::number(at(i), 'g', 9) : format::numberExact(at(i));
}

}  // namespace stepscope
