// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/reading_veil.h"

#include <QEvent>
#include <QPainter>
#include <algorithm>

#include "views/common/tokens.h"

namespace stepscope {

ReadingVeil::ReadingVeil(QWidget* shown, const ProjectReads& reads, ProjectReads::What what, std::function<QString()> text)
    : QWidget(shown), reads_(reads), what_(what), text_(std::move(text)) {
  setObjectName(QStringLiteral("reading_veil"));
  setAttribute(Qt::WA_TransparentForMouseEvents);
  hide();
  shown->installEventFilter(this);
  connect(&reads, &ProjectReads::changed, this, &ReadingVeil::follow);
  follow();
}

void ReadingVeil::follow() {
  said_ = reads_.shown(what_) ? text_() : QString();
  setAccessibleName(said_);
  if (!said_.isEmpty()) {
    setGeometry(parentWidget()->rect());
    raise();
    update();
  }
  setVisible(!said_.isEmpty());
}

bool ReadingVeil::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize && isVisible()) setGeometry(parentWidget()->rect());
  return QWidget::eventFilter(watched, event);
}

void ReadingVeil::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Tokens& t = Tokens::current();
  const Metrics m = Metrics::current();
  QColor veil = t.panel;
  veil.setAlphaF(0.6F);
  painter.fillRect(rect(), veil);
  const QString text = fontMetrics().elidedText(said_, Qt::ElideRight, std::max(m.unit, width() - 4 * m.unit));
  const QSize size(fontMetrics().horizontalAdvance(text) + 2 * m.unit, 2 * m.unit);
  const QRect chip(QPoint((width() - size.width()) / 2, std::clamp((height() - size.height()) / 3, 0, 6 * m.unit)), size);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(t.edge, 1));
  painter.setBrush(t.raised);
  painter.drawRoundedRect(QRectF(chip).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4);
  painter.setPen(t.text);
  painter.drawText(chip, Qt::AlignCenter, text);
}

}  // namespace stepscope
