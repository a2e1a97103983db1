// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/batch/token_table.h"

#include <algorithm>

#include "views/common/tokens.h"

namespace stepscope {
namespace {
constexpr std::int64_t kMostRows = 1 << 16, kMostColumns = 1 << 14;
}

void TokenTable::set(TensorValues tokens, TensorValues mask, std::optional<double> padding) {
  beginResetModel();
  tokens_ = std::move(tokens);
  mask_ = std::move(mask);
  padding_ = padding;
  if (mask_.extent() != tokens_.extent()) mask_ = {};
  const auto& extent = tokens_.extent();
  columns_ = extent.empty() || extent.size() > 2 || tokens_.count() == 0
                 ? 0
                 : static_cast<int>(std::min(extent.back(), kMostColumns));
  // Only whole rows: short data ends the table.
  rows_ = columns_ == 0        ? 0
          : extent.size() == 1 ? 1
                               : static_cast<int>(std::min({extent[0], kMostRows, tokens_.count() / extent[1]}));
  endResetModel();
}

bool TokenTable::masked(int row, int column) const {
  const std::int64_t at = row * tokens_.extent().back() + column;
  return mask_.count() > at ? mask_.at(at) == 0 : padding_ && tokens_.at(at) == *padding_;
}

int TokenTable::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : rows_; }
int TokenTable::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : columns_; }

QVariant TokenTable::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rows_ || index.column() >= columns_) return {};
  const std::int64_t at = index.row() * tokens_.extent().back() + index.column();
  const bool out = masked(index.row(), index.column());
  switch (role) {
    case Qt::DisplayRole: return out ? QStringLiteral("(%1)").arg(tokens_.text(at)) : tokens_.text(at);
    case Qt::ToolTipRole: {
      const QString what = out                             ? QStringLiteral("left out")
                           : mask_.count() > 0 || padding_ ? QStringLiteral("data")
                                                           : QString();
      return QStringLiteral("[%1, %2] = %3  %4").arg(index.row()).arg(index.column()).arg(tokens_.text(at), what);
    }
    case Qt::TextAlignmentRole: return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    case Qt::FontRole: return monoFont();
    case Qt::ForegroundRole: return out ? Tokens::current().faint : Tokens::current().text;
    case Qt::BackgroundRole: return out ? QVariant(Tokens::current().raised) : QVariant();
    default: return {};
  }
}

QVariant TokenTable::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role == Qt::DisplayRole) return QString::number(section);
  if (role == Qt::ToolTipRole)
    return orientation == Qt::Vertical ? QStringLiteral("Sample of the batch") : QStringLiteral("Place in the sample");
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  return {};
}

}  // namespace stepscope
