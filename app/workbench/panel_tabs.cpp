// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/panel_tabs.h"

#include <QDrag>
#include <QGuiApplication>
#include <QKeyEvent>
#include <QMimeData>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>

#include "views/common/tokens.h"

namespace stepscope {
namespace {

// Esc ends a drag while the button is still down; under Wayland a drop is not told as a release.
bool wasDropped() {
  return !(QGuiApplication::mouseButtons() & Qt::LeftButton) || QGuiApplication::platformName().startsWith(u"wayland");
}

}  // namespace

PanelTabs::PanelTabs(QWidget* parent) : QTabBar(parent) {
  setDrawBase(false);
  setExpanding(false);
  setUsesScrollButtons(false);
  setMinimumWidth(1);
  setElideMode(Qt::ElideNone);
  setMovable(false);
  setFocusPolicy(Qt::TabFocus);
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
}

int PanelTabs::wholeWidth(int index) const {
  QFont bold = font();
  bold.setWeight(QFont::DemiBold);
  return QFontMetrics(bold).horizontalAdvance(tabText(index)) + qRound(1.1 * Metrics::current().unit);
}

QSize PanelTabs::tabSizeHint(int index) const { return {std::min(wholeWidth(index), limit_), Metrics::current().header}; }

int PanelTabs::fit(int width, int beside) {
  int all = 0;
  for (int i = 0; i < count(); ++i) all += wholeWidth(i);
  const bool whole = all <= width;
  limit_ = std::max(1, whole ? width : width - beside);
  int left = limit_ - (count() > 0 ? wholeWidth(std::max(0, currentIndex())) : 0), hidden = 0;
  bool room = true;
  for (int i = 0; i < count(); ++i) {
    if (i != currentIndex()) {
      room = room && (whole || wholeWidth(i) <= left);
      if (room) left -= wholeWidth(i);
    }
    const bool shown = i == currentIndex() || room;
    hidden += !shown;
    if (isTabVisible(i) != shown) setTabVisible(i, shown);
  }
  updateGeometry();
  return hidden;
}

// Also to those that are not shown.
void PanelTabs::keyPressEvent(QKeyEvent* event) {
  const int step = event->key() == Qt::Key_Right ? 1 : event->key() == Qt::Key_Left ? -1 : 0;
  if (step == 0) return QTabBar::keyPressEvent(event);
  if (const int to = currentIndex() + step; to >= 0 && to < count()) setCurrentIndex(to);
}

void PanelTabs::mousePressEvent(QMouseEvent* event) {
  pressed_ = event->pos();
  QTabBar::mousePressEvent(event);
}

void PanelTabs::mouseMoveEvent(QMouseEvent* event) {
  const int tab = tabAt(pressed_);
  const bool leaving = !rect().adjusted(-8, -8, 8, 8).contains(event->pos());
  if (!(event->buttons() & Qt::LeftButton) || tab < 0 || !leaving) {
    QTabBar::mouseMoveEvent(event);
    return;
  }
  auto* mime = new QMimeData;
  mime->setData(kMime, tabData(tab).toString().toUtf8());
  auto* drag = new QDrag(this);
  drag->setMimeData(mime);
  drag->setPixmap(grab(tabRect(tab)));
  if (drag->exec(Qt::MoveAction) == Qt::IgnoreAction && wasDropped() && !window()->frameGeometry().contains(QCursor::pos()))
    emit draggedOut(tab);
}

void PanelTabs::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Tokens& t = Tokens::current();
  const QPoint mouse = mapFromGlobal(QCursor::pos());
  for (int i = 0; i < count(); ++i) {
    if (!isTabVisible(i)) continue;
    const QRect r = tabRect(i);
    const bool front = i == currentIndex();
    QFont f = font();
    if (front) f.setWeight(QFont::DemiBold);
    painter.setFont(f);
    painter.setPen(front || (underMouse() && r.contains(mouse)) ? t.text : t.muted);
    painter.drawText(r, Qt::AlignCenter, painter.fontMetrics().elidedText(tabText(i), Qt::ElideMiddle, r.width()));
    if (front && count() > 0) {
      const int inset = qRound(0.4 * Metrics::current().unit);
      painter.fillRect(r.left() + inset, r.bottom() - 1, r.width() - 2 * inset, 2, t.accent);
    }
    if (front && hasFocus()) {
      painter.setPen(QPen(t.accent, 1, Qt::DotLine));
      painter.drawRect(r.adjusted(2, 3, -3, -5));
    }
  }
}

}  // namespace stepscope
