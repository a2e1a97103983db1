// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/view.h"

#include <QPainter>

#include "views/common/empty_text.h"

namespace stepscope {

View::View(const ViewContext& context, const QString& id, const QString& title, QWidget* parent)
    : QWidget(parent), context_(context), title_(title) {
  setObjectName(id);
  setAccessibleName(title);
  for (auto changed : {&SnapshotStore::modelChanged, &SnapshotStore::planChanged, &SnapshotStore::buildingChanged})
    connect(&store(), changed, this, &View::emptyChanged);
}

QString View::shownEmptyText() const {
  const QString own = emptyText();
  if (own.isEmpty() || store().plan() || !store().model() || store().readOnly()) return own;
  if (store().graph() && property(kNeedsNoPlan).toBool()) return own;
  return store().building()
             ? QStringLiteral("The model is being built …")
             : QStringLiteral("The model is not built yet.\nIts set-up (Ctrl+Shift+O) builds it; then this view is filled.");
}

void View::drawPicture(QPainter& painter) { render(&painter, QPoint(), QRegion(), QWidget::DrawChildren); }

void View::setTitle(const QString& title) {
  if (title == title_) return;
  title_ = title;
  emit titleChanged();
}

}  // namespace stepscope
