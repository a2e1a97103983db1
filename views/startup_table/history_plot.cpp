// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/startup_table/history_plot.h"

#include <QDateTime>
#include <QHelpEvent>
#include <QLocale>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "views/common/format.h"
#include "views/common/tokens.h"

namespace stepscope {

HistoryPlot::HistoryPlot(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("startup_history"));
  setAccessibleName(QStringLiteral("Time of the phase over the start-ups of the project"));
  setMinimumWidth(12 * Metrics::current().unit);
}

void HistoryPlot::show(const QString& title, std::vector<StartupEntry> startups, std::vector<PhaseHistory::Point> points) {
  title_ = title;
  startups_ = std::move(startups);
  std::erase_if(points, [this](const auto& p) { return p.startup < 0 || p.startup >= static_cast<int>(startups_.size()); });
  points_ = std::move(points);
  largest_ = 1;
  for (const auto& p : points_) largest_ = std::max(largest_, p.ns);
  setAccessibleDescription(
      QStringLiteral("%1, %2 start-ups").arg(title_, format::count(static_cast<std::int64_t>(points_.size()))));
  update();
}

QSize HistoryPlot::sizeHint() const { return {18 * Metrics::current().unit, 8 * Metrics::current().unit}; }

QRectF HistoryPlot::area() const {
  const Metrics m = Metrics::current();
  const double left = m.padding +
                      std::max(QFontMetrics(smallFont()).horizontalAdvance(format::time(largest_)),
                               QFontMetrics(smallFont()).horizontalAdvance(format::time(largest_ / 2))) +
                      6;
  return QRectF(rect()).adjusted(left, 2.8 * m.unit, -1.4 * m.padding, -1.9 * m.unit);
}

QPointF HistoryPlot::place(std::size_t point) const {
  const QRectF r = area();
  const double x = points_.size() < 2
                       ? r.center().x()
                       : r.left() + r.width() * static_cast<double>(point) / static_cast<double>(points_.size() - 1);
  return {x, r.bottom() - r.height() * static_cast<double>(points_[point].ns) / static_cast<double>(largest_)};
}

QString HistoryPlot::changeAt(std::size_t point) const {
  if (point == 0) return {};
  const StartupEntry& before = startups_[static_cast<std::size_t>(points_[point - 1].startup)];
  const StartupEntry& now = startups_[static_cast<std::size_t>(points_[point].startup)];
  QStringList changes;
  if (now.version != before.version) changes << QStringLiteral("version %1").arg(format::visible(now.version));
  if (now.cpu != before.cpu) changes << format::visible(now.cpu);
  return changes.join(QStringLiteral(", "));
}

void HistoryPlot::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const Tokens& t = Tokens::current();
  const Metrics m = Metrics::current();
  painter.fillRect(rect(), t.panel);
  painter.setFont(smallFont());
  const QFontMetrics text(smallFont());
  painter.setPen(t.muted);
  const int wide = width() - 2 * m.padding;
  painter.drawText(QRect(m.padding, 0, wide, qRound(1.9 * m.unit)), Qt::AlignLeft | Qt::AlignVCenter,
                   text.elidedText(title_, Qt::ElideMiddle, wide));
  const QRectF r = area();
  if (points_.empty() || r.width() < 10 || r.height() < 10) return;
  painter.setPen(t.faint);
  for (const double share : {0.0, 0.5, 1.0}) {
    const double y = r.bottom() - share * r.height();
    painter.drawText(QRectF(0, y - m.unit, r.left() - 6, 2 * m.unit), Qt::AlignRight | Qt::AlignVCenter,
                     share == 0 ? QStringLiteral("0") : format::time(qRound64(share * static_cast<double>(largest_))));
  }
  painter.setPen(QPen(t.grid, 1));
  for (const double share : {0.0, 0.5, 1.0})
    painter.drawLine(QPointF(r.left(), r.bottom() - share * r.height()),
                     QPointF(r.right(), r.bottom() - share * r.height()));
  double free = width();  // up to where the label of the last one begins: two that print over each other say nothing
  const auto label = [&](std::size_t point, Qt::Alignment align) {
    const StartupEntry& entry = startups_[static_cast<std::size_t>(points_[point].startup)];
    const QString run = entry.build > 0 ? QStringLiteral("run %1, rebuild %2").arg(entry.run).arg(entry.build)
                                        : QStringLiteral("run %1").arg(entry.run);
    const double w = text.horizontalAdvance(run) + 4;
    const double x = align & Qt::AlignRight ? std::min(place(point).x() + w / 2, static_cast<double>(width()) - 4) - w
                                            : std::max(place(point).x() - w / 2, r.left() - 4);
    if (x + w > free) return;
    free = x - m.padding;
    painter.setPen(t.faint);
    painter.drawText(QRectF(x, r.bottom() + 2, w, 1.5 * m.unit), Qt::AlignCenter, run);
  };
  label(points_.size() - 1, Qt::AlignRight);
  if (points_.size() > 1) label(0, Qt::AlignLeft);
  for (std::size_t i = 1; i < points_.size(); ++i) {
    if (changeAt(i).isEmpty()) continue;
    const double x = (place(i - 1).x() + place(i).x()) / 2;
    painter.setPen(QPen(t.edge, 1, Qt::DashLine));
    painter.drawLine(QPointF(x, r.top()), QPointF(x, r.bottom()));
  }
  painter.setPen(QPen(t.border, 1.4));
  for (std::size_t i = 1; i < points_.size(); ++i) painter.drawLine(place(i - 1), place(i));
  painter.setPen(Qt::NoPen);
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const bool shown = points_[i].startup + 1 == static_cast<int>(startups_.size());
    painter.setBrush(points_[i].failed ? t.error : shown ? t.accent : t.edge);
    const double radius = shown ? 4.5 : points_.size() > 60 ? 2 : 3;
    painter.drawEllipse(place(i), radius, radius);
  }
}

bool HistoryPlot::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  auto* help = static_cast<QHelpEvent*>(event);
  std::size_t best = 0;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    if (std::abs(place(i).x() - help->pos().x()) < std::abs(place(best).x() - help->pos().x())) best = i;
  }
  if (points_.empty()) return true;
  const StartupEntry& s = startups_[static_cast<std::size_t>(points_[best].startup)];
  QStringList lines{QStringLiteral("run %1 %2").arg(s.run).arg(format::visible(s.runName)),
                    QLocale().toString(QDateTime::fromMSecsSinceEpoch(s.startedAt / 1'000'000), QLocale::ShortFormat)};
  if (s.build > 0) lines << QStringLiteral("rebuild %1 of this run").arg(s.build);
  lines << (points_[best].failed
                ? QStringLiteral("failed after %1").arg(format::time(points_[best].ns))
                : QStringLiteral("%1 (%2)").arg(format::time(points_[best].ns), format::timeExact(points_[best].ns)));
  if (!s.version.isEmpty()) lines << QStringLiteral("Stepscope %1").arg(format::visible(s.version));
  if (!s.cpu.isEmpty()) lines << format::visible(s.cpu);
  if (const QString change = changeAt(best); !change.isEmpty())
    lines << QStringLiteral("new since the start-up before: %1").arg(change);
  QToolTip::showText(help->globalPos(),
                     QStringLiteral("<p style='white-space:pre-wrap'>%1</p>").arg(lines.join('\n').toHtmlEscaped()), this);
  return true;
}

}  // namespace stepscope
