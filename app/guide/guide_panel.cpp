// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/guide/guide_panel.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/header_line.h"
#include "views/common/icons.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

const QString kFirst = QStringLiteral("start");

// The left edge, which can be dragged: the panel stands at the right side of the window.
class Edge : public QWidget {
 public:
  explicit Edge(QWidget* panel) : QWidget(panel) {
    setFixedWidth(5);
    setCursor(Qt::SplitHCursor);
    setToolTip(QStringLiteral("Drag to make the guide wider or narrower"));
  }

 protected:
  void mouseMoveEvent(QMouseEvent* event) override {
    QWidget* panel = parentWidget();
    const int most = std::max(panel->minimumWidth(), panel->window()->width() * 7 / 10);
    const int right = panel->mapToGlobal(QPoint(panel->width(), 0)).x();
    panel->setFixedWidth(std::clamp(right - event->globalPosition().toPoint().x(), 22 * Metrics::current().unit, most));
  }
};

}  // namespace

GuidePanel::GuidePanel(QWidget* parent) : QWidget(parent), find_(new QLineEdit), text_(new GuideText) {
  setObjectName(QStringLiteral("guide"));
  setAccessibleName(QStringLiteral("Guide"));
  const Metrics m = Metrics::current();
  auto* title = new QLabel(QStringLiteral("Guide"));
  QFont strong = title->font();
  strong.setWeight(QFont::DemiBold);
  title->setFont(strong);
  back_ = button("left", "guide_back", QStringLiteral("Back to the page before"));
  forward_ = button("right", "guide_forward", QStringLiteral("Forward"));
  auto* contents = button("menu", "guide_contents", QStringLiteral("All pages"));
  auto* close = button("close", "guide_close", QStringLiteral("Close the guide (Esc)"));
  auto* header = new HeaderLine;
  header->setFixedHeight(m.header);
  auto* line = new QHBoxLayout(header);
  line->setContentsMargins(m.padding, 0, qRound(0.3 * m.unit), 0);
  line->setSpacing(2);
  line->addWidget(title);
  line->addStretch(1);
  for (QToolButton* b : {back_, forward_, contents, close}) line->addWidget(b);
  find_->setObjectName(QStringLiteral("guide_find"));
  find_->setAccessibleName(QStringLiteral("Search the guide"));
  find_->setPlaceholderText(QStringLiteral("Search the guide: padding, peak memory …"));
  find_->setToolTip(QStringLiteral("Pages that have every word, or a word that begins with it; Return opens the first"));
  find_->setClearButtonEnabled(true);
  auto* searching = new QHBoxLayout;
  searching->setContentsMargins(m.padding, qRound(0.5 * m.unit), m.padding, qRound(0.3 * m.unit));
  searching->addWidget(find_);
  auto* right = new QVBoxLayout;
  right->setSpacing(0);
  right->addWidget(header);
  right->addLayout(searching);
  right->addWidget(text_, 1);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(new Edge(this));
  layout->addLayout(right, 1);
  setFocusProxy(find_);
  connect(back_, &QToolButton::clicked, this, &GuidePanel::goBack);
  connect(forward_, &QToolButton::clicked, this, &GuidePanel::goForward);
  connect(contents, &QToolButton::clicked, this, [this] { open(kFirst); });
  connect(close, &QToolButton::clicked, this, &GuidePanel::closeWanted);
  connect(text_, &GuideText::followed, this, &GuidePanel::follow);
  connect(find_, &QLineEdit::textChanged, this, &GuidePanel::search);
  connect(find_, &QLineEdit::returnPressed, this, [this] {
    const auto hits = searchGuide(find_->text());
    if (!hits.empty()) open(hits.front().page->id);
  });
  updateButtons();
}

QToolButton* GuidePanel::button(const char* iconName, const char* objectName, const QString& name) {
  auto* made = new QToolButton;
  made->setIcon(icon(QLatin1String(iconName)));
  made->setIconSize({Metrics::current().icon, Metrics::current().icon});
  made->setObjectName(QLatin1String(objectName));
  made->setAccessibleName(name);
  made->setToolTip(name);
  made->setFocusPolicy(Qt::TabFocus);
  return made;
}

void GuidePanel::open(const QString& pageId) {
  const QString id = guidePage(pageId) ? pageId : kFirst;
  note();
  if (visited_.empty() || visited_[at_].page != id) {
    if (!visited_.empty()) visited_.resize(at_ + 1);
    visited_.push_back({id, 0});
    at_ = visited_.size() - 1;
  }
  display(visited_[at_]);
}

void GuidePanel::goBack() {
  note();
  // From what was found back to the page that was read.
  if (!page_.isEmpty() && at_ > 0) --at_;
  if (!visited_.empty()) display(visited_[at_]);
}

void GuidePanel::goForward() {
  if (at_ + 1 >= visited_.size()) return;
  note();
  display(visited_[++at_]);
}

void GuidePanel::note() {
  if (!page_.isEmpty() && at_ < visited_.size()) visited_[at_].scroll = text_->verticalScrollBar()->value();
}

void GuidePanel::display(const Place& place) {
  const GuidePage* page = guidePage(place.page);
  if (!page) return;
  const QSignalBlocker block(find_);
  find_->clear();
  page_ = place.page;
  text_->showPage(*page);
  text_->verticalScrollBar()->setValue(place.scroll);
  updateButtons();
}

void GuidePanel::search(const QString& question) {
  if (question.trimmed().isEmpty()) {
    if (!visited_.empty()) display(visited_[at_]);
    return;
  }
  note();
  page_.clear();
  text_->showHits(question, searchGuide(question));
  updateButtons();
}

void GuidePanel::follow(const GuideLink& link) {
  if (link.kind == GuideLink::kPage) open(link.target);
  if (link.kind == GuideLink::kSample) emit sampleWanted(link.target);
  if (link.kind == GuideLink::kAction) emit actionWanted(link.target);
}

void GuidePanel::updateButtons() {
  back_->setEnabled(at_ > 0 || (page_.isEmpty() && !visited_.empty()));
  forward_->setEnabled(!page_.isEmpty() && at_ + 1 < visited_.size());
}

void GuidePanel::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape) {
    if (find_->text().isEmpty())
      emit closeWanted();
    else
      find_->clear();
    return;
  }
  QWidget::keyPressEvent(event);
}

void GuidePanel::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), Tokens::current().panel);
  painter.fillRect(0, 0, 1, height(), Tokens::current().border);
}

}  // namespace stepscope
