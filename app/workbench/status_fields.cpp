// SPDX-License-Identifier: GPL-3.0-or-later
// What the fields of the status line say, but for where one stands.
#include <QObject>
#include <algorithm>
#include <cmath>
#include <limits>

#include "app/workbench/status_line.h"
#include "engine/snapshot/token_count.h"
#include "views/common/counted_steps.h"
#include "views/common/format.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

// A step that was walked through by hand took as long as the person did: its speed says nothing.
bool ranThrough(const snapshot::StepRecord& step) {
  std::int64_t worked = 0;
  for (const auto& span : step.spans()) worked += span.end_ns() - span.begin_ns();
  return step.spans_size() == 0 || step.ns() < 3 * worked + 1'000'000;
}

}  // namespace

void StatusLine::showStep(bool running) {
  const PlanPtr& plan = store_.plan();
  const snapshot::Position& p = store_.position();
  const snapshot::StepRecord* last = store_.steps().empty() ? nullptr : store_.steps().back().get();
  const bool dead = store_.workerState() == WorkerState::kDead && !store_.readOnly();
  // A worker that died at full speed did not say where it stood.
  const std::int64_t at = dead && !p.in_step() && last ? std::max(p.step(), last->step() + 1) : p.step();
  step_->setText(running                      ? QString()  // said already
                 : plan && !store_.readOnly() ? QStringLiteral("Step ") + strong(format::count(at))
                 : last ? QStringLiteral("Steps ") + strong(format::count(static_cast<std::int64_t>(store_.series().size())))
                        : QString());
}

void StatusLine::showLoss() {
  const PlanPtr& plan = store_.plan();
  const snapshot::Position& p = store_.position();
  const snapshot::StepRecord* last = store_.steps().empty() ? nullptr : store_.steps().back().get();
  // Until the step at hand has its loss, the last one stands there.
  const bool fresh = p.in_step() && p.has_loss();
  // Every step has its row in the series; records of older ones may be gone, which a rewind makes the newest.
  const StepSeries& series = store_.series();
  const double before = series.empty() ? std::numeric_limits<double>::quiet_NaN() : series.loss().back();
  const bool inRecord = last && (series.empty() || last->step() >= series.step().back());
  const bool hasLoss = fresh || (inRecord ? last->has_loss() : !std::isnan(before));
  const double loss = fresh ? p.loss() : !hasLoss ? 0 : inRecord ? last->loss() : before;
  const std::int64_t lossStep = inRecord || series.empty() ? (last ? last->step() : 0) : series.step().back();
  // After another set-up or option nothing ran yet.
  const bool ofPlan = !last || !plan || StepPlans::of(store_).underPresent(*last);
  // Which is not the one that stands beside it: between steps that is the next one.
  const QString whose = hasLoss && !fresh && plan && !store_.readOnly()
                            ? QStringLiteral(" of step %1%2")
                                  .arg(format::count(lossStep), ofPlan ? QString() : QStringLiteral(", another plan"))
                            : QString();
  loss_->setText(hasLoss ? QStringLiteral("Loss ") + strong(format::number(loss, 6)) + whose : QString());
  loss_->setToolTip(!hasLoss ? QString()
                    : fresh  ? QStringLiteral("%1, of this step").arg(format::numberExact(loss))
                             : QStringLiteral("%1, of step %2").arg(format::numberExact(loss)).arg(lossStep));
}

void StatusLine::showSpeed() {
  const PlanPtr& plan = store_.plan();
  const snapshot::StepRecord* last = store_.steps().empty() ? nullptr : store_.steps().back().get();
  QString speed, padding;
  // The rate of another plan says nothing of this one.
  const snapshot::StepRecord* timed = plan ? newestOfPlan(store_) : last;
  if (timed && timed->ns() > 0 && ranThrough(*timed)) {
    const double seconds = static_cast<double>(timed->ns()) * 1e-9;
    const TokenCount tokens = tokenCount(*timed);
    padding = QString::fromStdString(untrainedText(tokens));
    speed = tokens.all > 0
                ? strong(format::countShort(static_cast<double>(tokens.trained) / seconds)) + QStringLiteral(" tokens/s")
                : strong(format::countShort(static_cast<double>(timed->samples()) / seconds)) + QStringLiteral(" samples/s");
  }
  speed_->setText(speed);
  speedWidth_ = speed.isEmpty() ? 0 : speed_->sizeHint().width();
  if (!padding.isEmpty()) speed_->setText(speed + QStringLiteral(", ") + padding);
  speed_->setToolTip(speed.isEmpty() ? QString()
                                     : QStringLiteral("Of the newest step%1. Tokens are those that the loss counts; the "
                                                      "others of the batch are padding, or their labels are ignored.")
                                           .arg(padding.isEmpty() ? QString() : QStringLiteral(": ") + padding));
}

void StatusLine::showPeak() {
  const PlanPtr& plan = store_.plan();
  if (plan) {
    const std::int64_t planned = plan->plan().arena_bytes() + plan->plan().persistent_bytes();
    QString text = QStringLiteral("Peak ") + strong(format::bytes(planned));
    // What was measured of another plan stands beside nothing of this one.
    const snapshot::StepRecord* measured = newestOfPlan(store_);
    if (measured && measured->peak_bytes() > 0)
      text += QStringLiteral(" planned, ") + strong(format::bytes(measured->peak_bytes())) + QStringLiteral(" measured");
    peak_->setText(text);
    peak_->setToolTip(
        QStringLiteral("Planned: persistent %1 + arena %2. Measured: touched pages of the plan's memory.")
            .arg(format::bytesExact(plan->plan().persistent_bytes()), format::bytesExact(plan->plan().arena_bytes())));
  } else {
    peak_->setText({});
  }
}

void StatusLine::showWorker(bool running) {
  const Tokens& t = Tokens::current();
  const bool scripted = !script_.isEmpty();
  const QString who = scripted ? format::visible(script_).toHtmlEscaped() : QStringLiteral("worker");
  switch (store_.workerState()) {
    case WorkerState::kNone:
      worker_->setText(store_.readOnly() ? dot(t.faint, QStringLiteral("read-only")) : QString());
      break;
    case WorkerState::kStarting: worker_->setText(dot(t.warn, who + QStringLiteral(" starts"))); break;
    case WorkerState::kIdle: worker_->setText(running ? dot(t.accent, QStringLiteral("running")) : dot(t.ok, who)); break;
    case WorkerState::kBusy:
      // The requests that a run is made of follow each other faster than they can be read; the tooltip has the present one.
      worker_->setText(dot(t.accent, running                         ? QStringLiteral("running")
                                     : store_.workerText().isEmpty() ? QStringLiteral("working")
                                                                     : store_.workerText()));
      break;
    case WorkerState::kUnresponsive:
      worker_->setText(QStringLiteral("<a style='color:%1' href='restart'>%2</a>")
                           .arg(t.warn.name(), QStringLiteral("worker does not answer · restart")));
      if (scripted) worker_->setText(dot(t.warn, who + QStringLiteral(" does not answer")));
      break;
    case WorkerState::kDead:
      worker_->setText(QStringLiteral("<a style='color:%1' href='restart'>%2</a>")
                           .arg(t.error.name(), QStringLiteral("worker ended · restart")));
      if (scripted) worker_->setText(dot(t.error, who + QStringLiteral(" ended")));
      break;
  }
  worker_->setToolTip(store_.workerText().toHtmlEscaped());
}

}  // namespace stepscope
