// SPDX-License-Identifier: GPL-3.0-or-later
// Integers of a batch, a row per sample, with their mask: what the mask leaves out stands in brackets.
#pragma once

#include <QAbstractTableModel>

#include "views/common/tensor_values.h"

namespace stepscope {

class TokenTable : public QAbstractTableModel {
  Q_OBJECT

 public:
  explicit TokenTable(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

  // `tokens` of rank 1 or 2. `mask` of the same extents, or empty: then elements equal to `padding` are left out, if it is
  // set.
  void set(TensorValues tokens, TensorValues mask, std::optional<double> padding);
  bool masked(int row, int column) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  TensorValues tokens_, mask_;
  std::optional<double> padding_;
  int rows_ = 0, columns_ = 0;
};

}  // namespace stepscope
