// SPDX-License-Identifier: GPL-3.0-or-later
// Whether the numbers of two runs agree, and how far they may part: one line that belongs to all pages, two
// where it is narrow.
#pragma once

#include <QBoxLayout>
#include <QLabel>
#include <QLineEdit>

#include "views/common/view.h"

namespace stepscope {

class ToleranceBar : public QWidget {
  Q_OBJECT

 public:
  explicit ToleranceBar(const ViewContext& context, QWidget* parent = nullptr);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void apply();  // the tolerance as typed
  void showTolerance();
  void showVerdict();

  ViewContext context_;
  QLineEdit *rtol_, *atol_;
  QLabel* verdict_;
  QBoxLayout* line_;
};

}  // namespace stepscope
