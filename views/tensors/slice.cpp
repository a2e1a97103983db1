// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/tensors/slice.h"

#include <QStringList>
#include <algorithm>

namespace stepscope {

QString Slice::text(const std::vector<std::int64_t>& dims) const {
  QStringList parts;
  for (std::size_t i = 0; i < begin.size() && i < dims.size(); ++i) {
    const bool spread = static_cast<int>(i) == rowAxis || static_cast<int>(i) == columnAxis;
    if (!spread) {
      parts << QString::number(begin[i]);
    } else if (begin[i] == 0 && extent[i] == dims[i]) {
      parts << QStringLiteral(":");
    } else {
      parts << QStringLiteral("%1:%2").arg(begin[i]).arg(begin[i] + extent[i]);
    }
  }
  return parts.join(QStringLiteral(", "));
}

Slice Slice::first(const std::vector<std::int64_t>& dims, std::int64_t most) {
  Slice s;
  const auto rank = dims.size();
  s.begin.assign(rank, 0);
  s.extent.assign(rank, 1);
  if (rank == 1) {
    s.rowAxis = 0;  // a vector reads downwards
    s.extent[0] = std::min(dims[0], most);
  } else if (rank >= 2) {
    s.rowAxis = static_cast<int>(rank) - 2;
    s.columnAxis = static_cast<int>(rank) - 1;
    s.extent[rank - 1] = std::min(dims[rank - 1], std::max<std::int64_t>(1, most));
    s.extent[rank - 2] =
        std::min(dims[rank - 2], std::max<std::int64_t>(1, most / std::max<std::int64_t>(1, s.extent[rank - 1])));
  }
  return s;
}

Slice Slice::around(const std::vector<std::int64_t>& index, const std::vector<std::int64_t>& dims, std::int64_t most) {
  Slice s = first(dims, most);
  for (std::size_t i = 0; i < dims.size() && i < index.size(); ++i) {
    const std::int64_t last = std::max<std::int64_t>(0, dims[i] - s.extent[i]);
    s.begin[i] = std::clamp<std::int64_t>(index[i] - s.extent[i] / 2, 0, last);
  }
  return s;
}

Slice Slice::parse(const QString& text, const std::vector<std::int64_t>& dims, std::int64_t most, QString* error) {
  error->clear();
  Slice s;
  QString inner = text.trimmed();
  if (inner.startsWith('[')) inner.remove(0, 1);
  if (inner.endsWith(']')) inner.chop(1);
  const QStringList parts = inner.trimmed().isEmpty() ? QStringList() : inner.split(',');
  if (parts.size() != static_cast<qsizetype>(dims.size())) {
    *error = QStringLiteral("slice '%1': %2 axes; expected %3").arg(text.trimmed()).arg(parts.size()).arg(dims.size());
    return s;
  }
  double elements = 1;
  for (qsizetype i = 0; i < parts.size(); ++i) {
    const QString part = parts[i].trimmed();
    const std::int64_t dim = dims[static_cast<std::size_t>(i)];
    bool okA = true, okB = true;
    std::int64_t from = 0, to = dim;
    const auto colon = part.indexOf(':');
    if (colon >= 0) {
      if (const QString a = part.left(colon).trimmed(); !a.isEmpty()) from = a.toLongLong(&okA);
      if (const QString b = part.mid(colon + 1).trimmed(); !b.isEmpty()) to = b.toLongLong(&okB);
      to = std::min(to, dim);
    } else {
      from = part.toLongLong(&okA);
      if (from < 0) from += dim;
      to = from + 1;
    }
    if (!okA || !okB || from < 0 || from >= to || to > dim) {
      *error = QStringLiteral("slice axis %1: '%2'; expected an index below %3, or a range such as 0:%4")
                   .arg(i)
                   .arg(part)
                   .arg(dim)
                   .arg(std::min<std::int64_t>(dim, 12));
      return s;
    }
    s.begin.push_back(from);
    s.extent.push_back(to - from);
    elements *= static_cast<double>(to - from);
    if (colon < 0) continue;
    if (s.rowAxis < 0) {
      s.rowAxis = static_cast<int>(i);
    } else if (s.columnAxis < 0) {
      s.columnAxis = static_cast<int>(i);
    } else {
      *error = QStringLiteral("slice '%1': three spread axes; expected at most two, fix the others with an index")
                   .arg(text.trimmed());
      return s;
    }
  }
  if (elements > static_cast<double>(most))
    *error = QStringLiteral("slice '%1': %2 elements; expected at most %3, narrow a range")
                 .arg(text.trimmed())
                 .arg(elements, 0, 'f', 0)
                 .arg(most);
  return s;
}

}  // namespace stepscope
