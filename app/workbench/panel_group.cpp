// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/panel_group.h"

#include <QApplication>
#include <QDragEnterEvent>
#include <QHBoxLayout>
#include <QMenu>
#include <QMimeData>
#include <QPointer>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/header_line.h"
#include "views/common/tokens.h"

namespace stepscope {

PanelGroup::PanelGroup(Area area, QWidget* parent)
    : QWidget(parent),
      area_(area),
      header_(new HeaderLine),
      tabs_(new PanelTabs),
      more_(new QToolButton),
      text_(new QLabel),
      help_(new HelpButton),
      pages_(new QStackedWidget) {
  setAcceptDrops(true);
  setMinimumSize(120, 60);
  tabs_->setAccessibleName(QStringLiteral("Views"));
  const Metrics m = Metrics::current();
  header_->setFixedHeight(m.header);
  headerLayout_ = new QHBoxLayout(header_);
  headerLayout_->setContentsMargins(qRound(0.2 * m.unit), 0, m.padding, 0);
  headerLayout_->setSpacing(m.padding);
  headerLayout_->addWidget(tabs_, 0, Qt::AlignBottom);
  headerLayout_->addWidget(more_);
  headerLayout_->addStretch(1);
  headerLayout_->addWidget(text_);
  headerLayout_->addWidget(help_);
  header_->setMinimumWidth(1);
  more_->setObjectName(QStringLiteral("more_views"));
  more_->setAccessibleName(QStringLiteral("More views"));
  more_->setPopupMode(QToolButton::InstantPopup);
  more_->setStyleSheet(QStringLiteral("QToolButton { padding: 0; } QToolButton::menu-indicator { image: none; }"));
  more_->setFocusPolicy(Qt::TabFocus);
  more_->setMenu(new QMenu(more_));
  more_->hide();
  connect(more_->menu(), &QMenu::aboutToShow, this, &PanelGroup::fillMore);
  text_->setProperty("role", "faint");
  text_->setTextFormat(Qt::PlainText);
  text_->setFont(smallFont());
  text_->setMinimumWidth(0);
  text_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  text_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
  header_->installEventFilter(this);
  text_->installEventFilter(this);  // its place changes with the tabs and the controls too
  headerLayout_->setStretchFactor(text_, 2);
  connect(help_, &QToolButton::clicked, this, [this] { emit helpWanted(frontId()); });
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(header_);
  layout->addWidget(pages_, 1);
  connect(tabs_, &QTabBar::currentChanged, this, &PanelGroup::showFront);
  connect(tabs_, &QTabBar::tabBarClicked, this, [this](int tab) {
    if (tab >= 0) emit chosen(tabs_->tabData(tab).toString());
  });
  connect(tabs_, &PanelTabs::draggedOut, this, [this](int tab) { emit viewTornOut(tabs_->tabData(tab).toString()); });
  tabs_->setContextMenuPolicy(Qt::CustomContextMenu);
  connect(tabs_, &QWidget::customContextMenuRequested, this, [this](const QPoint& at) {
    const int tab = tabs_->tabAt(at);
    if (tab >= 0) emit tabMenuWanted(tabs_->tabData(tab).toString(), tabs_->mapToGlobal(at));
  });
}

ViewFrame* PanelGroup::frameAt(int tab) const {
  const QString id = tabs_->tabData(tab).toString();
  for (int i = 0; i < pages_->count(); ++i) {
    auto* frame = qobject_cast<ViewFrame*>(pages_->widget(i));
    if (frame && frame->view()->objectName() == id) return frame;
  }
  return nullptr;
}

void PanelGroup::addFrame(ViewFrame* frame) {
  View* view = frame->view();
  const QSignalBlocker block(tabs_);
  pages_->addWidget(frame);
  const int tab = tabs_->addTab(view->title());
  tabs_->setTabData(tab, view->objectName());
  connect(view, &View::headerChanged, this, &PanelGroup::updateHeader);
  connect(view, &View::emptyChanged, this, &PanelGroup::updateHeader);
  connect(view, &View::titleChanged, this, [this, view] {
    for (int i = 0; i < tabs_->count(); ++i) {
      if (tabs_->tabData(i).toString() == view->objectName()) tabs_->setTabText(i, view->title());
    }
    fit();
  });
  tabs_->updateGeometry();
  showFront(tabs_->currentIndex());
}

ViewFrame* PanelGroup::takeFrame(const QString& id) {
  for (int i = 0; i < tabs_->count(); ++i) {
    if (tabs_->tabData(i).toString() != id) continue;
    ViewFrame* frame = frameAt(i);
    if (!frame) return nullptr;
    frame->view()->disconnect(this);
    if (extra_ && extra_ == frame->view()->headerWidget()) {
      headerLayout_->removeWidget(extra_);
      extra_->hide();
      extra_->setParent(frame->view());
      extra_ = nullptr;
    }
    pages_->removeWidget(frame);
    frame->setParent(nullptr);
    tabs_->removeTab(i);
    showFront(tabs_->currentIndex());
    return frame;
  }
  return nullptr;
}

QStringList PanelGroup::ids() const {
  QStringList all;
  for (int i = 0; i < tabs_->count(); ++i) all << tabs_->tabData(i).toString();
  return all;
}

void PanelGroup::orderTabs(const QStringList& ids) {
  const QSignalBlocker block(tabs_);
  int place = 0;
  for (const QString& id : ids) {
    const auto now = static_cast<int>(this->ids().indexOf(id));
    if (now < 0) continue;
    if (now != place) tabs_->moveTab(now, place);
    ++place;
  }
  showFront(tabs_->currentIndex());
}

QString PanelGroup::frontId() const { return tabs_->tabData(tabs_->currentIndex()).toString(); }

View* PanelGroup::frontView() const {
  const ViewFrame* frame = frameAt(tabs_->currentIndex());
  return frame ? frame->view() : nullptr;
}

bool PanelGroup::bringToFront(const QString& id) {
  const auto tab = static_cast<int>(ids().indexOf(id));
  if (tab >= 0) tabs_->setCurrentIndex(tab);
  return tab >= 0;
}

void PanelGroup::showFront(int tab) {
  if (ViewFrame* frame = frameAt(tab)) pages_->setCurrentWidget(frame);
  updateHeader();
  emit frontChanged();
}

void PanelGroup::updateHeader() {
  View* view = frontView();
  QWidget* wanted = view && view->shownEmptyText().isEmpty() ? view->headerWidget() : nullptr;
  if (wanted != extra_) {
    if (extra_) {
      headerLayout_->removeWidget(extra_);
      extra_->hide();
    }
    extra_ = wanted;
    if (extra_) {
      headerLayout_->insertWidget(headerLayout_->indexOf(help_), extra_);
    }
  }
  const QString text = view ? view->headerText() : QString();
  help_->setView(view ? view->title() : QString());
  text_->setToolTip(text.toHtmlEscaped());
  fullText_ = text;
  fit();
  headerLayout_->activate();
  fitText();
}

// The tab in front comes first, then the controls of its view, then the other tabs.
void PanelGroup::fit() {
  const Metrics m = Metrics::current();
  more_->setText(QStringLiteral("+%1").arg(tabs_->count()));  // the longest text that it can have
  const int moreWidth = std::max(qRound(2.4 * m.unit), more_->minimumSizeHint().width());
  more_->setFixedSize(moreWidth, qRound(1.7 * m.unit));
  int room = header_->width() - headerLayout_->contentsMargins().left() - headerLayout_->contentsMargins().right() -
             help_->width() - 2 * headerLayout_->spacing();
  const int beside = moreWidth + headerLayout_->spacing();
  if (extra_) {  // too narrow for the controls: the tab counts, not half of a control
    tabs_->fit(QWIDGETSIZE_MAX, 0);
    const int wanted = extra_->sizeHint().width() + headerLayout_->spacing();
    const int front = tabs_->tabSizeHint(std::max(0, tabs_->currentIndex())).width();
    const bool fits = front + (tabs_->count() > 1 ? beside : 0) + wanted <= room;
    extra_->setVisible(fits);
    if (fits) room -= wanted;
  }
  const int hidden = tabs_->fit(room, beside);
  more_->setVisible(hidden > 0);
  if (hidden == 0) return;
  more_->setText(QStringLiteral("+%1").arg(hidden));
  more_->setToolTip(hidden == 1 ? QStringLiteral("One more view of this area")
                                : QStringLiteral("%1 more views of this area").arg(hidden));
}

void PanelGroup::fillMore() {
  more_->menu()->clear();
  for (int i = 0; i < tabs_->count(); ++i)
    if (!tabs_->isTabVisible(i))
      more_->menu()->addAction(tabs_->tabText(i), this, [this, id = tabs_->tabData(i).toString()] {
        bringToFront(id);
        emit chosen(id);
      });
}

// The least important part of a header is its end; what does not fit whole is left out, and stands in the tooltip.
void PanelGroup::fitText() {
  QStringList parts = fullText_.split(QStringLiteral(" · "));
  const auto fits = [this](const QString& text) {
    return text_->fontMetrics().horizontalAdvance(text) + 2 <= text_->width();
  };
  while (!parts.isEmpty() && !fits(parts.join(QStringLiteral(" · ")))) parts.removeLast();
  text_->setText(parts.join(QStringLiteral(" · ")));
}

bool PanelGroup::eventFilter(QObject* watched, QEvent* event) {
  if (watched == header_ && event->type() == QEvent::Resize) fit();
  if (watched == text_ && (event->type() == QEvent::Resize || event->type() == QEvent::FontChange)) fitText();
  return QWidget::eventFilter(watched, event);
}

void PanelGroup::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasFormat(PanelTabs::kMime)) event->acceptProposedAction();
}

void PanelGroup::dropEvent(QDropEvent* event) {
  emit viewDropped(QString::fromUtf8(event->mimeData()->data(PanelTabs::kMime)), area_);
  event->acceptProposedAction();
}

}  // namespace stepscope
