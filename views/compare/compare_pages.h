// SPDX-License-Identifier: GPL-3.0-or-later
// The pages of a comparison: a bar with their names, and below it the page in front, or what would fill it.
#pragma once

#include <QLabel>
#include <QStackedWidget>
#include <QTabBar>
#include <vector>

#include "views/common/view.h"

namespace stepscope {

class ComparePages : public QWidget {
  Q_OBJECT

 public:
  explicit ComparePages(QWidget* parent = nullptr);

  void add(View* page);  // behind the others; owned
  // A page by its object name; false when there is none of that name.
  bool show(const QString& id);
  View* front() const { return pages_[static_cast<std::size_t>(bar_->currentIndex())]; }  // after the first add

 signals:
  void frontChanged();  // another page, or other words of it

 private:
  void showFront();

  QTabBar* bar_;
  QStackedWidget* stack_;
  QLabel* empty_;
  std::vector<View*> pages_;
};

}  // namespace stepscope
