// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/notice_bar.h"

#include <QHBoxLayout>
#include <QPainter>
#include <algorithm>
#include <utility>

#include "views/common/icons.h"
#include "views/common/tokens.h"

namespace stepscope {

NoticeBar::NoticeBar(QWidget* parent)
    : QWidget(parent),
      icon_(new QLabel),
      text_(new QLabel),
      progress_(new QProgressBar),
      action_(new QPushButton),
      close_(new QPushButton) {
  setObjectName(QStringLiteral("notice"));
  const Metrics m = Metrics::current();
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(m.padding, qRound(0.3 * m.unit), m.padding, qRound(0.3 * m.unit) + 1);
  layout->setSpacing(m.padding);
  text_->setObjectName(QStringLiteral("notice_text"));
  text_->setAccessibleName(QStringLiteral("Message"));
  action_->setAccessibleName(QStringLiteral("What can be done about it"));
  text_->setTextFormat(Qt::PlainText);
  text_->setWordWrap(true);
  text_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  progress_->setTextVisible(false);
  progress_->setFixedWidth(12 * m.unit);
  action_->setObjectName(QStringLiteral("notice_action"));
  close_->setFlat(true);
  close_->setIcon(icon(QStringLiteral("close")));
  close_->setAccessibleName(QStringLiteral("Close this message"));
  layout->addWidget(icon_);
  layout->addWidget(text_, 1);
  layout->addWidget(progress_);
  layout->addWidget(action_);
  layout->addWidget(close_);
  connect(action_, &QPushButton::clicked, this, [this] {
    // Taken first: the action may show the next problem.
    const auto run = run_;
    dismiss();
    if (run) run();
  });
  connect(close_, &QPushButton::clicked, this, &NoticeBar::dismiss);
  hide();
}

void NoticeBar::showProblem(const QString& text, const QString& actionText, std::function<void()> action) {
  showText(Kind::kProblem, text, actionText, std::move(action));
}

void NoticeBar::showStop(const QString& text, const QString& actionText, std::function<void()> action) {
  if (kind_ != Kind::kProblem) showText(Kind::kStop, text, actionText, std::move(action));
}

void NoticeBar::clearStop() {
  if (kind_ == Kind::kStop) clear();
}

void NoticeBar::showText(Kind kind, const QString& text, const QString& actionText, std::function<void()> action) {
  kind_ = kind;
  run_ = std::move(action);
  const Tokens& t = Tokens::current();
  const bool fault = kind == Kind::kProblem || kind == Kind::kFault;
  icon_->setPixmap(iconPixmap(kind == Kind::kStop ? QStringLiteral("break") : QStringLiteral("warning"),
                              fault ? t.error : t.warn, Metrics::current().icon, devicePixelRatioF()));
  icon_->show();
  text_->setText(text);
  progress_->hide();
  action_->setText(actionText);
  action_->setVisible(!actionText.isEmpty());
  close_->show();
  show();
}

void NoticeBar::showProgress(const QString& text, qint64 done, qint64 total, const QString& actionText,
                             std::function<void()> action) {
  if (kind_ == Kind::kProblem) return;
  kind_ = Kind::kProgress;
  run_ = std::move(action);
  icon_->hide();
  text_->setText(text);
  progress_->setRange(0, total > 0 ? 1000 : 0);
  if (total > 0) progress_->setValue(static_cast<int>(1000.0 * static_cast<double>(done) / static_cast<double>(total)));
  progress_->show();
  action_->setText(actionText);
  action_->setVisible(!actionText.isEmpty());
  close_->hide();
  show();
}

void NoticeBar::clearProgress() {
  if (kind_ == Kind::kProgress) clear();
}

void NoticeBar::clear() {
  kind_ = Kind::kNone;
  run_ = nullptr;
  showStanding();
}

void NoticeBar::dismiss() {
  if (standing()) closed_ << stands_.front().id, stands_.erase(stands_.begin());
  clear();
}

void NoticeBar::showStanding() {
  if (kind_ != Kind::kNone && !standing()) return;
  if (stands_.empty()) {
    kind_ = Kind::kNone;
    return hide();
  }
  const Stand first = stands_.front();
  showText(first.kind, first.text, first.actionText, first.action);
}

void NoticeBar::stand(const QString& id, Standing kind, const QString& text, const QString& actionText,
                      std::function<void()> action) {
  if (closed_.contains(id)) return;
  const Kind as = kind == Standing::kFault ? Kind::kFault : Kind::kFact;
  std::erase_if(stands_, [&id](const Stand& s) { return s.id == id; });
  const auto facts = std::ranges::find_if(stands_, [](const Stand& s) { return s.kind == Kind::kFact; });
  stands_.insert(as == Kind::kFault ? facts : stands_.end(), {id, as, text, actionText, std::move(action)});
  showStanding();
}

void NoticeBar::clearStanding(const QString& id) {
  closed_.removeAll(id);
  std::erase_if(stands_, [&id](const Stand& s) { return s.id == id; });
  showStanding();
}

bool NoticeBar::stands(const QString& id) const { return standing() && stands_.front().id == id; }

void NoticeBar::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Tokens& t = Tokens::current();
  painter.fillRect(rect(), kind_ == Kind::kProblem || kind_ == Kind::kFault ? mixed(t.error, t.panel, 0.10)
                           : kind_ == Kind::kStop                           ? t.currentRow
                                                                            : t.raised);
  painter.fillRect(0, height() - 1, width(), 1, t.border);
}

}  // namespace stepscope
