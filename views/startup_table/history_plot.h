// SPDX-License-Identifier: GPL-3.0-or-later
// The time of one phase over the start-ups of the project, the shown one last; a line where version or machine changed.
#pragma once

#include <QWidget>

#include "views/common/startup_history.h"

namespace stepscope {

class HistoryPlot : public QWidget {
  Q_OBJECT

 public:
  explicit HistoryPlot(QWidget* parent = nullptr);
  // `title` is shown above; points index `startups`.
  void show(const QString& title, std::vector<StartupEntry> startups, std::vector<PhaseHistory::Point> points);
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QRectF area() const;
  QPointF place(std::size_t point) const;
  // What changed since the start-up before; empty when nothing did or nothing is known.
  QString changeAt(std::size_t point) const;

  QString title_;
  std::vector<StartupEntry> startups_;
  std::vector<PhaseHistory::Point> points_;
  std::int64_t largest_ = 1;
};

}  // namespace stepscope
