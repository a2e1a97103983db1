// SPDX-License-Identifier: GPL-3.0-or-later
// Asks to which step to go back, and says of the one that stands there what it costs and what becomes of the later ones.
#pragma once

#include <QDialog>

#include "app/workbench/session/rewind_ways.h"

class QLabel;
class QPushButton;
class QSpinBox;

namespace stepscope {

class RewindDialog : public QDialog {
  Q_OBJECT

 public:
  // `recorded`: the project has the steps of this run.
  RewindDialog(RewindWays ways, bool recorded, QWidget* parent);

 signals:
  void wanted(qint64 step);

 private:
  void tell();

  const RewindWays ways_;
  const bool recorded_;
  QSpinBox* step_;
  QLabel *way_, *later_;
  QPushButton* go_;
};

// "No step runs again …", "31 steps run again …": how the step is come to.
QString textOfWay(const RewindWays& ways, std::int64_t step);

}  // namespace stepscope
