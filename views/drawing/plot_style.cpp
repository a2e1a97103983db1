// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/drawing/plot_style.h"

#include <algorithm>

#include "views/common/tokens.h"

namespace stepscope {

void dressAxes(QCustomPlot& plot) {
  const Tokens& t = Tokens::current();
  plot.setBackground(t.panel);
  for (auto* rect : plot.axisRects()) {
    for (auto* axis : rect->axes()) {
      axis->setBasePen(QPen(t.border, 1));
      axis->setTickPen(QPen(t.border, 1));
      axis->setSubTickPen(Qt::NoPen);
      axis->setTickLabelColor(t.faint);
      axis->setLabelColor(t.muted);
      axis->setTickLabelFont(smallFont());
      axis->setLabelFont(smallFont());
      axis->grid()->setPen(QPen(t.grid, 1));
      axis->grid()->setZeroLinePen(Qt::NoPen);
      axis->setNumberPrecision(6);  // shorter where fewer digits tell the numbers apart
      axis->setNumberFormat(QStringLiteral("gb"));
    }
  }
}

void countWhole(QCPAxis& axis) {
  const auto whole = QSharedPointer<QCPAxisTickerFixed>::create();
  whole->setTickStep(1);
  whole->setScaleStrategy(QCPAxisTickerFixed::ssMultiples);
  axis.setTicker(whole);
}

void fitTicks(QCustomPlot& plot) {
  QObject::connect(&plot, &QCustomPlot::afterReplot, &plot, [&plot] {
    bool changed = false;
    for (auto* rect : plot.axisRects()) {
      const int count = std::clamp(4 * rect->height() / (7 * QFontMetrics(smallFont()).height()), 2, 5);
      for (auto* axis : {rect->axis(QCPAxis::atLeft), rect->axis(QCPAxis::atRight)}) {
        if (!axis || axis->ticker()->tickCount() == count) continue;
        axis->ticker()->setTickCount(count);
        changed = true;
      }
    }
    if (changed) plot.replot(QCustomPlot::rpQueuedReplot);
  });
}

}  // namespace stepscope
