// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/drawing/plot_style.h"

#include <qcustomplot.h>

#include <algorithm>
#include <cmath>
#include <typeinfo>

#include "views/common/tokens.h"

namespace stepscope {
namespace {

constexpr int kLeastNumbers = 3;  // fewer show no scale

int multiplesIn(const QCPRange& range, double step) {
  return static_cast<int>(std::floor(range.upper / step) - std::ceil(range.lower / step)) + 1;
}

// The largest round number below `step`.
double nextSmaller(double step) {
  const double power = std::pow(10.0, std::floor(std::log10(step) + 1e-9));
  for (const double factor : {8.0, 6.0, 5.0, 4.0, 3.0, 2.5, 2.0, 1.5, 1.0})
    if (factor * power < step * (1 - 1e-9)) return factor * power;
  return 0.8 * power;
}

QString withMinus(QString number) {
  if (number.startsWith('-')) number[0] = QChar(0x2212);
  return number;
}

// Numbers as the tables write them: one count of decimals for the whole axis, and a minus sign instead of a hyphen. At least
// three, but on an axis that has room for one (fitTicks).
class NumberTicker : public QCPAxisTicker {
 protected:
  double getTickStep(const QCPRange& range) override {
    double step = QCPAxisTicker::getTickStep(range);
    for (int tries = 0; tries < 20 && tickCount() > 1 && multiplesIn(range, step) < kLeastNumbers; ++tries)
      step = nextSmaller(step);
    return step;
  }

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
      labels << withMinus(text);
    }
    return labels;
  }
};

// Powers of ten where three of them are in sight, else 1, 2 and 5 of each, else as on a linear axis.
class LogarithmicTicker : public NumberTicker {
 protected:
  QVector<double> createTickVector(double tickStep, const QCPRange& range) override {
    if (!(range.lower > 0)) return NumberTicker::createTickVector(tickStep, range);
    const int first = static_cast<int>(std::floor(std::log10(range.lower))),
              last = static_cast<int>(std::ceil(std::log10(range.upper)));
    const auto of = [&](std::initializer_list<double> factors, int every) {
      QVector<double> ticks;
      for (int power = first; power <= last; ++power)
        for (const double factor : factors)
          if (const double tick = factor * std::pow(10.0, power); power % every == 0 && range.contains(tick)) ticks << tick;
      return ticks;
    };
    fewDecades_ = false;
    for (int every = 1 + (last - first) / std::max(kLeastNumbers, tickCount() + 1); every > 0; --every)
      if (const QVector<double> tens = of({1}, every); tens.size() >= kLeastNumbers) return tens;
    if (const QVector<double> ticks = of({1, 2, 5}, 1); ticks.size() >= kLeastNumbers) return ticks;
    fewDecades_ = true;
    return NumberTicker::createTickVector(tickStep, range);
  }
  QVector<QString> createLabelVector(const QVector<double>& ticks, const QLocale& locale, QChar format,
                                     int precision) override {
    if (fewDecades_) return NumberTicker::createLabelVector(ticks, locale, format, precision);
    QVector<QString> labels;
    for (const double tick : ticks) labels << withMinus(locale.toString(tick, 'g', 6));
    return labels;
  }

 private:
  bool fewDecades_ = true;
};

// Steps and counts: whole, and none below 0.
class WholeTicker : public QCPAxisTickerFixed {
 protected:
  QVector<double> createTickVector(double tickStep, const QCPRange& range) override {
    QVector<double> ticks = QCPAxisTickerFixed::createTickVector(tickStep, range);
    ticks.removeIf([](double tick) { return tick < -0.5; });
    return ticks;
  }
};

// How many numbers stand beside each other without touching. Whole ones only: how wide others are depends on their count.
int fittingCount(const QCPAxis& axis) {
  const double most = std::max(std::abs(axis.range().lower), std::abs(axis.range().upper));
  if (dynamic_cast<const WholeTicker*>(axis.ticker().data()) == nullptr || !(most < 1e15)) return axis.ticker()->tickCount();
  const QFontMetrics metrics(axis.tickLabelFont());
  const int wide =
      metrics.horizontalAdvance(QString::number(most, 'f', 0)) + metrics.horizontalAdvance(QStringLiteral("00"));
  return std::clamp(axis.axisRect()->width() / wide, 2, 5);
}

// How much of what is drawn between a and b lies within the area, in samples.
int samplesWithin(const QRectF& area, QPointF a, QPointF b) {
  constexpr int kSamples = 8;
  int count = 0;
  for (int i = 0; i <= kSamples; ++i) count += area.contains(a + (b - a) * i / kSamples);
  return count;
}

