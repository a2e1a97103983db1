// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/precision/exponent_delegate.h"

#include <QPainter>
#include <algorithm>

#include "views/common/row_table.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

constexpr int kLeast = -1074, kMost = 1024;  // what a type may hold; a message may say anything

// Of the counts that are drawn.
int firstOf(const snapshot::PrecisionClass& c) { return std::clamp(c.first_exponent(), kLeast, kMost); }
int countOf(const snapshot::PrecisionClass& c) { return std::min(c.counts_size(), kMost - firstOf(c) + 1); }

}  // namespace

std::pair<int, int> exponentRange(const std::string& dtype) {
  if (dtype == "float16") return {-14, 15};
  if (dtype == "bfloat16" || dtype == "float32") return {-126, 127};
  if (dtype == "float64") return {-1022, 1023};
  return {0, 0};
}

void ExponentDelegate::setReport(std::shared_ptr<const snapshot::PrecisionReport> report) {
  report_ = std::move(report);
  first_ = last_ = 0;
  bool any = false;
  for (int i = 0; report_ && i < report_->classes_size(); ++i) {
    const auto& c = report_->classes(i);
    if (countOf(c) <= 0) continue;
    first_ = any ? std::min(first_, firstOf(c)) : firstOf(c);
    last_ = any ? std::max(last_, firstOf(c) + countOf(c)) : firstOf(c) + countOf(c);
    any = true;
  }
}

void ExponentDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  QStyledItemDelegate::paint(painter, option, index);  // what lies behind: selection, hover
  const int at = index.data(RowTableModel::kKeyRole).toInt();
  if (!report_ || at < 0 || at >= report_->classes_size() || first_ >= last_) return;
  const auto& c = report_->classes(at);
  const Tokens& t = Tokens::current();
  const QRectF area = QRectF(option.rect).adjusted(4, 3, -4, -3);
  const double width = area.width() / (last_ - first_);
  const auto left = [&](int exponent) { return area.left() + (exponent - first_) * width; };
  const auto largest = [](const auto& counts) {
    std::int64_t most = 1;
    for (const std::int64_t count : counts) most = std::max(most, count);
    return static_cast<double>(most);
  };
  painter->save();
  painter->setClipRect(option.rect);
  painter->setPen(QPen(t.border, 1));
  painter->drawLine(area.bottomLeft(), area.bottomRight());
  const auto [normal, most] = exponentRange(c.dtype());
  painter->setPen(QPen(t.edge, 1, Qt::DashLine));
  for (const int end : {normal, most + 1})
    if (normal != most && end > first_ && end < last_)
      painter->drawLine(QPointF(left(end), area.top()), QPointF(left(end), area.bottom()));
  const double own = largest(c.counts()), wide = largest(c.reference_counts());
  for (int i = 0; i < countOf(c); ++i) {
    const std::int64_t count = c.counts(i);
    if (count <= 0) continue;
    const int exponent = firstOf(c) + i;
    const double height = std::max(1.0, area.height() * static_cast<double>(count) / own);
    const bool near = normal != most && exponent >= most;
    const bool small = normal != most && exponent < normal;
    painter->fillRect(QRectF(left(exponent), area.bottom() - height, std::max(1.0, width - (width > 3 ? 1 : 0)), height),
                      near || small ? t.warn : t.series(0));
  }
  QPolygonF outline;
  for (int i = 0; i < std::min(countOf(c), c.reference_counts_size()); ++i) {
    const double y =
        area.bottom() - area.height() * static_cast<double>(std::max<std::int64_t>(0, c.reference_counts(i))) / wide;
    outline << QPointF(left(firstOf(c) + i), y) << QPointF(left(firstOf(c) + i + 1), y);
  }
  painter->setPen(QPen(t.text, 1));
  painter->drawPolyline(outline);
  painter->restore();
}

}  // namespace stepscope
