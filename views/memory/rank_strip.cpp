// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/memory/rank_strip.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>

#include "views/common/format.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

QString words(const RankTotals& rank) {
  return QStringLiteral("planned %1 · measured %2").arg(format::bytes(rank.plannedBytes), format::bytes(rank.peakBytes));
}

QString tip(const RankTotals& rank) {
  return QStringLiteral("rank %1\nplanned peak %2\nmeasured peak %3 (%4)\nof it state %5")
      .arg(rank.rank)
      .arg(format::bytesExact(rank.plannedBytes), format::bytesExact(rank.peakBytes),
           format::bytesDifference(rank.peakBytes - rank.plannedBytes), format::bytesExact(rank.stateBytes));
}

}  // namespace

RankStrip::RankStrip(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("memory_ranks"));
  setAccessibleName(QStringLiteral("Memory of the ranks"));
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  hide();
}

void RankStrip::setRanks(const std::vector<RankTotals>& ranks) {
  all_ = ranks.size();
  shown_ = ranks;
  if (shown_.size() > kMost) {
    std::stable_sort(shown_.begin(), shown_.end(), [](const auto& a, const auto& b) { return a.peakBytes > b.peakBytes; });
    shown_.resize(kMost);
    std::sort(shown_.begin(), shown_.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  }
  setVisible(all_ > 1);
  QStringList lines;
  for (const RankTotals& rank : shown_) lines << QStringLiteral("rank %1: %2").arg(rank.rank).arg(words(rank));
  setAccessibleDescription(lines.join('\n'));
  updateGeometry();
  update();
}

int RankStrip::rowHeight() const { return QFontMetrics(smallFont()).height() + 4; }

QSize RankStrip::sizeHint() const { return {640, static_cast<int>(shown_.size() + 1) * rowHeight() + 4}; }

QString RankStrip::title() const {
  return all_ > shown_.size() ? QStringLiteral("Peak of the %1 ranks of %2 that take most; the map above is that of rank 0")
                                    .arg(shown_.size())
                                    .arg(all_)
                              : QStringLiteral(
                                    "Peak of each rank: planned as outline, measured as bar; the map above is "
                                    "that of rank 0");
}

void RankStrip::paintEvent(QPaintEvent*) {
  QPainter p(this);
  const Tokens& t = Tokens::current();
  const Metrics m = Metrics::current();
  p.fillRect(rect(), t.panel);
  p.setPen(t.border);
  p.drawLine(0, 0, width(), 0);
  p.setFont(smallFont());
  const QFontMetrics metrics(p.font());
  const int high = rowHeight();
  p.setPen(t.muted);
  p.drawText(QRect(m.padding, 2, width() - 2 * m.padding, high), Qt::AlignVCenter | Qt::AlignLeft,
             format::elided(title(), metrics, width() - 2 * m.padding));
  std::int64_t most = 1;
  int name = 0, text = 0;
  for (const RankTotals& rank : shown_) {
    most = std::max({most, rank.plannedBytes, rank.peakBytes});
    name = std::max(name, metrics.horizontalAdvance(QStringLiteral("rank %1").arg(rank.rank)));
    text = std::max(text, metrics.horizontalAdvance(words(rank)));
  }
  const double left = 2 * m.padding + name, room = std::max(10.0, width() - left - text - 2.0 * m.padding);
  int y = high + 2;
  for (const RankTotals& rank : shown_) {
    const auto wide = [&](std::int64_t bytes) {
      return room * static_cast<double>(std::max<std::int64_t>(0, bytes)) / static_cast<double>(most);
    };
    p.setPen(t.text);
    p.drawText(QRect(m.padding, y, name, high), Qt::AlignVCenter | Qt::AlignLeft, QStringLiteral("rank %1").arg(rank.rank));
    p.fillRect(QRectF(left, y + 5, wide(rank.peakBytes), high - 10),
               rank.peakBytes > rank.plannedBytes ? mixed(t.warn, t.panel, 0.6) : mixed(t.ok, t.panel, 0.6));
    p.setPen(t.edge);
    p.setBrush(Qt::NoBrush);
    p.drawRect(QRectF(left, y + 3, wide(rank.plannedBytes), high - 6));
    p.setPen(t.muted);
    p.drawText(QRectF(left + room + m.padding, y, text, high), Qt::AlignVCenter | Qt::AlignLeft, words(rank));
    y += high;
  }
}

bool RankStrip::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const int row = (help->pos().y() - 2) / rowHeight() - 1;
  if (row >= 0 && row < static_cast<int>(shown_.size()))
    QToolTip::showText(help->globalPos(), tip(shown_[static_cast<std::size_t>(row)]), this);
  else
    QToolTip::hideText();
  return true;
}

}  // namespace stepscope
