// SPDX-License-Identifier: GPL-3.0-or-later
// Which plane of a tensor a table shows: "0, 3, :, 0:64". An index fixes an axis, ":" or "a:b" spreads it over rows or
// columns.
#pragma once

#include <QString>
#include <cstdint>
#include <vector>

namespace stepscope {

struct Slice {
  std::vector<std::int64_t> begin, extent;
  int rowAxis = -1, columnAxis = -1;  // -1: that direction has one entry

  std::int64_t rows() const { return rowAxis < 0 ? 1 : extent[static_cast<std::size_t>(rowAxis)]; }
  std::int64_t columns() const { return columnAxis < 0 ? 1 : extent[static_cast<std::size_t>(columnAxis)]; }
  QString text(const std::vector<std::int64_t>& dims) const;

  // The last two axes whole, the others at 0; cut so that at most `most` elements are read.
  static Slice first(const std::vector<std::int64_t>& dims, std::int64_t most);
  // As first(), but of the plane and the part of it that hold the element `index` (one entry per axis, within dims).
  static Slice around(const std::vector<std::int64_t>& index, const std::vector<std::int64_t>& dims, std::int64_t most);
  // What was wrong is in `error`; empty when it fits dims. More than two spread axes and more than `most` elements are
  // errors.
  static Slice parse(const QString& text, const std::vector<std::int64_t>& dims, std::int64_t most, QString* error);
};

}  // namespace stepscope
