// SPDX-License-Identifier: GPL-3.0-or-later
// The slider over the phases of a build and the passes within them: a line with one stop per graph, a small one for a pass
// (PassStages). Click or ←/→ chooses one; Shift+click or Shift+←/→ a second one to compare with; Esc ends the comparison.
// Whichever was chosen first, the later one is shown with what changed since the earlier one, as the build goes. Between
// both, the counts of the difference.
#pragma once

#include <QStringList>
#include <QWidget>
#include <vector>

namespace stepscope {

// What stands between two phases, "+28", "±24": nothing for what there is none of; "±0" where they are equal.
QStringList differenceWords(int added, int removed, int changed);

class PhaseStrip : public QWidget {
  Q_OBJECT

 public:
  explicit PhaseStrip(QWidget* parent = nullptr);

  void setStops(const QStringList& stops);
  void setShown(const QString& stage, const QString& base);  // `base` empty: no comparison
  void setCounts(int added, int removed, int changed);       // negative: not known yet

  const QStringList& stops() const { return stops_; }
  int shown() const { return shown_; }
  int base() const { return base_; }
  // Phases whose names have no room: they stand in the tooltip alone.
  const QStringList& unnamed() const { return unnamed_; }

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 signals:
  void chosen(const QString& stage, const QString& base);

 protected:
  void paintEvent(QPaintEvent*) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent*) override;
  void keyPressEvent(QKeyEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  bool event(QEvent* event) override;

 private:
  int stopAt(QPointF p) const;
  QPointF stop(int i) const;
  void arrange();
  void choose(int first, int second);
  QString textOf(int stop) const;

  QStringList stops_, unnamed_;
  std::vector<double> places_;  // x of the stops
  int shown_ = -1, base_ = -1, hovered_ = -1;
  int first_ = -1, second_ = -1;  // the same, as they were chosen
  int added_ = -1, removed_ = -1, changed_ = -1;
};

}  // namespace stepscope
