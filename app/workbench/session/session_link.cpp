// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/session_link.h"

#include <utility>

#include "app/workbench/session/model_session.h"
#include "app/workbench/session/session_answers.h"
#include "app/workbench/session/session_edits.h"
#include "app/workbench/session/session_model.h"
#include "views/common/format.h"

namespace stepscope {

SessionLink::SessionLink(const SessionParts& parts) : SessionPart(parts) {}

void SessionLink::setBusy(bool busy) {
  if (busy == busy_) return;
  busy_ = busy;
  emit session_.busyChanged();
  if (!busy_) QMetaObject::invokeMethod(this, &SessionLink::becameIdle, Qt::QueuedConnection);
}

bool SessionLink::refuse() {
  if (!parts_.model.built()) {
    emit session_.note(store_.readOnly() ? QStringLiteral("A recorded project: it can be looked at, not run")
                                         : QStringLiteral("Open a model first"));
    return true;
  }
  if (busy_) {
    emit session_.note(QStringLiteral("Still %1; Esc cancels").arg(client_.activity()));
    return true;
  }
  return false;
}

bool SessionLink::working() const { return busy_ || run_.on || client_.busy(); }

void SessionLink::move(snapshot::Request request, const QString& what, Then then, Then failed, Refused refused) {
  setBusy(true);
  snapshot::Position before;
  before.set_in_step(store_.position().in_step());
  before.set_step(store_.position().step());
  before.set_instruction(store_.position().instruction());
  client_.request(
      std::move(request), what,
      [this, before, then = std::move(then), failed = std::move(failed), refused = std::move(refused)](const Delivery& d) {
        parts_.answers.absorb(d);
        if (d.response->done()) ended(d, before, then, failed, refused);
      });
}

void SessionLink::ended(const Delivery& d, const snapshot::Position& before, const Then& then, const Then& failed,
                        const Refused& refused) {
  const bool wrong = d.response->has_error(), running = run_.on || run_.paused;
  if (wrong) {
    run_.interrupted = run_.interrupted && d.response->error().code() == "cancelled";
    run_.on = run_.on && run_.interrupted;
  }
  Other rebuilt = std::exchange(rebuilt_, Other::kNone);
  if (!client_.alive()) rebuilt = Other::kNone;  // it is read of nobody, also not of the next worker
  if (rebuilt == Other::kNone) setBusy(false);
  const auto& now = store_.position();
  if (wrong)
    tellError(d.response->error(), refused, running);
  else if (rebuilt == Other::kNone && before.in_step() && now.in_step() && now.step() == before.step() &&
           now.instruction() < before.instruction())
    parts_.edits.takenBack(now);  // the worker takes back with a step what was edited behind it
  Then next = wrong ? failed : then;
  if (rebuilt == Other::kNone) {
    if (next) next();
    return;
  }
  if (rebuilt == Other::kRebuilt) parts_.model.shownIsConfigured();
  parts_.model.refreshBuild([this, next, rebuilt, shown = store_.graph()] {
    parts_.edits.moveEdits(shown);
    if (rebuilt == Other::kRebuilt)
      emit session_.planRebuilt();
    else
      emit session_.planShown();
    if (next) next();
  });
}

void SessionLink::tellError(const snapshot::WorkerError& error, const Refused& refused, bool running) {
  fault_ = QString::fromStdString(error.setting());
  error_ = error.code();
  if (error.code() == "cancelled") {
    if (!run_.interrupted) emit session_.note(running ? QStringLiteral("Paused") : QStringLiteral("Cancelled"));
  } else if (error.code() != "worker_died" && refused) {
    refused(QString::fromStdString(error.message()));
  } else if (error.code() != "worker_died") {
    emit session_.problem(format::visible(error.message()), format::visible(error.code()));
  }
}

void SessionLink::tellCancelled() {
  snapshot::WorkerError error;
  error.set_code("cancelled");
  tellError(error, {}, false);
}

void SessionLink::request(snapshot::Request request, const QString& what, WorkerClient::Callback callback, bool quiet) {
  const auto answer = [this, opened = opened_, callback = std::move(callback)](const Delivery& d) {
    if (opened == opened_) callback(d);
  };
  client_.request(std::move(request), what, answer, quiet);
}

void SessionLink::ask(snapshot::Request request, const QString& what, std::function<void(const Delivery&)> answer,
                      bool quiet) {
  this->request(
      std::move(request), what,
      [this, answer = std::move(answer)](const Delivery& d) {
        if (d.response->has_error()) {
          const auto& error = d.response->error();
          if (error.code() != "worker_died" && error.code() != "cancelled")
            emit session_.note(format::visible(error.message()));
        } else if (answer) {
          answer(d);
        } else {
          parts_.answers.absorb(d);
        }
      },
      quiet);
}

void SessionLink::study(snapshot::Request request, const QString& what, std::function<void(const Delivery&)> answer) {
  setBusy(true);
  client_.request(std::move(request), what, [this, opened = opened_, answer = std::move(answer)](const Delivery& d) {
    if (d.response->done() && !restarting_) setBusy(false);
    if (opened == opened_) answer(d);
  });
}

void SessionLink::begin(const Then& then) {
  if (client_.alive()) {
    then();
    return;
  }
  // One-shot: the context object goes with the first start.
  auto* once = new QObject(this);
  connect(&client_, &WorkerClient::started, once, [once, then] {
    once->deleteLater();
    then();
  });
  connect(&client_, &WorkerClient::died, once, &QObject::deleteLater);
  client_.start();
}

void SessionLink::stopWorker(const QString& why) {
  whyStopped_ = why;
  setBusy(true);  // what is asked now would go to the worker that ends
  client_.kill();
}

void SessionLink::replaceWorker(Then then) {
  run_.on = false;
  rebuilt_ = Other::kNone;
  const auto again = [this, then = std::move(then)] {
    setBusy(false);
    if (then) then();
  };
  if (!client_.alive()) {
    setBusy(true);
    begin(again);
    return;
  }
  restarting_ = true;
  setBusy(true);  // what is asked now would go to the worker that ends
  auto* once = new QObject(this);
  connect(&client_, &WorkerClient::died, once, [this, once, again] {
    once->deleteLater();
    restarting_ = false;
    setBusy(true);
    QMetaObject::invokeMethod(
        this, [this, again] { begin(again); }, Qt::QueuedConnection);
  });
  client_.kill();
}

}  // namespace stepscope
