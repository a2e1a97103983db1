// SPDX-License-Identifier: GPL-3.0-or-later
// The guide in the window: where it stands, what opens it, what its links do. GUI thread.
#pragma once

#include <QObject>
#include <QPointer>

#include "app/guide/guide_panel.h"
#include "app/workbench/window_parts.h"

class QBoxLayout;

namespace stepscope {

class GuideWiring : public QObject {
  Q_OBJECT

 public:
  // The guide stands at the end of `middle`, beside `pages`, which give way to it.
  GuideWiring(const WindowParts& parts, QBoxLayout& middle, QWidget& pages);

  void open(const QString& page);
  void openOfView(const QString& viewId);
  void close();
  GuidePanel* panel() const { return panel_; }  // nullptr while it is closed

 private:
  GuidePanel* shown();
  void follow(const QString& actionId);
  void openSample(const QString& name);
  QString viewWithKeyboard() const;  // its id; "start" on the start page

  WindowParts parts_;
  QBoxLayout& middle_;
  QWidget& pages_;
  QPointer<GuidePanel> panel_;
  QString last_;  // the page that stood there when it was closed
};

}  // namespace stepscope
