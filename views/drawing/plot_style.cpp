// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/drawing/plot_style.h"

#include <qcustomplot.h>

#include <algorithm>
#include <cmath>
#include <typeinfo>

#include "views/common/tokens.h"

namespace stepscope {
namespace {

// Numbers as the tables write them: one count of decimals for the whole axis, and a minus sign instead of a hyphen.
class NumberTicker : public QCPAxisTicker {
 protected:
  QVector<QString> createLabelVector(const QVector<double>& ticks, const QLocale& locale, QChar format,
                                     int precision) override {
    constexpr int kMostDecimals = 6;
    constexpr double kLargest = 1e6;
    const double step = ticks.size() > 1 ? std::abs(ticks[1] - ticks[0]) : 0;
    const auto fits = [&](int decimals) {
      const double scale = std::pow(10.0, decimals), slack = 1e-3 * std::min(1.0, step * scale);
      return std::all_of(ticks.begin(), ticks.end(), [=](double t) {
        return std::abs(t) < kLargest && std::abs(t * scale - std::round(t * scale)) <= slack;
      });
    };
    int decimals = 0;
    while (decimals <= kMostDecimals && !fits(decimals)) ++decimals;
    QVector<QString> labels;
    for (const double tick : ticks) {
      QString text = decimals > kMostDecimals ? locale.toString(tick, format.toLatin1(), precision)
                                              : QString::number(tick, 'f', decimals);
      if (decimals <= kMostDecimals && std::abs(tick) < 0.5 * step) text = QStringLiteral("0");
      if (text.startsWith('-')) text[0] = QChar(0x2212);
      labels << text;
    }
    return labels;
  }
};

}  // namespace

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
      if (const QCPAxisTicker& ticker = *axis->ticker(); typeid(ticker) == typeid(QCPAxisTicker)) countNumbers(*axis);
    }
  }
}

void countNumbers(QCPAxis& axis) { axis.setTicker(QSharedPointer<NumberTicker>::create()); }

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
