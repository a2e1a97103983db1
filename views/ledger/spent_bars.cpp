// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/ledger/spent_bars.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>

#include "views/common/format.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

constexpr double kLine = 2.9, kBar = 0.55, kName = 6.5;  // units of the font: a quantity, its bar, its name

QString partWords(const ledger::Sum& sum, const ledger::Part& part) {
  return QStringLiteral("%1 %2 (%3)").arg(part.name, part.amount, format::percent(part.size, sum.size));
}

}  // namespace

SpentBars::SpentBars(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("ledger_sums"));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void SpentBars::show(std::vector<ledger::Sum> sums) {
  sums_ = std::move(sums);
  setAccessibleName(words());
  setVisible(!sums_.empty());
  updateGeometry();
  update();
}

QSize SpentBars::sizeHint() const {
  const int unit = Metrics::current().unit;
  return {20 * unit, qRound(kLine * unit * static_cast<double>(sums_.size()))};
}

QString SpentBars::words() const {
  QStringList lines;
  for (const ledger::Sum& sum : sums_) {
    QStringList parts;
    for (const ledger::Part& part : sum.parts)
      if (part.size > 0) parts << partWords(sum, part);
    lines << QStringLiteral("%1 %2: %3").arg(sum.name, sum.amount, parts.join(QStringLiteral(", ")));
  }
  return lines.join('\n');
}

bool SpentBars::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const auto at = static_cast<std::size_t>(std::max(0.0, help->pos().y() / (kLine * Metrics::current().unit)));
  if (at < sums_.size())
    QToolTip::showText(help->globalPos(), QStringLiteral("%1: %2").arg(sums_[at].name, sums_[at].tip), this);
  return true;
}

void SpentBars::paintEvent(QPaintEvent*) {
  const Tokens& t = Tokens::current();
  QPainter painter(this);
  const double unit = Metrics::current().unit, left = kName * unit, wide = std::max(1.0, width() - left);
  const QFontMetrics metrics(font());
  double y = 0;
  for (const ledger::Sum& sum : sums_) {
    painter.setPen(t.text);
    painter.drawText(QRectF(0, y, left - unit / 2, 1.3 * unit), Qt::AlignLeft | Qt::AlignVCenter, sum.name);
    painter.setPen(t.muted);
    painter.drawText(QRectF(0, y + 1.2 * unit, left - unit / 2, 1.3 * unit), Qt::AlignLeft | Qt::AlignVCenter, sum.amount);
    painter.fillRect(QRectF(left, y + 0.35 * unit, wide, kBar * unit), t.raised);
    double x = left, text = left;
    for (std::size_t i = 0; i < sum.parts.size(); ++i) {
      const ledger::Part& part = sum.parts[i];
      if (part.size <= 0 || sum.size <= 0) continue;
      const QColor colour = t.series(static_cast<int>(i));
      const double length = wide * part.size / sum.size;
      painter.fillRect(QRectF(x, y + 0.35 * unit, std::max(1.0, length), kBar * unit), colour);
      x += length;
      const QString words = partWords(sum, part);
      const double room = width() - text;
      if (room < 3 * unit) continue;  // its tooltip and the columns have it
      painter.fillRect(QRectF(text, y + 1.65 * unit, 0.5 * unit, 0.5 * unit), colour);
      painter.setPen(t.muted);
      const QString shown = format::elided(words, metrics, qRound(room - 0.8 * unit));
      painter.drawText(QRectF(text + 0.8 * unit, y + 1.2 * unit, room - 0.8 * unit, 1.3 * unit),
                       Qt::AlignLeft | Qt::AlignVCenter, shown);
      text += 0.8 * unit + metrics.horizontalAdvance(shown) + 1.2 * unit;
    }
    y += kLine * unit;
  }
}

}  // namespace stepscope
