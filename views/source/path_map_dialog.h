// SPDX-License-Identifier: GPL-3.0-or-later
// Edits a PathMap: a row per prefix, added and removed with buttons.
#pragma once

#include <QAbstractTableModel>
#include <QDialog>

#include "views/source/path_map.h"

class QTableView;

namespace stepscope {

class PathMapModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { kPrefix, kFolder, kColumns };

  explicit PathMapModel(PathMap map, QObject* parent = nullptr) : QAbstractTableModel(parent), entries_(map.entries()) {}
  PathMap map() const;  // rows without a folder are left out
  void append(PathMap::Entry entry);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  bool removeRows(int row, int count, const QModelIndex& parent) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::vector<PathMap::Entry> entries_;
};

class PathMapDialog : public QDialog {
  Q_OBJECT

 public:
  explicit PathMapDialog(const PathMap& map, QWidget* parent = nullptr);

 signals:
  void changed(const stepscope::PathMap& map);  // accepted

 private:
  PathMapModel* model_;
  QTableView* table_;
};

}  // namespace stepscope
