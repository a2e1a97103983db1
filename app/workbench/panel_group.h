// SPDX-License-Identifier: GPL-3.0-or-later
// One area of the window: views behind tabs, with the header line above them.
#pragma once

#include <QLabel>
#include <QStackedWidget>
#include <QWidget>

#include "app/workbench/help_button.h"
#include "app/workbench/layouts.h"
#include "app/workbench/panel_tabs.h"
#include "app/workbench/view_frame.h"

class QHBoxLayout;
class QToolButton;

namespace stepscope {

class PanelGroup : public QWidget {
  Q_OBJECT

 public:
  PanelGroup(Area area, QWidget* parent = nullptr);

  Area area() const { return area_; }
  // Takes the frame as child. The caller removes it from another group first.
  void addFrame(ViewFrame* frame);
  ViewFrame* takeFrame(const QString& id);  // without deleting it; nullptr when it is not here
  QStringList ids() const;
  void orderTabs(const QStringList& ids);  // as they stand there; others behind them
  QString frontId() const;
  View* frontView() const;
  bool bringToFront(const QString& id);
  bool isEmpty() const { return tabs_->count() == 0; }

 signals:
  void viewDropped(const QString& id, stepscope::Area area);
  void viewTornOut(const QString& id);  // dragged out of the window
  void tabMenuWanted(const QString& id, const QPoint& globalPos);
  void frontChanged();
  void chosen(const QString& id);      // a click on its tab
  void helpWanted(const QString& id);  // of the view in front

 protected:
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void showFront(int tab);
  void updateHeader();
  void fitText();
  void fit();
  void fillMore();
  ViewFrame* frameAt(int tab) const;

  Area area_;
  QWidget* header_;
  QHBoxLayout* headerLayout_;
  PanelTabs* tabs_;
  QToolButton* more_;  // the views whose tabs do not fit
  QLabel* text_;
  QString fullText_;
  QWidget* extra_ = nullptr;
  HelpButton* help_;
  QStackedWidget* pages_;
};

}  // namespace stepscope