int coveredBy(const QCPAxisRect& rect, const QRectF& area) {
  constexpr int kMostPoints = 500;
  int covered = 0;
  for (auto* plottable : rect.plottables()) {
    const auto* data = plottable->interface1D();
    if (!plottable->visible() || !data || !plottable->keyAxis() || !plottable->valueAxis()) continue;
    const auto* graph = qobject_cast<const QCPGraph*>(plottable);
    const bool joined = graph && graph->lineStyle() != QCPGraph::lsNone;
    const int step = std::max(1, data->dataCount() / kMostPoints);
    for (int i = 0; i < data->dataCount(); i += step) {
      const double key = data->dataMainKey(i);
      const QCPRange spread = data->dataValueRange(i);
      covered +=
          samplesWithin(area, plottable->coordsToPixels(key, spread.lower), plottable->coordsToPixels(key, spread.upper));
      if (joined && i + step < data->dataCount())
        covered += samplesWithin(area, plottable->coordsToPixels(key, data->dataMainValue(i)),
                                 plottable->coordsToPixels(data->dataMainKey(i + step), data->dataMainValue(i + step)));
    }
  }
  return covered;
}

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

void countLogarithmic(QCPAxis& axis) { axis.setTicker(QSharedPointer<LogarithmicTicker>::create()); }

void countWhole(QCPAxis& axis) {
  const auto whole = QSharedPointer<WholeTicker>::create();
  whole->setTickStep(1);
  whole->setScaleStrategy(QCPAxisTickerFixed::ssMultiples);
  axis.setTicker(whole);
}

void dressLegend(QCPLegend& legend) {
  const Tokens& t = Tokens::current();
  const double unit = Metrics::current().unit;
  legend.setFont(smallFont());
  legend.setTextColor(t.muted);
  legend.setBrush(t.panel);
  legend.setBorderPen(Qt::NoPen);
  legend.setIconSize(qRound(1.8 * unit), qRound(0.8 * unit));
  legend.setRowSpacing(0);
  legend.setMargins({2, 2, 2, 2});
}

void keepLegendClear(QCPAxisRect& rect, QCPLegend& legend) {
  QObject::connect(rect.parentPlot(), &QCustomPlot::afterLayout, &rect, [&rect, &legend] {
    auto* inset = rect.insetLayout();
    int place = 0;
    while (place < inset->elementCount() && inset->elementAt(place) != &legend) ++place;
    if (place == inset->elementCount() || !legend.realVisibility()) return;
    constexpr int kAround = 6;  // half a mark of a curve
    const QSize size = legend.minimumOuterSizeHint();
    const QRect room = rect.rect().marginsRemoved(inset->margins());
    Qt::Alignment best = Qt::AlignTop | Qt::AlignRight;
    int least = -1;
    for (const Qt::Alignment corner : {Qt::AlignTop | Qt::AlignRight, Qt::AlignTop | Qt::AlignLeft,
                                       Qt::AlignBottom | Qt::AlignLeft, Qt::AlignBottom | Qt::AlignRight}) {
      const QRect area(QPoint(corner & Qt::AlignLeft ? room.left() : room.right() + 1 - size.width(),
                              corner & Qt::AlignTop ? room.top() : room.bottom() + 1 - size.height()),
                       size);
      const int covered = coveredBy(rect, area.adjusted(-kAround, -kAround, kAround, kAround));
      if (least >= 0 && covered >= least) continue;
      least = covered;
      best = corner;
    }
    if (best == inset->insetAlignment(place)) return;
    inset->setInsetAlignment(place, best);
    inset->update(QCPLayoutElement::upLayout);
  });
}

void fitTicks(QCustomPlot& plot) {
  QObject::connect(&plot, &QCustomPlot::afterReplot, &plot, [&plot] {
    bool changed = false;
    for (auto* rect : plot.axisRects()) {
      const int line = QFontMetrics(smallFont()).height();
      const int count = rect->height() < kLeastNumbers * line ? 1 : std::clamp(4 * rect->height() / (7 * line), 2, 5);
      const auto fit = [&changed](QCPAxis* axis, int wanted) {
        if (!axis || axis->ticker()->tickCount() == wanted) return;
        axis->ticker()->setTickCount(wanted);
        changed = true;
      };
      for (const auto side : {QCPAxis::atLeft, QCPAxis::atRight}) fit(rect->axis(side), count);
      if (QCPAxis* below = rect->axis(QCPAxis::atBottom)) fit(below, fittingCount(*below));
    }
    if (changed) plot.replot(QCustomPlot::rpQueuedReplot);
  });
}

}  // namespace stepscope
