// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/options/switch_delegate.h"

#include <QApplication>
#include <QMouseEvent>
#include <QPainter>
#include <QTableView>

#include "views/common/tokens.h"

namespace stepscope {

SwitchDelegate::SwitchDelegate(QTableView& table, int column, std::function<int(const QModelIndex&)> stateOf)
    : QStyledItemDelegate(&table), table_(table), column_(column), stateOf_(std::move(stateOf)) {
  table_.setItemDelegateForColumn(column_, this);
  table_.viewport()->installEventFilter(this);
  connect(&table_, &QTableView::clicked, this, [this](const QModelIndex& at) {
    if (at.column() == column_ && stateOf_(at) >= 0) emit turned(at);
  });
}

void SwitchDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  const int state = stateOf_(index);
  if (state < 0) return QStyledItemDelegate::paint(painter, option, index);
  QStyleOptionViewItem item(option);
  initStyleOption(&item, index);
  item.text.clear();
  QApplication::style()->drawControl(QStyle::CE_ItemViewItem, &item, painter, item.widget);
  const Tokens& t = Tokens::current();
  const double height = Metrics::current().unit * 0.95, width = 1.8 * height;
  const QRectF track(option.rect.left() + 4, option.rect.center().y() + 0.5 - height / 2, width, height);
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  painter->setPen(QPen(state ? t.accent : t.edge, 1.2));
  painter->setBrush(state ? t.accent : QColor(Qt::transparent));
  painter->drawRoundedRect(track, height / 2, height / 2);
  const double inset = 0.2 * height, size = height - 2 * inset;
  painter->setPen(Qt::NoPen);
  painter->setBrush(state ? t.panel : t.edge);
  painter->drawEllipse(QRectF(state ? track.right() - inset - size : track.left() + inset, track.top() + inset, size, size));
  painter->setPen(state ? t.text : t.muted);
  painter->drawText(
      QRectF(track.right() + 6, option.rect.top(), option.rect.right() - track.right() - 6, option.rect.height()),
      Qt::AlignVCenter | Qt::AlignLeft, state ? QStringLiteral("on") : QStringLiteral("off"));
  painter->restore();
}

bool SwitchDelegate::eventFilter(QObject* watched, QEvent* event) {
  if (watched == table_.viewport()) {
    if (event->type() == QEvent::MouseButtonDblClick) {
      const QModelIndex at = table_.indexAt(static_cast<QMouseEvent*>(event)->position().toPoint());
      doubled_ = at.column() == column_ && stateOf_(at) >= 0;
      if (doubled_) return true;
    }
    if (event->type() == QEvent::MouseButtonRelease && std::exchange(doubled_, false)) return true;
  }
  return QStyledItemDelegate::eventFilter(watched, event);
}

}  // namespace stepscope
