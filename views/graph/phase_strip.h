// SPDX-License-Identifier: GPL-3.0-or-later
// The slider over the phases of a build: a line with one stop per stored graph. Click or ←/→ chooses the shown one;
// Shift+click or Shift+←/→ a second one to compare with; Esc ends the comparison. Between both, the counts of the
// difference.
#pragma once

#include <QStringList>
#include <QWidget>

namespace stepscope {

class PhaseStrip : public QWidget {
  Q_OBJECT

 public:
  explicit PhaseStrip(QWidget* parent = nullptr);

  void setStages(const QStringList& stages);
  void setShown(const QString& stage, const QString& base);  // `base` empty: no comparison
  void setCounts(int added, int removed, int changed);       // negative: not known yet

  const QStringList& stages() const { return stages_; }
  int shown() const { return shown_; }
  int base() const { return base_; }

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
  bool event(QEvent* event) override;

 private:
  int stopAt(QPointF p) const;
  QPointF stop(int i) const;
  void choose(int shown, int base);

  QStringList stages_;
  int shown_ = -1, base_ = -1, hovered_ = -1;
  int added_ = -1, removed_ = -1, changed_ = -1;
};

}  // namespace stepscope
