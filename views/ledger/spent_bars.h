// SPDX-License-Identifier: GPL-3.0-or-later
// The sums of a ledger: a bar for each quantity, cut into what it was spent on, and its parts in words beside it.
#pragma once

#include <QWidget>
#include <vector>

#include "views/ledger/ledger_rows.h"

namespace stepscope {

class SpentBars : public QWidget {
  Q_OBJECT

 public:
  explicit SpentBars(QWidget* parent = nullptr);
  void show(std::vector<ledger::Sum> sums);
  QSize sizeHint() const override;
  // "Time 5.4 ms: kernels 4.9 ms (91 %), gaps 0.5 ms (9 %)", a line for each bar.
  QString words() const;

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  std::vector<ledger::Sum> sums_;
};

}  // namespace stepscope
