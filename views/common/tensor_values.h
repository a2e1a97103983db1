// SPDX-License-Identifier: GPL-3.0-or-later
// Elements of a TensorData message as numbers, whatever its dtype. Bytes and dims may be anything: what does not fit reads
// as absent, never out of bounds.
#pragma once

#include <QString>
#include <cstdint>
#include <vector>

#include "views/common/snapshot_store.h"

namespace stepscope {

class TensorValues {
 public:
  TensorValues() = default;
  explicit TensorValues(TensorPtr tensor);

  std::int64_t count() const { return count_; }  // elements that are really there
  double at(std::int64_t flat) const;            // row-major within the slice; NaN when it is absent
  QString text(std::int64_t flat) const;         // exact, for tooltips and copying
  bool integral() const { return integral_; }
  const TensorPtr& tensor() const { return tensor_; }
  // Extent of the slice per axis; the whole dims when the message holds everything.
  const std::vector<std::int64_t>& extent() const { return extent_; }
  const std::vector<std::int64_t>& begin() const { return begin_; }
  double largest() const { return largest_; }  // largest finite magnitude

  // Bytes of one element; 0 for a dtype that is not known.
  static int elementBytes(const std::string& dtype);

 private:
  enum class Type { kNone, kF32, kF64, kF16, kBf16, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kBool, kText };

  TensorPtr tensor_;
  Type type_ = Type::kNone;
  bool integral_ = false;
  std::int64_t count_ = 0;
  double largest_ = 0;
  std::vector<std::int64_t> begin_, extent_;
};

}  // namespace stepscope
