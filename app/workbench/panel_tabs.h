// SPDX-License-Identifier: GPL-3.0-or-later
// The tabs of an area of the window. One can be dragged to another area, or out of the window; Esc ends that.
#pragma once

#include <QTabBar>

namespace stepscope {

class PanelTabs : public QTabBar {
  Q_OBJECT

 public:
  static inline const QString kMime = QStringLiteral("application/x-stepscope-view");  // of what is dragged: the id

  explicit PanelTabs(QWidget* parent = nullptr);
  QSize tabSizeHint(int index) const override;
  QSize minimumTabSizeHint(int index) const override { return tabSizeHint(index); }

 signals:
  void draggedOut(int tab);  // of the window, and dropped where nothing took it

 protected:
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  QPoint pressed_;
};

}  // namespace stepscope
