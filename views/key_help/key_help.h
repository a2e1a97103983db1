// SPDX-License-Identifier: GPL-3.0-or-later
// All keys on one page, by what they act on.
#pragma once

#include <QAction>
#include <QDialog>

namespace stepscope {

class KeyHelp : public QDialog {
  Q_OBJECT

 public:
  // Actions carry their heading in the property "group". Keys that views handle themselves are added to them.
  KeyHelp(const QList<QAction*>& actions, QWidget* parent);
};

}  // namespace stepscope
