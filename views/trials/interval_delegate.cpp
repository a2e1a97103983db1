// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/trials/interval_delegate.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "views/common/row_table.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

constexpr double kLeast = 0.25, kMost = 4, kNarrowest = 0.05;

double sound(double ratio) { return std::isfinite(ratio) && ratio > 0 ? ratio : 1; }

}  // namespace

std::pair<double, double> ratioAxis(const snapshot::TrialsReport& report) {
  double first = 1 - kNarrowest, last = 1 + kNarrowest;
  for (const auto& t : report.trials()) {
    if (t.rounds() == 0) continue;
    first = std::min(first, sound(t.low()));
    last = std::max(last, sound(t.high()));
  }
  return {std::max(kLeast, first), std::min(kMost, last)};
}

void IntervalDelegate::setReport(const snapshot::TrialsReport& report) {
  intervals_.clear();
  for (const auto& t : report.trials())
    intervals_.push_back({sound(t.low()), sound(t.ratio()), sound(t.high()), t.rounds() > 0, t.verdict() == "faster",
                          t.verdict() == "slower"});
  std::tie(first_, last_) = ratioAxis(report);
}

void IntervalDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  QStyledItemDelegate::paint(painter, option, index);  // what lies behind: selection, hover
  const int at = index.data(RowTableModel::kKeyRole).toInt();
  if (at < 0 || at >= static_cast<int>(intervals_.size()) || first_ >= last_) return;
  const Interval& i = intervals_[static_cast<std::size_t>(at)];
  const Tokens& t = Tokens::current();
  const QRectF area = QRectF(option.rect).adjusted(8, 2, -8, -2);
  const auto place = [&](double ratio) {
    const double share = std::log(std::clamp(ratio, first_, last_) / first_) / std::log(last_ / first_);
    return area.left() + share * area.width();
  };
  painter->save();
  painter->setClipRect(option.rect);
  painter->setPen(QPen(t.edge, 1));
  painter->drawLine(QPointF(place(1), option.rect.top()), QPointF(place(1), option.rect.bottom()));
  if (i.measured) {
    const QColor colour = i.faster ? t.ok : i.slower ? t.warn : t.muted;
    const double middle = area.center().y(), thick = std::max(3.0, area.height() * 0.28);
    const QRectF bar(place(i.low), middle - thick / 2, std::max(2.0, place(i.high) - place(i.low)), thick);
    painter->fillRect(bar, mixed(colour, t.panel, 0.55));
    painter->fillRect(QRectF(place(i.median) - 1, middle - area.height() * 0.36, 2, area.height() * 0.72), colour);
    painter->setPen(Qt::NoPen);
    painter->setBrush(colour);
    painter->setRenderHint(QPainter::Antialiasing);
    const auto arrow = [&](double x, double by) {
      painter->drawPolygon(QPolygonF{{x + by * thick, middle}, {x, middle - thick}, {x, middle + thick}});
    };
    if (i.low < first_) arrow(area.left(), -1);
    if (i.high > last_) arrow(area.right(), 1);
  }
  painter->restore();
}

}  // namespace stepscope
