// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/graph_finder.h"

#include <QGuiApplication>
#include <QHBoxLayout>

#include "views/common/format.h"
#include "views/common/tokens.h"

namespace stepscope {

GraphFinder::GraphFinder(QWidget* parent) : QWidget(parent), text_(new QLineEdit), count_(new QLabel) {
  setAutoFillBackground(true);
  hide();
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(6, 4, 6, 4);
  text_->setObjectName(QStringLiteral("graph_find"));
  text_->setAccessibleName(QStringLiteral("Find in the graph"));
  text_->setPlaceholderText(QStringLiteral("Find: MatMul  path:h.3  -phase:backward"));
  text_->setToolTip(QStringLiteral("Return goes to the next match, Shift+Return to the one before, Esc closes"));
  text_->setClearButtonEnabled(true);
  count_->setProperty("role", "muted");
  row->addWidget(text_, 1);
  row->addWidget(count_);
  connect(text_, &QLineEdit::textChanged, this, [this] { emit wanted(0); });
  connect(text_, &QLineEdit::returnPressed, this,
          [this] { emit wanted(QGuiApplication::keyboardModifiers() & Qt::ShiftModifier ? -1 : 1); });
}

void GraphFinder::open() {
  show();
  raise();
  text_->setFocus();
  text_->selectAll();
}

void GraphFinder::placeOver(const QRect& picture) {
  const int width = std::min(picture.width() - 16, Metrics::current().unit * 30);
  setGeometry(picture.right() - width - 8, picture.y() + 8, width, sizeHint().height());
}

QString GraphFinder::query() const { return isHidden() ? QString() : text_->text().trimmed(); }

void GraphFinder::showCount(int match, int count) {
  count_->setText(query().isEmpty() ? QString()
                  : count == 0      ? QStringLiteral("no match")
                                    : QStringLiteral("%1 of %2").arg(format::count(match + 1), format::count(count)));
}

}  // namespace stepscope
