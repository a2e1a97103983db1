// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/model_session.h"

#include <utility>

#include "app/workbench/remote_folder.h"

namespace stepscope {

ModelSession::ModelSession(SnapshotStore& store, SelectionModel& selection, QObject* parent)
    : QObject(parent),
      parts_{*this,    store,    selection, run_,      link_,  answers_,   desires_, model_,
             stepper_, trainer_, rewind_,   recovery_, edits_, inspector_, lab_},
      link_(parts_),
      answers_(parts_),
      desires_(parts_),
      model_(parts_),
      stepper_(parts_),
      trainer_(parts_),
      rewind_(parts_),
      recovery_(parts_),
      inspector_(parts_),
      lab_(parts_),
      edits_(parts_) {
  connect(&client(), &WorkerClient::event, &answers_, &SessionAnswers::absorb);
  connect(&client(), &WorkerClient::text, this, [&store](const QString& line) {
    store.addLog({QStringLiteral("info"), line});
  });
  connect(&client(), &WorkerClient::stateChanged, this, [this, &store] {
    // What takes longer stands in the notice, with its stage and a button to cancel it.
    store.setWorkerState(client().state(), client().busyForLong() ? QString() : client().activity());
    if (client().state() == WorkerState::kUnresponsive) model_.workerUnresponsive();
  });
  // In a turn of its own: the start ends first. Also when a host is reached at the second attempt.
  connect(
      &client(), &WorkerClient::started, this,
      [this] {
        if (std::exchange(host_, client().host()) != client().host()) emit hostChanged();
      },
      Qt::QueuedConnection);
  connect(&client(), &WorkerClient::died, this, &ModelSession::workerDied);
  connect(&link_, &SessionLink::becameIdle, this, &ModelSession::becameIdle);
}

void ModelSession::connectTo(const RemoteHost& host) {
  model_.forget();
  client().setHost(host);
  if (host.local())
    trainer_.ring().moveHere();
  else
    trainer_.ring().moveTo(std::make_unique<RemoteFolder>(host));
  link_.replaceWorker({});
}

void ModelSession::workerDied(const QString& told) {
  const QString stopped = link_.takeWhyStopped(), reason = stopped.isEmpty() ? told : stopped;
  run_.on = run_.interrupted = false;
  trainer_.lostWorker();
  stepper_.dropWaiting();
  rewind_.workerDied();
  model_.workerDied();
  parts_.store.setWorkerState(WorkerState::kDead, reason);
  recovery_.workerDied(reason);
  desires_.workerDied();
  link_.setBusy(false);
}

void ModelSession::becameIdle() {
  if (!link_.busy() && !run_.on) run_.fullSpeed = run_.everyValue = run_.paused = run_.interrupted = false;
  desires_.becameIdle();
  rewind_.becameIdle();
  model_.becameIdle();
  stepper_.becameIdle();  // what was desired before a move was asked for holds in it
}

}  // namespace stepscope
