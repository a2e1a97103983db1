// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/tensors/tensor_table.h"

#include <QFont>
#include <algorithm>
#include <cmath>

#include "views/common/format.h"
#include "views/common/tokens.h"

namespace stepscope {

void TensorTable::set(TensorValues values, Slice slice) {
  beginResetModel();
  values_ = std::move(values);
  slice_ = std::move(slice);
  exponent_ = 0;
  if (!values_.integral() && values_.largest() > 0) {
    const int magnitude = static_cast<int>(std::floor(std::log10(values_.largest())));
    if (magnitude < -1 || magnitude > 3) exponent_ = magnitude;
  }
  endResetModel();
}

int TensorTable::rowCount(const QModelIndex& parent) const {
  if (parent.isValid() || values_.count() == 0) return 0;
  return static_cast<int>(std::min<std::int64_t>(slice_.rows(), 1 << 20));
}

int TensorTable::columnCount(const QModelIndex& parent) const {
  if (parent.isValid() || values_.count() == 0) return 0;
  return static_cast<int>(std::min<std::int64_t>(slice_.columns(), 1 << 16));
}

std::int64_t TensorTable::flat(int row, int column) const {
  // The message holds exactly the slice, row-major over all axes; fixed axes have extent 1.
  std::int64_t at = 0;
  const auto& extent = values_.extent();
  for (std::size_t i = 0; i < extent.size(); ++i) {
    const std::int64_t place = static_cast<int>(i) == slice_.rowAxis      ? row
                               : static_cast<int>(i) == slice_.columnAxis ? column
                                                                          : 0;
    at = at * extent[i] + place;
  }
  return at;
}

std::vector<qint64> TensorTable::position(const QModelIndex& index) const {
  std::vector<qint64> at;
  for (std::size_t i = 0; i < slice_.begin.size(); ++i) {
    const int offset = static_cast<int>(i) == slice_.rowAxis      ? index.row()
                       : static_cast<int>(i) == slice_.columnAxis ? index.column()
                                                                  : 0;
    at.push_back(slice_.begin[i] + offset);
  }
  return at;
}

QVariant TensorTable::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount() || index.column() >= columnCount()) return {};
  const std::int64_t at = flat(index.row(), index.column());
  const double x = values_.at(at);
  switch (role) {
    case Qt::DisplayRole: {
      if (values_.integral()) {
        const QString text = values_.text(at);
        return text.startsWith('-') ? QChar(0x2212) + text.mid(1) : text;
      }
      if (!std::isfinite(x)) return format::number(x);
      const QString text = QString::number(std::abs(x) * std::pow(10.0, -exponent_), 'f', 3);
      return x < 0 ? QChar(0x2212) + text : text;
    }
    case Qt::ToolTipRole: {
      QStringList place;
      for (const auto p : position(index)) place << QString::number(p);
      const QString element = QStringLiteral("[%1] = %2").arg(place.join(QStringLiteral(", ")), values_.text(at));
      return editable_ ? element + '\n' + QStringLiteral("Type to change it; Enter takes the number over, Esc leaves it")
                       : element;
    }
    case Qt::EditRole:
    case Qt::UserRole: return values_.text(at);
    case Qt::TextAlignmentRole: return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    case Qt::FontRole: {
      QFont font = monoFont();
      font.setBold(!std::isfinite(x) && !values_.integral());
      return font;
    }
    case Qt::ForegroundRole: {
      const Tokens& t = Tokens::current();
      if (!values_.integral() && !std::isfinite(x)) return t.number;
      return x < 0 ? t.negative : x == 0 ? t.faint : t.text;
    }
    default: return {};
  }
}

Qt::ItemFlags TensorTable::flags(const QModelIndex& index) const {
  const Qt::ItemFlags flags = QAbstractTableModel::flags(index);
  return editable_ && index.isValid() ? flags | Qt::ItemIsEditable : flags;
}

QVariant TensorTable::headerData(int section, Qt::Orientation orientation, int role) const {
  const int axis = orientation == Qt::Vertical ? slice_.rowAxis : slice_.columnAxis;
  if (role == Qt::DisplayRole)
    return QString::number((axis < 0 ? 0 : slice_.begin[static_cast<std::size_t>(axis)]) + section);
  if (role == Qt::ToolTipRole)
    return axis < 0 ? QStringLiteral("The only entry") : QStringLiteral("Index on axis %1").arg(axis);
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  return {};
}

}  // namespace stepscope
