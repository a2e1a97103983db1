// SPDX-License-Identifier: GPL-3.0-or-later
// Views in windows of their own, for a second screen. They belong to the window: its keys work in them, and they are hidden
// with what they were taken from.
#pragma once

#include <QObject>
#include <vector>

#include "app/workbench/panel_group.h"

namespace stepscope {

class FloatingPanel;

class FloatingPanels : public QObject {
  Q_OBJECT

 public:
  // `owner`: the widget that the windows belong to.
  explicit FloatingPanels(QWidget* owner) : QObject(owner), owner_(owner) {}

  // Opens a window with the view. Its place is brought onto a screen that exists.
  void add(ViewFrame* frame, const FloatingView& place);
  // Closes the window of the view and gives the frame back, without a parent; nullptr when it does not float.
  ViewFrame* take(const QString& id);
  void raise(const QString& id);
  void setShown(bool shown);

  PanelGroup* groupOf(const QString& id) const;  // nullptr when it does not float
  Area homeOf(const QString& id) const;          // the area it comes back to
  std::vector<FloatingView> present() const;     // in the order they were opened

 signals:
  void opened(QWidget* window);
  void closed(const QString& id);  // by the user: it is to come back
  void tabMenuWanted(const QString& id, const QPoint& globalPos);
  void helpWanted(const QString& id);

 private:
  FloatingPanel* find(const QString& id) const;

  QWidget* owner_;
  std::vector<FloatingPanel*> panels_;
};

}  // namespace stepscope
