// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/rewind_dialog.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLabel>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>
#include <algorithm>
#include <limits>
#include <utility>

#include "views/common/format.h"
#include "views/common/text_line.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

QString stepsText(std::int64_t n) {
  return n == 1 ? QStringLiteral("1 step") : QStringLiteral("%1 steps").arg(format::count(n));
}

// What is taken back with the state before `step`.
QString textOfLater(const RewindWays& ways, std::int64_t step, bool recorded) {
  const std::int64_t last = ways.inStep ? ways.last : ways.last - 1;  // that ran, or began to
  if (step > last) return QStringLiteral("This is where the run stands: nothing is taken back.");
  const QString which = step == last ? QStringLiteral("Step %1 is taken back:").arg(format::count(step))
                                     : QStringLiteral("%1, %2 to %3, are taken back:")
                                           .arg(stepsText(last - step + 1), format::count(step), format::count(last));
  const bool one = step == last;
  const QString them = one ? QStringLiteral("it") : QStringLiteral("them");
  const QString kept = recorded ? QStringLiteral(
                                      "What was recorded of %1 stays in the project, where SQL finds it, and the "
                                      "list of runs counts %1 as taken back.")
                                      .arg(them)
                                : QStringLiteral("This run is not recorded: nothing of %1 is kept.").arg(them);
  return QStringLiteral(
             "%1 curves, views and reports of this run leave %2 out, and %3. %4 To have %2 again %5 to be run again.")
      .arg(which, them, one ? QStringLiteral("its state goes") : QStringLiteral("their states go"), kept,
           one ? QStringLiteral("it has") : QStringLiteral("they have"));
}

}  // namespace

QString textOfWay(const RewindWays& ways, std::int64_t step) {
  const RewindWay way = ways.to(step);
  const QString took =
      way.ns > 0 ? QStringLiteral(", about %1").arg(format::time(static_cast<std::int64_t>(way.ns))) : QString();
  const QString again = way.repeated == 0   ? QStringLiteral("no step runs again")
                        : way.repeated == 1 ? QStringLiteral("1 step runs again%1").arg(took)
                                            : QStringLiteral("%1 run again%2").arg(stepsText(way.repeated), took);
  if (way.anew)
    return QStringLiteral("No state before it is kept: a new worker builds the model and begins at step %1; %2.")
        .arg(format::count(way.from), again);
  if (way.repeated == 0) return QStringLiteral("Its state is kept: %1.").arg(again);
  return QStringLiteral("The nearest kept state is that of step %1; from there %2.").arg(format::count(way.from), again);
}

RewindDialog::RewindDialog(RewindWays ways, bool recorded, QWidget* parent)
    : QDialog(parent),
      ways_(std::move(ways)),
      recorded_(recorded),
      step_(new QSpinBox),
      way_(textLine("", "rewind_way")),
      later_(textLine("muted", "rewind_later")) {
  const Metrics m = Metrics::current();
  setObjectName(QStringLiteral("rewind_dialog"));
  setWindowTitle(QStringLiteral("Rewind"));
  setAttribute(Qt::WA_DeleteOnClose);
  setMinimumWidth(34 * m.unit);
  auto* layout = new QVBoxLayout(this);
  layout->setSpacing(m.unit);
  auto* form = new QFormLayout;
  step_->setObjectName(QStringLiteral("rewind_step"));
  step_->setAccessibleName(QStringLiteral("Step"));
  // A box that knew the largest one would leave out the digit that goes beyond, and another step would be meant.
  step_->setRange(0, std::numeric_limits<int>::max());
  form->addRow(QStringLiteral("Go back to the state before step"), step_);
  layout->addLayout(form);
  for (QLabel* text : {way_, later_}) {
    text->setAlignment(Qt::AlignTop);
    layout->addWidget(text);
  }
  layout->addStretch();
  auto* buttons = new QDialogButtonBox;
  go_ = buttons->addButton(QStringLiteral("Rewind"), QDialogButtonBox::AcceptRole);
  go_->setObjectName(QStringLiteral("rewind_go"));
  buttons->addButton(QDialogButtonBox::Cancel);
  layout->addWidget(buttons);
  connect(go_, &QPushButton::clicked, this, [this] {
    emit wanted(step_->value());
    accept();
  });
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(step_, &QSpinBox::valueChanged, this, &RewindDialog::tell);
  step_->setValue(static_cast<int>(std::clamp<std::int64_t>(ways_.last - 1, ways_.first, std::numeric_limits<int>::max())));
  tell();
  // The longest text has its room from the beginning, so that nothing moves while a number is typed.
  way_->setMinimumHeight(3 * way_->fontMetrics().lineSpacing());
  later_->setMinimumHeight(5 * later_->fontMetrics().lineSpacing());
  step_->selectAll();
  step_->setFocus();
}

void RewindDialog::tell() {
  const int step = step_->value();
  const bool there = step >= ways_.first && step <= ways_.last;
  const QString range =
      QStringLiteral("Steps %1 to %2 can be gone to.").arg(format::count(ways_.first), format::count(ways_.last));
  say(way_,
      there ? QStringLiteral("%1 %2").arg(range, textOfWay(ways_, step))
            : QStringLiteral("Not step %1. %2").arg(format::count(step), range),
      there ? QString() : QStringLiteral("error"));
  say(later_, there ? textOfLater(ways_, step, recorded_) : QString(), QStringLiteral("muted"));
  go_->setEnabled(there);
}

}  // namespace stepscope
