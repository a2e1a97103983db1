// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/tensors/histogram.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "views/common/format.h"
#include "views/common/tokens.h"

namespace stepscope {

Histogram::Histogram(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setAccessibleName(QStringLiteral("Histogram"));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void Histogram::set(std::optional<snapshot::TensorStatistics> statistics, bool old) {
  statistics_ = std::move(statistics);
  old_ = old;
  update();
}

void Histogram::setLogarithmic(bool on) {
  logarithmic_ = on;
  update();
}

QSize Histogram::sizeHint() const { return {200, qRound(10.5 * Metrics::current().unit)}; }

QRectF Histogram::plot() const {
  const Metrics m = Metrics::current();
  return QRectF(rect()).adjusted(m.padding, qRound(1.6 * m.unit), -m.padding, -qRound(1.9 * m.unit));
}

double Histogram::valueAt(double share) const {
  return statistics_->min() + share * (statistics_->max() - statistics_->min());
}

void Histogram::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const Tokens& t = Tokens::current();
  const QFont small = smallFont();
  painter.setFont(small);
  const QRectF area = plot();
  const Metrics m = Metrics::current();
  if (!statistics_ || statistics_->histogram_size() == 0) {
    painter.setPen(t.faint);
    painter.drawText(rect(), Qt::AlignCenter, QStringLiteral("No statistics of this value yet"));
    return;
  }
  if (statistics_->count() > 0 && statistics_->nan() + statistics_->inf() >= statistics_->count()) {
    painter.setPen(t.number);
    painter.drawText(rect(), Qt::AlignCenter,
                     statistics_->inf() == 0   ? QStringLiteral("All NaN")
                     : statistics_->nan() == 0 ? QStringLiteral("All infinite")
                                               : QStringLiteral("All NaN or infinite"));
    return;
  }
  const int bins = statistics_->histogram_size();
  double most = 1;
  for (const auto n : statistics_->histogram()) most = std::max(most, static_cast<double>(n));
  const auto height = [&](double n) {
    if (n <= 0) return 0.0;
    return area.height() * (logarithmic_ ? std::log1p(n) / std::log1p(most) : n / most);
  };
  const double width = area.width() / bins;
  QColor bar = mixed(t.category(QStringLiteral("elementwise")), t.panel, old_ ? 0.4 : 0.85);
  QColor negative = mixed(t.negative, t.panel, old_ ? 0.4 : 0.85);
  painter.setPen(Qt::NoPen);
  for (int i = 0; i < bins; ++i) {
    const double share = (i + 0.5) / bins;
    const double h = height(static_cast<double>(statistics_->histogram(i)));
    if (h <= 0) continue;
    QColor colour = valueAt(share) < 0 ? negative : bar;
    if (share < low_ || share > high_) colour = t.grid;
    painter.fillRect(QRectF(area.left() + i * width, area.bottom() - std::max(1.0, h),
                            std::max(1.0, width - (width > 3 ? 1 : 0)), std::max(1.0, h)),
                     colour);
  }
  painter.fillRect(QRectF(area.left(), area.bottom(), area.width(), 1), t.border);
  painter.setPen(t.faint);
  const QRectF below(area.left(), area.bottom() + 3, area.width(), 1.4 * m.unit);
  painter.drawText(below, Qt::AlignLeft | Qt::AlignTop, format::number(valueAt(low_), 3));
  painter.drawText(below, Qt::AlignRight | Qt::AlignTop, format::number(valueAt(high_), 3));
  if (statistics_->min() < 0 && statistics_->max() > 0) {
    const double zero = area.left() + area.width() * -statistics_->min() / (statistics_->max() - statistics_->min());
    painter.fillRect(QRectF(zero, area.bottom(), 1, 4), t.edge);
    if (zero > area.left() + 5 * m.unit && zero < area.right() - 5 * m.unit)
      painter.drawText(QRectF(zero - 20, below.top(), 40, below.height()), Qt::AlignHCenter | Qt::AlignTop,
                       QStringLiteral("0"));
  }
  const QString scale = logarithmic_ ? QStringLiteral("log") : QStringLiteral("linear");
  painter.drawText(QRectF(area.left(), 2, area.width(), 1.4 * m.unit), Qt::AlignRight | Qt::AlignVCenter,
                   statistics_->count() == 1
                       ? QStringLiteral("1 value, %1 count").arg(scale)
                       : QStringLiteral("%1 values, %2 count").arg(format::count(statistics_->count()), scale));
  painter.setPen(QPen(t.accent, 1));
  for (const double share : {low_, high_}) {
    if (share > 0 && share < 1)
      painter.drawLine(QPointF(area.left() + share * area.width(), area.top()),
                       QPointF(area.left() + share * area.width(), area.bottom() + 4));
  }
}

void Histogram::mousePressEvent(QMouseEvent* event) {
  if (event->position().y() < plot().top()) {
    setLogarithmic(!logarithmic_);
    return;
  }
  const double share = (event->position().x() - plot().left()) / std::max(1.0, plot().width());
  dragged_ = std::abs(share - low_) < std::abs(share - high_) ? 0 : 1;
  mouseMoveEvent(event);
}

void Histogram::mouseMoveEvent(QMouseEvent* event) {
  if (!(event->buttons() & Qt::LeftButton) || dragged_ < 0 || !statistics_) return;
  const double share = std::clamp((event->position().x() - plot().left()) / std::max(1.0, plot().width()), 0.0, 1.0);
  (dragged_ == 0 ? low_ : high_) = dragged_ == 0 ? std::min(share, high_ - 0.02) : std::max(share, low_ + 0.02);
  emit clampChanged(valueAt(low_), valueAt(high_));
  update();
}

void Histogram::mouseDoubleClickEvent(QMouseEvent*) {
  low_ = 0;
  high_ = 1;
  dragged_ = -1;
  if (statistics_) emit clampChanged(valueAt(0), valueAt(1));
  update();
}

bool Histogram::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip || !statistics_ || statistics_->histogram_size() == 0) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const int bins = statistics_->histogram_size();
  const int bin = static_cast<int>((help->pos().x() - plot().left()) / std::max(1.0, plot().width()) * bins);
  QString text = QStringLiteral(
      "Finite elements in equal bins from min to max. Drag the ends to clamp, double-click resets, a click above "
      "switches log and linear.");
  if (bin >= 0 && bin < bins) {
    text = QStringLiteral("%1 to %2: %3 elements\n")
               .arg(format::number(valueAt(static_cast<double>(bin) / bins), 4),
                    format::number(valueAt((bin + 1.0) / bins), 4), format::count(statistics_->histogram(bin))) +
           text;
  }
  QToolTip::showText(help->globalPos(), text, this);
  return true;
}

}  // namespace stepscope
