// SPDX-License-Identifier: GPL-3.0-or-later
// The tabs of an area of the window. One can be dragged to another area, or out of the window; Esc ends that. Where not all
// of them fit, the one in front is among those that are shown.
#pragma once

#include <QTabBar>

namespace stepscope {

class PanelTabs : public QTabBar {
  Q_OBJECT

 public:
  static inline const QString kMime = QStringLiteral("application/x-stepscope-view");  // of what is dragged: the id

  explicit PanelTabs(QWidget* parent = nullptr);
  // Shows as many as `width` pixels hold, in their order; the current one always, shortened where it must. Returns how many
  // are not shown. `beside`: the room that is left to others where there are such.
  int fit(int width, int beside);
  QSize tabSizeHint(int index) const override;
  QSize minimumTabSizeHint(int index) const override { return tabSizeHint(index); }

 signals:
  void draggedOut(int tab);  // of the window, and dropped where nothing took it

 protected:
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  int wholeWidth(int index) const;

  QPoint pressed_;
  int limit_ = QWIDGETSIZE_MAX;  // of one tab
};

}  // namespace stepscope
