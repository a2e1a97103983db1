// SPDX-License-Identifier: GPL-3.0-or-later
// The search box over the graph picture: a query, and how many nodes match it.
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QWidget>

namespace stepscope {

class GraphFinder : public QWidget {
  Q_OBJECT

 public:
  explicit GraphFinder(QWidget* parent = nullptr);

  void open();                           // with the old query chosen
  void placeOver(const QRect& picture);  // at its upper right
  QString query() const;                 // empty while it is hidden
  void showCount(int match, int count);  // of the chosen one, from 0

 signals:
  void wanted(int step);  // 0: the query changed; 1 and -1: the next and the previous match

 private:
  QLineEdit* text_;
  QLabel* count_;
};

}  // namespace stepscope
