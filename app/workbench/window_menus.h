// SPDX-License-Identifier: GPL-3.0-or-later
// The menus of the toolbar, drawn from the actions; and the actions of the views and of the shipped layouts, which it adds
// to them. GUI thread.
#pragma once

#include <QMenu>
#include <QObject>
#include <QStringList>

#include "app/workbench/window_parts.h"

namespace stepscope {

class Toolbar;

class WindowMenus : public QObject {
  Q_OBJECT

 public:
  // The menus belong to the window.
  WindowMenus(const WindowParts& parts, Toolbar& toolbar);

 signals:
  void viewWanted(const QString& id);
  void layoutWanted(const QString& name);
  void breakOnWanted(bool nan, bool inf);
  // The menu of layouts opens: the slot answers with the names there are and the present one.
  void layoutsAsked(QStringList* names, QString* present);

 private:
  void addViews();
  void addLayouts();
  QMenu* mainMenu();
  QMenu* breakMenu();
  QMenu* layoutMenu();
  QMenu* exportMenu();
  void fillLayouts(QMenu* menu);

  WindowParts parts_;
};

}  // namespace stepscope
