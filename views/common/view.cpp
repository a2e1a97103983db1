// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/view.h"

#include <QPainter>

namespace stepscope {

View::View(const ViewContext& context, const QString& id, const QString& title, QWidget* parent)
    : QWidget(parent), context_(context), title_(title) {
  setObjectName(id);
  setAccessibleName(title);
}

void View::drawPicture(QPainter& painter) { render(&painter, QPoint(), QRegion(), QWidget::DrawChildren); }

void View::setTitle(const QString& title) {
  if (title == title_) return;
  title_ = title;
  emit titleChanged();
}

}  // namespace stepscope
