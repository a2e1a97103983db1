// SPDX-License-Identifier: GPL-3.0-or-later
// What the header of a panel stands on: raised, with one line below.
#pragma once

#include <QWidget>

namespace stepscope {

class HeaderLine : public QWidget {
 public:
  using QWidget::QWidget;

 protected:
  void paintEvent(QPaintEvent*) override;
};

}  // namespace stepscope
