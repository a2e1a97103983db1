// SPDX-License-Identifier: GPL-3.0-or-later
// The line of tools above the panels. It drops its texts step by step where the window is narrow; nothing is cut off.
#pragma once

#include <QTimer>
#include <QToolButton>
#include <QWidget>

#include "app/workbench/label_button.h"

class QMenu;

namespace stepscope {

class Actions;

class Toolbar : public QWidget {
  Q_OBJECT

 public:
  explicit Toolbar(const Actions& actions, QWidget* parent = nullptr);

  // Menus behind the buttons; not owned.
  void setMenus(QMenu* main, QMenu* breakOn, QMenu* layouts, QMenu* exports);
  void setOptions(int on, int total);
  void setDevice(const QString& deviceAndPrecision);  // empty: no model
  void setBreakOn(const QString& what);
  void setLayoutName(const QString& name);
  // Notes, such as values that were set by hand, are counted where nothing is wrong.
  void setAlerts(int notes, int warnings, int errors);
  // The button offers to run, or to pause. What follows one after the other in one turn of the loop is one work; a single
  // step is over before a button could be read, so that work which may be short is shown a little later than a build, which
  // it offers to cancel.
  void setRunning(bool running, bool building);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  QToolButton* button(const QString& id);
  void addSeparator();
  void fitTexts();
  void giveWay();  // as narrow as it can be
  void showRunning();
  void endRunning();
  int wantedWidth() const;

  const Actions& actions_;
  QList<QToolButton*> texts_;  // in the order in which they keep their text
  QToolButton* menu_;
  QToolButton* run_;
  LabelButton* device_;
  LabelButton* options_;
  LabelButton* breakOn_;
  LabelButton* alerts_;
  bool alertsGiveWay_ = false;  // they are notes alone
  LabelButton* layout_;
  LabelButton* export_;
  QTimer runningShown_;
  bool running_ = false;
  QString pause_, pauseTip_;  // what the button says of a run
  int runWidth_ = 0;
};

}  // namespace stepscope
