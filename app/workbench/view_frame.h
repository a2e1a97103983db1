// SPDX-License-Identifier: GPL-3.0-or-later
// What stands behind a tab.
#pragma once

#include <QLabel>
#include <QStackedWidget>

#include "views/common/view.h"

class QScrollArea;

namespace stepscope {

// A view, or the text that says what would fill it.
class ViewFrame : public QStackedWidget {
  Q_OBJECT

 public:
  explicit ViewFrame(View* view, QWidget* parent = nullptr);
  View* view() const { return view_; }

 private:
  void showEmptyText();

  View* view_;
  QScrollArea* shelf_;  // of the view
  QLabel* empty_;
};

}  // namespace stepscope
