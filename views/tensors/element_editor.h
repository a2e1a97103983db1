// SPDX-License-Identifier: GPL-3.0-or-later
// Edits an element in its cell: typing, F2 or a double click begins, Enter takes the number over, Esc leaves it as it was.
#pragma once

#include <QPersistentModelIndex>
#include <QStyledItemDelegate>

namespace stepscope {

class ElementEditor : public QStyledItemDelegate {
  Q_OBJECT

 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  // The next editor of this cell begins with what was typed before, marked as refused for this reason.
  void refuse(const QModelIndex& index, const QString& typed, const QString& why);

  QWidget* createEditor(QWidget* parent, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  void setEditorData(QWidget* editor, const QModelIndex& index) const override;
  // As wide as its number, beyond the cell where that is narrower.
  void updateEditorGeometry(QWidget* editor, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  void setModelData(QWidget* editor, QAbstractItemModel* model, const QModelIndex& index) const override;

 signals:
  void typed(const QModelIndex& index, double number, const QString& text);  // another number than the cell had
  void notANumber(const QString& why);

 protected:
  bool eventFilter(QObject* editor, QEvent* event) override;

 private:
  QPersistentModelIndex refused_;
  QString typed_, why_;
};

}  // namespace stepscope
