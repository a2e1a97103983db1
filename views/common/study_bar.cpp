// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/study_bar.h"

#include <QVBoxLayout>
#include <algorithm>

#include "views/common/format.h"
#include "views/common/text_line.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

int ofBar(qint64 n) { return static_cast<int>(std::clamp<qint64>(n, 0, 1'000'000)); }

QString named(const char* id, const char* part) { return QLatin1String(id) + QLatin1Char('_') + QLatin1String(part); }

}  // namespace

StudyBar::StudyBar(const char* id, const Study& study, Wishes& wishes, StudyWords words, QWidget* parent)
    : QWidget(parent),
      study_(study),
      wishes_(wishes),
      words_(std::move(words)),
      button_(new QPushButton(words_.start, this)),
      what_(textLine("muted")),
      problem_(textLine("error")),
      progress_(new QProgressBar) {
  const Metrics m = Metrics::current();
  setObjectName(named(id, "study"));
  what_->setObjectName(named(id, "what"));
  problem_->setObjectName(named(id, "problem"));
  progress_->setObjectName(named(id, "progress"));
  progress_->setAccessibleName(words_.progress);
  progress_->setTextVisible(false);
  progress_->setFixedHeight(std::max(4, m.unit / 3));
  auto* lines = new QVBoxLayout(this);
  lines->setContentsMargins(0, 0, 0, 0);
  lines->setSpacing(qRound(0.35 * m.unit));
  for (QWidget* each : std::initializer_list<QWidget*>{what_, progress_, problem_}) lines->addWidget(each);
  connect(button_, &QPushButton::clicked, this, &StudyBar::press);
}

void StudyBar::press() {
  if (study_.running())
    emit wishes_.command(QStringLiteral("stop"));
  else if (button_->isEnabled())
    emit startWanted();
}

void StudyBar::follow(bool possible, const QString& fault) {
  const bool running = study_.running();
  button_->setEnabled(possible || running);
  button_->setText(running ? QStringLiteral("Cancel") : words_.start);
  button_->setToolTip(running ? words_.cancelTip : words_.startTip);
  progress_->setVisible(running);
  progress_->setRange(0, ofBar(study_.total()));  // without an end it says that something goes on
  progress_->setValue(ofBar(study_.done()));
  const QString now = format::visible(study_.what());
  say(what_,
      !running             ? QString()
      : now.isEmpty()      ? words_.first
      : study_.total() > 0 ? QStringLiteral("%1 of %2: %3").arg(study_.done()).arg(study_.total()).arg(now)
      : study_.done() > 0  ? QStringLiteral("%1 (%2 so far)").arg(now).arg(study_.done())
                           : now,
      QStringLiteral("muted"));
  say(problem_, format::visible(fault.isEmpty() ? study_.problem() : fault), QStringLiteral("error"));
  setVisible(running || !problem_->text().isEmpty());
}

}  // namespace stepscope
