// SPDX-License-Identifier: GPL-3.0-or-later
// One plane of a tensor as a table. Numbers share a power of ten that the header of the panel names; exact values are in the
// tooltip and in what is copied.
#pragma once

#include <QAbstractTableModel>

#include "views/common/tensor_values.h"
#include "views/tensors/slice.h"

namespace stepscope {

class TensorTable : public QAbstractTableModel {
  Q_OBJECT

 public:
  explicit TensorTable(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

  void set(TensorValues values, Slice slice);
  const TensorValues& values() const { return values_; }
  const Slice& slice() const { return slice_; }
  // Whether an element may be typed over; the exact number is in the edit role.
  void setEditable(bool editable) { editable_ = editable; }
  int exponent() const { return exponent_; }  // shown numbers times 10^exponent are the values
  // Index of the element in the whole tensor.
  std::vector<qint64> position(const QModelIndex& index) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::int64_t flat(int row, int column) const;

  TensorValues values_;
  Slice slice_;
  int exponent_ = 0;
  bool editable_ = false;
};

}  // namespace stepscope
