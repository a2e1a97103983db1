// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/label_button.h"

#include <QMenu>
#include <QPainter>

#include "views/common/tokens.h"

namespace stepscope {
namespace {
constexpr int kSide = 9, kGap = 6, kArrow = 14;
}

LabelButton::LabelButton(const QString& label, QWidget* parent) : QAbstractButton(parent) {
  setText(label);
  setAccessibleName(label);
  setFocusPolicy(Qt::TabFocus);
  setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
}

void LabelButton::setValue(const QString& value) {
  if (value == value_) return;
  value_ = value;
  setAccessibleDescription(value);
  updateGeometry();
  update();
}

void LabelButton::setMenu(QMenu* menu) {
  menu_ = menu;
  connect(this, &QAbstractButton::clicked, this, [this] { menu_->popup(mapToGlobal(QPoint(0, height() + 2))); });
  updateGeometry();
}

void LabelButton::setBoxed(bool boxed) {
  boxed_ = boxed;
  update();
}

void LabelButton::setColour(const QColor& colour) {
  colour_ = colour;
  update();
}

void LabelButton::setCompact(bool compact) {
  if (compact == compact_) return;
  compact_ = compact;
  updateGeometry();
  update();
}

LabelButton::Parts LabelButton::parts() const {
  const bool small = compact_ && (!value_.isEmpty() || !icon().isNull());
  return {small && !compactIcon_.isNull() ? compactIcon_ : icon(), !text().isEmpty() && (!small || labelStays_),
          !value_.isEmpty() && !(small && labelStays_)};
}

QSize LabelButton::sizeHint() const {
  const Metrics m = Metrics::current();
  QFont strong = font();
  strong.setWeight(QFont::Medium);
  const Parts shown = parts();
  int width = 2 * kSide;
  if (!shown.icon.isNull()) width += m.icon + kGap;
  if (shown.label) width += fontMetrics().horizontalAdvance(text());
  if (shown.value) width += (shown.label ? kGap + 2 : 0) + QFontMetrics(strong).horizontalAdvance(value_);
  if (menu_) width += kArrow;
  return {width, qRound(2.15 * m.unit)};
}

void LabelButton::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const Tokens& t = Tokens::current();
  const Metrics m = Metrics::current();
  const bool hover = underMouse() && isEnabled();
  const QRectF box = QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5);
  painter.setPen(hasFocus() ? t.accent : boxed_ ? t.border : QColor(Qt::transparent));
  painter.setBrush(isDown() || isChecked() ? t.select : hover ? t.hover : boxed_ ? t.panel : QColor(Qt::transparent));
  painter.drawRoundedRect(box, 5, 5);
  const Parts shown = parts();
  int x = kSide;
  if (!shown.icon.isNull()) {
    shown.icon.paint(&painter, QRect(x, (height() - m.icon) / 2, m.icon, m.icon), Qt::AlignCenter,
                     isEnabled() ? QIcon::Normal : QIcon::Disabled);
    x += m.icon + kGap;
  }
  const QColor strongColour = !isEnabled() ? t.faint : colour_.isValid() ? colour_ : t.text;
  if (shown.label) {
    painter.setPen(value_.isEmpty() || !shown.icon.isNull() ? strongColour : isEnabled() ? t.muted : t.faint);
    painter.drawText(QRect(x, 0, width() - x, height()), Qt::AlignVCenter, text());
    x += fontMetrics().horizontalAdvance(text()) + kGap + 2;
  }
  if (shown.value) {
    QFont strong = font();
    strong.setWeight(QFont::Medium);
    painter.setFont(strong);
    painter.setPen(!shown.icon.isNull() && shown.label ? t.muted : strongColour);
    painter.drawText(QRect(x, 0, width() - x, height()), Qt::AlignVCenter, value_);
  }
  if (menu_) {
    const QPointF c(width() - kSide - 4, height() / 2.0 + 0.5);
    painter.setPen(QPen(t.muted, 1.3, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    painter.drawPolyline(QPolygonF({c + QPointF(-3, -1.5), c + QPointF(0, 1.5), c + QPointF(3, -1.5)}));
  }
}

void LabelButton::enterEvent(QEnterEvent*) { update(); }
void LabelButton::leaveEvent(QEvent*) { update(); }

}  // namespace stepscope
