// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/view_frame.h"

#include <QApplication>
#include <QKeyEvent>
#include <QScrollArea>

namespace stepscope {
namespace {

// A view that gets less height than it needs is scrolled: squeezed, its buttons would be cut.
class Shelf : public QScrollArea {
 public:
  explicit Shelf(View* view) {
    setFrameShape(QFrame::NoFrame);
    setWidgetResizable(true);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setFocusPolicy(Qt::NoFocus);
    setFocusProxy(view);
    view->setMinimumWidth(1);  // what is narrow shortens its texts
    setWidget(view);
    view->setAutoFillBackground(false);
    viewport()->setAutoFillBackground(false);
  }

 protected:
  void keyPressEvent(QKeyEvent* event) override { event->ignore(); }  // keys are the view's
};

}  // namespace

ViewFrame::ViewFrame(View* view, QWidget* parent)
    : QStackedWidget(parent), view_(view), shelf_(new Shelf(view)), empty_(new QLabel) {
  setObjectName(view->objectName() + QStringLiteral("_frame"));
  empty_->setObjectName(QStringLiteral("empty_text"));
  empty_->setTextFormat(Qt::PlainText);
  empty_->setAlignment(Qt::AlignCenter);
  empty_->setWordWrap(true);
  empty_->setProperty("role", "muted");
  empty_->setContentsMargins(24, 12, 24, 12);
  addWidget(shelf_);
  addWidget(empty_);
  connect(view, &View::emptyChanged, this, &ViewFrame::showEmptyText);
  showEmptyText();
}

void ViewFrame::showEmptyText() {
  const QString text = view_->shownEmptyText();
  empty_->setText(text);
  // The keyboard stays with the view, whichever of the two stands there.
  const QWidget* focus = QApplication::focusWidget();
  const bool mine = focus && isAncestorOf(focus);
  QWidget* now = text.isEmpty() ? static_cast<QWidget*>(shelf_) : empty_;
  if (now == currentWidget()) return;
  setCurrentWidget(now);
  if (mine) now->setFocus();
}

}  // namespace stepscope
