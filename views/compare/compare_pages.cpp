// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/compare_pages.h"

#include <QFrame>
#include <QVBoxLayout>
#include <algorithm>

namespace stepscope {

ComparePages::ComparePages(QWidget* parent)
    : QWidget(parent), bar_(new QTabBar), stack_(new QStackedWidget), empty_(new QLabel) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  bar_->setObjectName(QStringLiteral("compare_pages"));
  bar_->setAccessibleName(QStringLiteral("Pages of the comparison"));
  bar_->setDrawBase(false);
  bar_->setExpanding(false);
  bar_->setUsesScrollButtons(true);
  column->addWidget(bar_);
  auto* rule = new QFrame;
  rule->setProperty("role", "line");
  rule->setFixedHeight(1);
  column->addWidget(rule);
  column->addWidget(stack_, 1);
  empty_->setObjectName(QStringLiteral("compare_empty"));
  empty_->setTextFormat(Qt::PlainText);
  empty_->setAlignment(Qt::AlignCenter);
  empty_->setWordWrap(true);
  empty_->setProperty("role", "muted");
  empty_->setContentsMargins(24, 12, 24, 12);
  stack_->addWidget(empty_);
  connect(bar_, &QTabBar::currentChanged, this, &ComparePages::showFront);
}

void ComparePages::add(View* page) {
  pages_.push_back(page);
  stack_->addWidget(page);
  connect(page, &View::emptyChanged, this, &ComparePages::showFront);
  connect(page, &View::headerChanged, this, &ComparePages::showFront);
  bar_->addTab(page->title());
}

bool ComparePages::show(const QString& id) {
  const auto found = std::find_if(pages_.begin(), pages_.end(), [&id](const View* v) { return v->objectName() == id; });
  if (found == pages_.end()) return false;
  bar_->setCurrentIndex(static_cast<int>(found - pages_.begin()));
  return true;
}

void ComparePages::showFront() {
  const QString text = front()->emptyText();
  empty_->setText(text);
  stack_->setCurrentWidget(text.isEmpty() ? static_cast<QWidget*>(front()) : empty_);
  emit frontChanged();
}

}  // namespace stepscope
