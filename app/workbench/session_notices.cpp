// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session_notices.h"

#include <algorithm>
#include <utility>

#include "app/workbench/actions.h"
#include "app/workbench/change_history.h"
#include "app/workbench/notice_bar.h"
#include "app/workbench/panel_board.h"
#include "app/workbench/recording.h"
#include "app/workbench/session/model_session.h"
#include "app/workbench/status_line.h"
#include "engine/snapshot/build_phases.h"
#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/running.h"

namespace stepscope {
namespace {

// What the breakpoint is set on, as a person set it: its number is the worker's. Empty for one on values.
QString whereItBreaks(const SnapshotStore& store) {
  using B = snapshot::Breakpoint;
  const auto& all = store.breakpoints();
  const auto set = std::find_if(all.begin(), all.end(), [&](const B& b) { return b.id() == store.position().breakpoint(); });
  const int at = store.position().instruction();
  const auto* next = store.plan() ? store.plan()->instruction(at) : nullptr;
  if (set == all.end() || !next || !store.graph()) return {};
  const QString node = names::node(*store.graph(), next->node());
  switch (set->condition_case()) {
    case B::kInstruction:
    case B::kNode: return QStringLiteral("the breakpoint on instruction %1, %2").arg(format::count(at), node);
    case B::kOp:
      return QStringLiteral("the breakpoint on every %1: instruction %2, %3")
          .arg(format::visible(set->op()), format::count(at), node);
    case B::kPhase:
      return QStringLiteral("the breakpoint where %1 begins: instruction %2, %3")
          .arg(names::phase(set->phase()).toLower(), format::count(at), node);
    default: return {};
  }
}

}  // namespace
namespace {
constexpr int kLookEveryMs = 200;
}  // namespace

SessionNotices::SessionNotices(const WindowParts& parts, ChangeHistory& history)
    : parts_(parts), session_(parts.session), store_(parts.store), history_(history) {
  connect(&session_, &ModelSession::busyChanged, this, [this] {
    Running::of(store_).set(session_.running());
    parts_.status.setRun(session_.goal(), session_.atFullSpeed());
    parts_.status.setRestoring(session_.restoring());
    const auto& p = store_.position();
    if (!session_.busy() && !(p.in_step() && p.breakpoint() != 0)) parts_.notice.clearStop();
  });
  connect(&store_.findings(), &Findings::optionProofChanged, this, [this] { fitting_ = false; });
  connect(&session_, &ModelSession::problem, this, &SessionNotices::tellProblem);
  connect(&session_, &ModelSession::alertRaised, this, &SessionNotices::tellAlert);
  connect(&session_, &ModelSession::brokeAt, this, &SessionNotices::tellBreak);
  // Why it stopped holds where it stopped.
  connect(&store_, &SnapshotStore::positionChanged, this, [this] {
    const std::pair<std::int64_t, std::int64_t> now(store_.position().step(), store_.position().instruction());
    if (!stoppedAt_ || *stoppedAt_ == now) return;
    stoppedAt_.reset();
    parts_.status.takeBack(stopTold_);
  });
  connect(&session_, &ModelSession::longRepeat, this, &SessionNotices::askToRepeat);
  connect(&session_, &ModelSession::progress, &parts_.status, &StatusLine::setProgress);
  connect(&session_, &ModelSession::note, &parts_.status, &StatusLine::note);
  connect(&session_, &ModelSession::busyChanged, this, [this] {
    if (session_.running()) parts_.status.takeBack(QStringLiteral("Paused"));
  });
  connect(&progress_, &QTimer::timeout, this, &SessionNotices::tellLongWork);
  progress_.start(kLookEveryMs);
}

void SessionNotices::tellProblem(const QString& text, const QString& code) {
  if (code == u"worker_died" && session_.client().host().attached()) {
    parts_.notice.showProblem(
        store_.plan() ? QStringLiteral("%1. What was shown last stays, and what is recorded.").arg(text) : text, {}, {});
  } else if (code == u"worker_died") {
    parts_.notice.showProblem(
        store_.plan() ? QStringLiteral("%1. What was shown last stays. Restarting returns to the same step.").arg(text)
                      : text,
        QStringLiteral("Restart worker"), [this] { session_.restart(); });
  } else if (code == u"out_of_memory" && (fitting_ || store_.plan())) {
    tellWhatDoesNotFit(text);
  } else {
    parts_.notice.showProblem(format::bytesWithin(text), {}, {});
  }
}

void SessionNotices::tellAlert(const snapshot::Alert& alert) {
  if (alert.code() == "does_not_fit") tellWhatDoesNotFit(format::visible(alert.message()));
  if (alert.code() == "file_changed")
    parts_.notice.showProblem(format::visible(alert.message()), QStringLiteral("New run"), [this] { session_.newRun(); });
  using B = snapshot::Breakpoint;
  if (alert.code() != "nan" && alert.code() != "inf") return;
  const auto kind = alert.code() == "nan" ? B::kNan : B::kNewInf;
  const auto& all = store_.breakpoints();
  if (std::any_of(all.begin(), all.end(), [kind](const B& b) { return b.enabled() && b.condition_case() == kind; }))
    return;  // the run stops at it, and tellBreak() tells
  const QString text = QStringLiteral("Step %1: %2").arg(format::count(alert.step()), format::visible(alert.message()));
  parts_.notice.showProblem(
      text, alert.instruction() < 0 ? QString() : QStringLiteral("Show where"),
      [this, step = alert.step(), instruction = alert.instruction()] { session_.goTo(step, instruction); });
}

void SessionNotices::tellWhatDoesNotFit(const QString& text) {
  if (!std::exchange(fitting_, false)) {
    parts_.notice.showProblem(format::bytesWithin(text), QStringLiteral("Fit by recompute"),
                              [this] { fitByRecompute(history_.askedLimit()); });
    return;
  }
  // More of the same would give the same.
  const bool limited = std::any_of(store_.options().begin(), store_.options().end(), [](const snapshot::Option& o) {
    return o.name() == "memory.limit" && format::bytesOf(QString::fromStdString(o.value())).value_or(0) > 0;
  });
  const bool shown = limited || (store_.plan() && store_.plan()->plan().has_arena_room_bytes());
  parts_.notice.showProblem(
      QStringLiteral("Recompute does not make it fit: %1%2")
          .arg(format::bytesWithin(text), shown ? QString() : QStringLiteral(". The plan that is shown has no limit")),
      QStringLiteral("Change the set-up"), [this] { parts_.actions[QStringLiteral("configure")]->trigger(); });
}

void SessionNotices::tellBreak(const QString& reason, int instruction) {
  const auto* made = store_.plan() ? store_.plan()->instruction(instruction) : nullptr;
  if (!made) {
    const QString what = whereItBreaks(store_);
    stopTold_ = QStringLiteral("Stopped by %1").arg(what.isEmpty() ? reason : what);
    stoppedAt_.emplace(store_.position().step(), store_.position().instruction());
    parts_.status.note(stopTold_);
    return;
  }
  const QString maker = QStringLiteral("%1 %2").arg(format::count(instruction), format::visible(made->op()));
  QString text = QStringLiteral("Stopped by %1, made by %2").arg(reason, maker);
  // The alert of it knows more: the row of the batch, say.
  const auto& alerts = store_.alerts();
  const auto told = std::find_if(alerts.rbegin(), alerts.rend(), [&](const snapshot::Alert& a) {
    return a.step() == store_.position().step() && a.instruction() == instruction &&
           (a.code() == "nan" || a.code() == "inf");
  });
  if (told != alerts.rend())
    text = QStringLiteral("Stopped in step %1: %2").arg(format::count(told->step()), format::visible(told->message()));
  parts_.notice.showStop(text, QStringLiteral("Show %1").arg(maker),
                         [this, instruction] { parts_.selection.select(Selection::ofInstruction(instruction)); });
}

void SessionNotices::askToRepeat(qint64 from, qint64 step, double ns) {
  const QString took = ns > 0 ? QStringLiteral(", about %1").arg(format::time(static_cast<std::int64_t>(ns))) : QString();
  QString text = QStringLiteral("The new worker stands at step %1, the last state that is kept. Step %2 is %3 steps on%4.")
                     .arg(format::count(from), format::count(step), format::count(step - from), took);
  if (session_.edited()) text += ' ' + QStringLiteral("Values that were set by hand are not set again.");
  parts_.notice.showProblem(text, QStringLiteral("Run them again"), [this, from, step] {
    if (store_.position().step() == from && !store_.position().in_step()) return session_.train(step - from);
    parts_.status.note(QStringLiteral("The session has moved on since; nothing is run again"));
  });
}

void SessionNotices::fitByRecompute(const QString& askedLimit) {
  if (!store_.plan()) return;
  qint64 limit = 0;
  for (const auto& option : store_.options())
    if (option.name() == "memory.limit") limit = format::bytesOf(QString::fromStdString(option.value())).value_or(0);
  // One that was refused because the plan does not fit is what the plan is made to fit.
  const qint64 asked = format::bytesOf(askedLimit).value_or(0);
  if (asked > 0) limit = asked;
  if (limit == 0 && store_.machine()) limit = store_.machine()->memory_bytes();
  const snapshot::Plan& plan = store_.plan()->plan();
  qint64 budget = limit - plan.persistent_bytes();
  if (plan.has_arena_room_bytes()) budget = std::min<qint64>(budget, plan.arena_room_bytes());
  if (plan.has_arena_room_bytes() && plan.arena_room_bytes() <= 0) {
    parts_.notice.showProblem(QStringLiteral("recompute: parameters and optimizer state alone need %1 more than the device "
                                             "has free; expected room for values")
                                  .arg(format::bytes(-plan.arena_room_bytes())),
                              {}, {});
    return;
  }
  if (budget <= 0) {
    parts_.notice.showProblem(
        QStringLiteral("recompute: parameters, optimizer state and batch alone need %1; expected less than %2")
            .arg(format::bytes(plan.persistent_bytes()), format::bytes(limit)),
        {}, {});
    return;
  }
  parts_.board.show(QStringLiteral("recompute"));
  fitting_ = true;
  if (asked > 0) history_.setOption(QStringLiteral("memory.limit"), askedLimit);
  // What a plan places around live values, workspaces above all, needs room too.
  history_.setOption(QStringLiteral("recompute.budget"), format::bytes(budget - budget / 20));
}

void SessionNotices::tellLongWork() {
  const WorkerClient& client = session_.client();
  if (store_.workerState() == WorkerState::kUnresponsive && session_.attached()) {
    parts_.notice.showProgress(QStringLiteral("%1: the script does not answer").arg(client.activity()), 0, 0, {}, {});
  } else if (store_.workerState() == WorkerState::kUnresponsive && !session_.modelPath().isEmpty()) {
    parts_.notice.showProgress(
        QStringLiteral("%1: the worker does not answer. Restarting it returns to the same step.").arg(client.activity()), 0,
        0, QStringLiteral("Restart worker"), [this] { session_.restart(); });
  } else if (client.busyForLong()) {
    const BuildTrace& build = session_.buildTrace();
    const int place = build.place();
    parts_.notice.showProgress(client.activity(build.text()), std::max(0, place - 1), place > 0 ? kBuildPhases.size() : 0,
                               QStringLiteral("Cancel"), [this] { session_.pause(); });
  } else if (const QString reads = parts_.recording.reads().longText(); !reads.isEmpty()) {
    parts_.notice.showProgress(reads + QStringLiteral(" …"), 0, 0, QStringLiteral("Cancel"),
                               [this] { parts_.recording.reads().cancel(); });
  } else {
    parts_.notice.clearProgress();
  }
}

}  // namespace stepscope
